"""Runs the table of hostile and broken inputs (cases.py): each must end with its exit code and, where that is not 0,
with one line on stderr that names the culprit; without a signal, a sanitizer's report, a hang or a memory bomb.

usage: hostile.py [PART OF A NAME]...   runs those cases only
"""
import os
import re
import resource
import subprocess
import sys
import threading

import breaking  # first: it makes the harness importable
from cases import CASES
from harness import K3, SANITIZER, finish, fresh_directory

LONGEST = 120  # seconds; a sanitized program on a busy machine is slow, a hang is for ever
MOST_MEMORY = 1 << 30  # bytes of the largest process, a sanitizer's shadow included


def run(args, stdin):
    """(exit code, stderr); the code is negative for a signal, None where time ran out."""
    p = subprocess.Popen([K3, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    late = threading.Event()

    def give_up():
        late.set()
        p.kill()

    timer = threading.Timer(LONGEST, give_up)
    timer.start()
    try:
        _, err = p.communicate(stdin)
    finally:
        timer.cancel()
    return (None if late.is_set() else p.returncode), err


def complaints(case, code, err):
    """What is wrong with an ending; empty: nothing."""
    found = []
    lines = err.decode("utf-8", "replace").splitlines()
    if SANITIZER.search(err):
        found.append("a sanitizer reports")
    if code is None:
        found.append("did not end within %d s" % LONGEST)
    elif code != case.code:
        found.append("exit %s instead of %d" % (code, case.code))
    if case.code == 0:
        if lines:
            found.append("stderr is not empty")
    elif len(lines) != 1 or not lines[0].startswith("k3: "):
        found.append("stderr is not one line of k3's")
    elif not re.search(case.pattern, lines[0]):
        found.append("the line does not match %r" % case.pattern)
    elif len(lines[0]) > 1100:
        found.append("the line has %d characters" % len(lines[0]))
    if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 > MOST_MEMORY:
        found.append("a process took %d KB" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return found


def try_case(case):
    """True where every command of the case ends as it should."""
    good = True
    model = breaking.Model()
    place = {"model": model.path, "temp": fresh_directory()}
    case.breaks(model)
    for command in case.commands:
        args = [part.format(**place) for part in command]
        code, err = run(args, case.stdin)
        found = complaints(case, code, err)
        if found:
            good = False
            print("FAILED %s: k3 %s: %s" % (case.name, " ".join(args)[:300], "; ".join(found)))
            print("  stderr: %r" % err[:3000])
        elif os.environ.get("VERBOSE"):
            print("ok %s: %s" % (case.name, err.decode("utf-8", "replace").strip()))
    return good


def main():
    chosen = [c for c in CASES if len(sys.argv) == 1 or any(part in c.name for part in sys.argv[1:])]
    failures = errors = 0
    for case in chosen:
        try:
            failures += not try_case(case)
        except Exception as e:  # the case itself could not be made
            errors += 1
            print("ERROR %s: %r" % (case.name, e))
    finish(len(chosen), failures, errors)


main()
