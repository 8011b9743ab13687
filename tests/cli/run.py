"""k3 run: the golden continuation, text in and out, stopping, interruption."""
import json
import os
import re
import select
import signal
import subprocess
import time

from harness import (K3, TIMEOUT, byte_vocabulary, copy_model, endless_model, expected, fresh_directory, golden, goldens,
                     ids_text, k3, main, model_with_tokenizer, replace, start, test)

GREEDY = ["--temperature", "0"]


def expect_continuation(name, *more, model=None):
    e = expected(name)
    r = k3("run", model or golden(name), "--ids", ids_text(e["ids"]), "-n", len(e["greedy"]), *GREEDY, "--json", *more)
    assert r.code == 0 and r.err == b"", r
    j = r.json()
    assert j["ids"] == e["greedy"], (j["ids"], e["greedy"])
    assert j["prompt_ids"] == e["ids"]
    return j


@test
def golden_continuation():
    for name in goldens():
        expect_continuation(name)


@test
def golden_continuation_with_other_threads():
    for threads in (1, 2, 3, 8):
        assert expect_continuation("k3-tiny", "--threads", threads)["threads"] == threads


@test
def golden_continuation_with_every_isa():
    known = re.search(r"can run: (.*)$", k3("run", golden(), "--ids", "1", "--isa", "none").lines[0]).group(1)
    for isa in known.split(", "):
        assert expect_continuation("k3-tiny", "--isa", isa)["isa"] == isa


@test
def json_has_all_of_it():
    j = expect_continuation("k3-tiny", "--seed", "7", model=copy_model())
    assert j["stop"] == "length" and j["seed"] == 7 and j["text"] is None and j["error"] is None
    t = j["timings"]
    assert t["prompt_tokens"] == 48 and t["decode_tokens"] == len(j["ids"]) - 1
    for key in ("load_seconds", "prompt_seconds", "decode_seconds", "prompt_tokens_per_second",
                "decode_tokens_per_second"):
        assert t[key] > 0, key


@test
def ids_stream_without_a_tokenizer():
    e = expected()
    r = k3("run", copy_model(), "--ids", ids_text(e["ids"]), "-n", 5, *GREEDY)
    assert r.code == 0 and r.out.decode() == " ".join(map(str, e["greedy"][:5])) + "\n", r
    assert len(r.lines) == 1 and re.search(r"prompt 48 tokens .* decode 4 tokens .*tokens/s", r.lines[0]), r


@test
def quiet_is_quiet():
    r = k3("run", golden(), "--ids", "3,4", "-n", 2, "--quiet")
    assert r.code == 0 and r.err == b"", r


@test
def ids_come_from_files_too():
    e = expected()
    path = os.path.join(fresh_directory(), "ids")
    replace(path, "\n".join(map(str, e["ids"])) + "\n")
    r = k3("run", golden(), "--ids", "@" + path, "-n", 3, *GREEDY, "--json")
    assert r.json()["ids"] == e["greedy"][:3], r
    r = k3("run", golden(), "--ids", "@-", "-n", 3, *GREEDY, "--json", stdin=" ".join(map(str, e["ids"])))
    assert r.json()["ids"] == e["greedy"][:3], r


@test
def ids_become_text_where_there_is_a_tokenizer():
    """And nothing is banned: the continuation stays the model's own."""
    e = expected()
    model = model_with_tokenizer()
    r = k3("run", model, "--ids", ids_text(e["ids"]), "-n", len(e["greedy"]), *GREEDY, "--json").json()
    assert r["ids"] == e["greedy"] and max(e["greedy"]) >= 256, r
    assert "<|reserved_token_475|>" in r["text"], r


@test
def no_tokens_are_made_for_n_0():
    r = k3("run", golden(), "--ids", "1", "-n", 0, "--json")
    assert r.code == 0 and r.json()["ids"] == [] and r.json()["stop"] == "length", r


@test
def eos_stops():
    """The second greedy id is made the end of a text, in generation_config.json."""
    e = expected()
    model = copy_model()
    replace(os.path.join(model, "generation_config.json"), json.dumps({"eos_token_id": [e["greedy"][1], 5]}))
    j = k3("run", model, "--ids", ids_text(e["ids"]), *GREEDY, "--json").json()
    assert j["ids"] == e["greedy"][:1] and j["stop"] == "eos" and j["stop_id"] == e["greedy"][1], j


@test
def seeds_repeat():
    args = ["run", endless_model(), "--ids", "5,6,7", "-n", 12, "--json"]
    a, b, c = (k3(*args, "--seed", s).json()["ids"] for s in (1, 1, 2))
    assert a == b and a != c, (a, b, c)
    free = [k3(*args).json() for _ in range(2)]
    assert free[0]["seed"] != free[1]["seed"], free
    again = k3(*args, "--seed", free[0]["seed"]).json()
    assert again["ids"] == free[0]["ids"]


@test
def text_goes_in_and_out():
    model = model_with_tokenizer()
    j = k3("run", model, "-p", "Hello", "-n", 8, "--seed", 3, "--json").json()
    assert j["prompt_ids"] == list(b"Hello"), j
    assert isinstance(j["text"], str) and len(j["ids"]) == 8, j
    plain = k3("run", model, "-p", "Hello", "-n", 8, "--seed", 3, "--quiet")
    assert plain.code == 0 and plain.out.decode("utf-8") == j["text"], (plain, j)
    path = os.path.join(fresh_directory(), "prompt")
    replace(path, "Hello")
    assert k3("run", model, "-f", path, "-n", 8, "--seed", 3, "--json").json()["ids"] == j["ids"]
    assert k3("run", model, "-f", "-", "-n", 8, "--seed", 3, "--json", stdin="Hello").json()["ids"] == j["ids"]


