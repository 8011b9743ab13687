"""Command lines: help, versions, and wrong usage, which is exit 2 and one line that names the culprit."""
import os
import re
import subprocess

from harness import K3, SOURCE, golden, k3, main, test

MODEL = golden()


def wrong(pattern, *args, code=2):
    r = k3(*args)
    assert r.code == code, (args, r)
    assert r.out == b"", (args, r)
    assert len(r.lines) == 1 and re.search("^k3: .*" + pattern, r.lines[0]), (args, pattern, r)


@test
def help_is_printed():
    r = k3("--help")
    assert r.code == 0 and b"usage: k3 COMMAND" in r.out and r.err == b"", r
    for command in ("run", "logits", "inspect", "bench"):
        assert ("k3 " + command).encode() in r.out
        own = k3(command, "--help")
        assert own.code == 0 and own.out.startswith(b"usage: k3 " + command.encode()) and own.err == b"", own


@test
def every_option_is_in_the_help_and_in_the_manual():
    for command, options in {
        "run": "prompt file ids chat messages tools thinking effort tokens special temperature top-k top-p min-p "
               "seed threads memory isa precision json quiet",
        "perplexity": "window stride ids special threads memory isa precision json quiet",
        "eval": "group limit repeat out price tokens temperature top-k top-p min-p seed threads memory isa precision "
                "json quiet",
        "compare": "a b b-model window stride ids special threads memory isa precision json quiet",
        "logits": "ids split out threads memory isa precision quiet",
        "inspect": "tensors json",
        "bench": "prompt decode repeat threads memory isa precision json quiet",
    }.items():
        out = k3(command, "--help").out.decode()
        with open(os.path.join(SOURCE, "man", "k3-%s.1" % command), encoding="utf-8") as f:
            manual = f.read().replace("\\-", "-")
        for option in options.split():
            assert "--" + option in out and "--" + option in manual, (command, option)
        known = set(re.findall(r"--([a-z][a-z-]*)", out)) - {"help"}
        assert known <= set(options.split()), (command, known)


@test
def version_is_printed():
    r = k3("--version")
    assert r.code == 0 and re.fullmatch(rb"k3 (\d+\.\d+\.\d+) \(libk3 \1\)\n", r.out), r


@test
def commands_are_checked():
    wrong("no command")
    wrong('command "walk"', "walk")
    wrong('option "-x"', "-x")


@test
def options_are_checked():
    for command in ("run", "logits", "inspect", "bench"):
        wrong("no MODEL", command)
        wrong("MODEL is empty", command, "", *(["-p", "x"] if command == "run" else []),
              *(["--ids", "1", "--out", "x"] if command == "logits" else []))
        wrong("unknown option --walk", command, MODEL, "--walk")
        wrong("unknown option -w", command, MODEL, "-w")
    wrong("--prompt needs a value", "run", MODEL, "-p")
    wrong("--ids needs a value", "run", MODEL, "--ids")
    wrong("--json takes no value", "run", MODEL, "--json=1")
    wrong('"extra"', "run", MODEL, "extra", "-p", "x")
    wrong("no prompt", "run", MODEL)
    wrong("not two", "run", MODEL, "-p", "x", "--ids", "1")
    wrong("--ids is missing", "logits", MODEL, "--out", "x")
    wrong("--out is missing", "logits", MODEL, "--ids", "1")


@test
def numbers_are_strict():
    for option, values in {
        "-n": ["", "x", "1x", " 1", "-1", "+1", "0x10", "1.5", "99999999999999999999999"],
        "--temperature": ["", "x", "-1", "nan", "inf", "1x", " 1", "1e999"],
        "--top-k": ["-1", "4294967296", "x"],
        "--top-p": ["0", "1.1", "-0.1", "nan", "x"],
        "--min-p": ["1.1", "-0.1", "nan", ""],
        "--seed": ["-1", "x", "18446744073709551616", "1.0"],
        "--threads": ["0", "-1", "4097", "x", "1,2"],
        "--memory": ["", "0", "x", "G", "12X", "1GG", "-1G", "1e9", "1.2.3G", "1 G", "99999999T", "64GiBs"],
        "--isa": ["", "avx1024"],
        "--precision": ["", "fast"],
    }.items():
        for value in values:
            wrong(option, "run", MODEL, "--ids", "1", option, value)


@test
def lists_are_strict():
    for value in ["", " ", ",", "x", "1,x", "1;2", "1,,2", ",1", "-1", "1.0", "2147483648", "99999999999999999999999"]:
        wrong("--ids", "run", MODEL, "--ids", value)
    for value in ["", "0", "2,0", "1", "1,1,1", "x"]:
        wrong("--split", "logits", MODEL, "--ids", "1,2", "--split", value, "--out", "/nonexistent/x")
    for value in ["", "0", "1,0", "x"]:
        wrong("--threads", "bench", MODEL, "--threads", value)
    for option in ("--prompt", "--decode", "--repeat"):
        wrong(option, "bench", MODEL, option, "0")


@test
def sizes_have_units():
    for value in ["64G", "64GB", "64GiB", "1.5T", "900000K", "512M", "512Mi", "4000000000", "4000000000B", "64g"]:
        r = k3("run", MODEL, "--ids", "1", "-n", "1", "--memory", value)
        assert r.code == 0, (value, r)


@test
def full_stdout_is_reported():
    with open("/dev/full", "wb") as full:
        p = subprocess.run([K3, "--help"], stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 1 and p.stderr == b"k3: standard output: No space left on device\n", p


main()
