"""k3 logits: the golden logits for every split, and files that appear whole or not at all."""
import os
import resource
import signal
import subprocess
import time

from harness import (TIMEOUT, copy_model, expected, floats, fresh_directory, golden, goldens, ids_text, k3, main,
                     start, test)


def logits(model, ids, *more, out=None):
    path = out or os.path.join(fresh_directory(), "logits")
    r = k3("logits", model, "--ids", ids_text(ids), "--out", path, *more)
    assert r.code == 0 and r.out == b"" and r.err == b"", r
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)], os.listdir(os.path.dirname(path))
    return path


def content(path):
    with open(path, "rb") as f:
        return f.read()


@test
def golden_logits_for_every_split():
    for name in goldens():
        e = expected(name)
        want = floats(os.path.join(golden(name), e["logits"]["file"]))
        for split in e["splits"]:
            got = floats(logits(golden(name), e["ids"], "--split", ids_text(split)))
            assert len(got) == len(want), (name, split, len(got), len(want))
            worst = max(abs(g - w) / max(1, abs(w)) for g, w in zip(got, want))
            assert worst <= e["tolerance"], (name, split, worst)
            print("%s, %d pieces: largest error %.2g" % (name, len(split), worst))


@test
def one_piece_without_a_split():
    ids = expected()["ids"]
    assert content(logits(golden(), ids)) == content(logits(golden(), ids, "--split", len(ids)))


@test
def the_same_bits_for_any_number_of_threads():
    ids = expected()["ids"]
    first = content(logits(golden(), ids, "--threads", 1))
    for threads in (1, 2, 3, 8):
        assert content(logits(golden(), ids, "--threads", threads)) == first, threads


@test
def an_old_file_is_replaced_and_a_link_kept():
    ids = [1, 2]
    folder = fresh_directory()
    target = os.path.join(folder, "target")
    with open(target, "w", encoding="utf-8") as f:
        f.write("old")
    link = os.path.join(fresh_directory(), "link")
    os.symlink(target, link)
    logits(golden(), ids, out=link)
    assert os.path.islink(link) and os.path.getsize(target) == 2 * 512 * 4
    assert os.listdir(folder) == ["target"]


@test
def permissions_follow_the_umask():
    old = os.umask(0o027)
    try:
        path = logits(golden(), [1])
    finally:
        os.umask(old)
    assert os.stat(path).st_mode & 0o777 == 0o640, oct(os.stat(path).st_mode)


def expect_failure(out, reason, folder=None, **more):
    r = k3("logits", golden(), "--ids", "1,2,3", "--out", out, **more)
    assert r.code == 1 and len(r.lines) == 1 and reason in r.lines[0] and out in r.lines[0], r
    if folder:
        assert os.listdir(folder) == [], os.listdir(folder)


@test
def what_cannot_be_written_is_named():
    folder = fresh_directory()
    expect_failure(folder, "Is a directory", folder)
    expect_failure("/nonexistent/folder/file", "No such file or directory")
    expect_failure(os.path.join(golden(), "config.json", "x"), "Not a directory")
    expect_failure("/dev/full", "No space left on device")
    assert os.path.exists("/dev/full")  # written in place: a device is not replaced


@test
def a_device_is_written_in_place():
    r = k3("logits", golden(), "--ids", "1", "--out", "/dev/null")
    assert r.code == 0 and r.err == b"" and not os.path.isfile("/dev/null"), r


@test
def a_disk_that_fills_up_leaves_nothing():
    """A limit on the size of files stands for the full disk."""
    folder = fresh_directory()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    expect_failure(os.path.join(folder, "logits"), "File too large", folder, preexec_fn=limit)


@test
def a_full_file_system_leaves_nothing():
    folder = fresh_directory()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], stderr=subprocess.DEVNULL)
    if mount.returncode:
        print("a full file system: not tried, mounting is not allowed here")
        return
    try:
        expect_failure(os.path.join(folder, "logits"), "No space left on device", folder)
    finally:
        subprocess.run(["umount", folder], check=True)


@test
def a_failing_run_leaves_the_old_file():
    path = os.path.join(fresh_directory(), "logits")
    with open(path, "w", encoding="utf-8") as f:
        f.write("old")
    model = copy_model()
    os.unlink(os.path.join(model, "model-00003-of-000014.safetensors"))
    r = k3("logits", model, "--ids", "1", "--out", path)
    assert r.code == 1 and content(path) == b"old", r
    assert os.listdir(os.path.dirname(path)) == ["logits"]


@test
def a_signal_leaves_nothing():
    folder = fresh_directory()
    ids = os.path.join(fresh_directory(), "ids")
    with open(ids, "w", encoding="utf-8") as f:
        f.write("7 " * 30000)
    split = ids_text([1] * 30000)
    p = start("logits", golden(), "--ids", "@" + ids, "--split", split, "--out", os.path.join(folder, "logits"))
    deadline = time.monotonic() + TIMEOUT
    while not os.listdir(folder) and time.monotonic() < deadline and p.poll() is None:
        time.sleep(0.01)
    assert os.listdir(folder), p.communicate()
    time.sleep(0.2)
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=TIMEOUT)
    assert p.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM) and err == b"", (p.returncode, err)
    assert os.listdir(folder) == [], os.listdir(folder)


@test
def a_piece_beyond_the_budget_is_refused():
    ids = os.path.join(fresh_directory(), "ids")
    with open(ids, "w", encoding="utf-8") as f:
        f.write("7 " * 100000)
    r = k3("logits", golden(), "--ids", "@" + ids, "--memory", "100M", "--out", os.path.join(fresh_directory(), "x"))
    assert r.code == 1 and len(r.lines) == 1 and "--split" in r.lines[0] and "204.8 MB" in r.lines[0], r


main()