@test
def text_is_valid_utf8():
    """Single bytes make invalid sequences all the time."""
    model = model_with_tokenizer()
    for seed in range(4):
        args = ["run", model, "-p", "x", "-n", 64, "--temperature", 3, "--top-p", 1, "--seed", seed]
        text = k3(*args, "--json").json()["text"]
        assert k3(*args, "--quiet").out.decode("utf-8") == text


@test
def reserved_ids_are_never_picked():
    """Without names every special slot is reserved, and k3-tiny would pick them half of the time."""
    model = model_with_tokenizer()
    hot = ["-n", 100, "--temperature", 5, "--top-p", 1, "--seed", 1, "--json"]
    j = k3("run", model, "-p", "x", *hot).json()
    assert max(j["ids"]) < 256 and len(j["ids"]) == 100, j["ids"]
    j = k3("run", model, "--ids", "120", *hot).json()
    assert max(j["ids"]) >= 256, j["ids"]


@test
def special_tokens_only_when_asked_for():
    model = model_with_tokenizer()
    replace(os.path.join(model, "tokenizer_config.json"),
            json.dumps({"added_tokens_decoder": {"300": {"content": "<|open|>", "special": True}}}))
    spelled = list(b"a<|open|>")
    assert k3("run", model, "-p", "a<|open|>", "-n", 1, "--json").json()["prompt_ids"] == spelled
    assert k3("run", model, "-p", "a<|open|>", "-n", 1, "--special", "--json").json()["prompt_ids"] == [97, 300]


@test
def a_prompt_needs_a_tokenizer():
    r = k3("run", copy_model(), "-p", "Hello")
    assert r.code == 1 and len(r.lines) == 1 and "tiktoken.model" in r.lines[0], r


def interrupt(send, args, ready):
    """Starts a run that would take long, interrupts it when `ready` bytes of output are there."""
    p = start(*args)
    deadline = time.monotonic() + TIMEOUT
    out = b""
    while len(out) < ready and time.monotonic() < deadline:
        if select.select([p.stdout], [], [], 1)[0]:
            out += os.read(p.stdout.fileno(), 4096)
    p.send_signal(send)
    rest, err = p.communicate(timeout=TIMEOUT)
    return p.returncode, out + rest, err


@test
def an_interrupt_keeps_what_was_made():
    for send in (signal.SIGINT, signal.SIGTERM):
        began = time.monotonic()
        code, out, err = interrupt(send, ["run", endless_model(), "--ids", "5", "-n", 100000000], ready=20)
        assert code == 128 + send and out.endswith(b"\n") and len(out.split()) > 3, (code, out[-200:], err)
        assert b"tokens/s" in err and err.count(b"\n") == 1, err
        assert time.monotonic() - began < 60


@test
def an_interrupt_with_json_gives_an_object():
    """Nothing shows when decoding starts: the signal is sent later and later until it met the work."""
    for wait in (0.3, 1, 3, 9):
        p = start("run", endless_model(), "--ids", "5", "-n", 100000000, "--json")
        time.sleep(wait)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=TIMEOUT)
        if out:
            break
    assert p.returncode == 130 and err == b"", (p.returncode, err)
    j = json.loads(out)
    assert j["stop"] == "interrupted", j
    assert j["timings"]["decode_tokens"] in (len(j["ids"]), len(j["ids"]) - 1, 0), j["timings"]


@test
def a_long_prompt_can_be_interrupted():
    path = os.path.join(fresh_directory(), "ids")
    replace(path, "7 " * 3000000)
    began = time.monotonic()
    p = start("run", golden(), "--ids", "@" + path, "--json")
    time.sleep(4)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=TIMEOUT)
    assert p.returncode in (130, -signal.SIGINT), (p.returncode, err)
    assert time.monotonic() - began < 60


@test
def a_reader_that_goes_away_is_no_news():
    p = start("run", endless_model(), "--ids", "5", "-n", 100000000)
    os.read(p.stdout.fileno(), 10)
    p.stdout.close()
    p.stdout = None
    _, err = p.communicate(timeout=TIMEOUT)
    assert p.returncode == 1 and err == b"", (p.returncode, err)


@test
def a_full_disk_on_stdout_is_reported():
    with open("/dev/full", "wb") as full:
        p = subprocess.run([K3, "run", golden(), "--ids", "5"], stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT)
    assert p.returncode == 1 and p.stderr == b"k3: standard output: No space left on device\n", p


@test
def the_bar_is_for_terminals():
    """On a terminal a bar is drawn and taken away again; with --quiet it is not."""
    import pty
    for quiet in ([], ["--quiet"]):
        try:
            main_end, other_end = pty.openpty()
        except OSError as e:  # a container without /dev/pts
            print("not tried: no terminal can be opened:", e)
            return
        p = subprocess.Popen([K3, "run", golden(), "--ids", "5", "-n", "2", *quiet], stdout=subprocess.PIPE,
                             stderr=other_end, env={**os.environ, "TERM": "xterm"})
        p.communicate(timeout=TIMEOUT)
        os.close(other_end)
        seen = b""
        try:
            while True:
                got = os.read(main_end, 4096)
                if not got:
                    break
                seen += got
        except OSError:
            pass  # the other end is closed
        os.close(main_end)
        if quiet:
            assert seen == b"", seen
        else:
            assert b"loading [" in seen and b"\r\x1b[Kk3: " in seen, seen


@test
def the_vocabulary_of_the_tests_is_whole():
    assert byte_vocabulary().count("\n") == 256


main()
