"""What the tests of the program share: running k3, small checkpoints, counts as Check prints them.

K3 names the program (default: k3 in K3_BUILDDIR).  The golden models are in the source, or made from their seeds in
the build directory before the tests run.  Any report of a sanitizer and any death by an unexpected signal is a failure.
"""
import array
import atexit
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

SOURCE = os.environ.get("K3_SRCDIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("K3_BUILDDIR") or "."
K3 = os.environ.get("K3") or os.path.join(BUILD, "k3")
FOLDERS = [os.path.join(BUILD, "tests", "goldens"), os.path.join(SOURCE, "tests", "data", "models")]
SANITIZER = re.compile(rb"Sanitizer|runtime error:")
TIMEOUT = 300
INDEX = "model.safetensors.index.json"

if not os.path.exists(K3):
    print("skipped: there is no program at", K3)
    sys.exit(77)

TEMP = tempfile.mkdtemp(prefix="k3-test-")
atexit.register(shutil.rmtree, TEMP, ignore_errors=True)


class Result:
    """How a run of the program ended: code (negative: the signal), out and err as bytes."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self):
        return self.err.decode("utf-8", "replace").splitlines()

    def json(self):
        return json.loads(self.out.decode("utf-8"))

    def __repr__(self):
        return "exit %s, stdout %r, stderr %r" % (self.code, self.out[:300], self.err[:1500])


def k3(*args, stdin=None, **more):
    """Runs the program to its end."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    p = subprocess.run([K3, *map(os.fspath, map(str, args))], input=data if data is not None else b"",
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT, **more)
    assert not SANITIZER.search(p.stderr), p.stderr.decode("utf-8", "replace")
    return Result(p.returncode, p.stdout, p.stderr)


def start(*args, **more):
    """Starts the program; the caller ends it."""
    return subprocess.Popen([K3, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def goldens():
    """Names of the golden models whose weights are here."""
    found = set()
    for folder in filter(os.path.isdir, FOLDERS):
        found.update(n for n in os.listdir(folder) if os.path.exists(os.path.join(folder, n, INDEX)))
    return sorted(found)


def golden(name="k3-tiny"):
    """The folder of a golden model."""
    return next(os.path.join(f, name) for f in FOLDERS if os.path.exists(os.path.join(f, name, INDEX)))


def expected(name="k3-tiny"):
    with open(os.path.join(golden(name), "expected.json"), encoding="utf-8") as f:
        return json.load(f)


def ids_text(ids):
    return ",".join(map(str, ids))


def floats(path):
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    if sys.byteorder == "big":
        values.byteswap()
    return values


def fresh_directory():
    return tempfile.mkdtemp(dir=TEMP)


def copy_model(name="k3-tiny"):
    """A folder of links to a golden model's files, without a tokenizer: replace a file, never write into it."""
    to = fresh_directory()
    for f in os.listdir(golden(name)):
        if not f.startswith("expected") and not f.startswith("tok") and f != "tiktoken.model":
            os.symlink(os.path.abspath(os.path.join(golden(name), f)), os.path.join(to, f))
    return to


def replace(path, data):
    """Puts a file in the place of a link or a file."""
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def byte_vocabulary():
    """A tiktoken.model of the 256 single bytes: with its 256 special slots it fits k3-tiny's 512 ids."""
    return "".join("%s %d\n" % (base64.b64encode(bytes([i])).decode(), i) for i in range(256))


def endless_model():
    """A copy of k3-tiny in which no id ends a text."""
    to = copy_model()
    replace(os.path.join(to, "generation_config.json"), '{"eos_token_id": []}')
    return to


def model_with_tokenizer():
    """An endless model with a byte for each of the first 256 ids."""
    to = endless_model()
    replace(os.path.join(to, "tiktoken.model"), byte_vocabulary())
    return to


TESTS = []


def test(function):
    TESTS.append(function)
    return function


def finish(checks, failures, errors):
    """Prints the counts as Check does, and exits."""
    percent = 100 * (checks - failures - errors) // max(checks, 1)
    print("%d%%: Checks: %d, Failures: %d, Errors: %d" % (percent, checks, failures, errors))
    sys.exit(1 if failures or errors or not checks else 0)


def main():
    """Runs every @test and counts as Check does."""
    failures = errors = 0
    for function in TESTS:
        try:
            function()
        except AssertionError:
            failures += 1
            print("FAILED %s" % function.__name__)
            traceback.print_exc(file=sys.stdout)
        except Exception:  # the harness itself, a timeout, a missing file
            errors += 1
            print("ERROR %s" % function.__name__)
            traceback.print_exc(file=sys.stdout)
    finish(len(TESTS), failures, errors)
