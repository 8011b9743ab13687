#!/usr/bin/env python3
"""Writes the held-out test set of the micro-world as tasks for `k3 eval`.

    tasks.py OUT.jsonl [--seed S] [--each N]

Groups: recall-short (a few sentences between a fact and its question), recall-long (about 2,000 tokens between
them), tools (a call of lookup), arithmetic, copying.  Its seeds are not those of the training data.
"""
import argparse
import json
import random

import world


def task(group, i, messages, judge, most=60, **more):
    return {"id": f"{group}-{i:04d}", "group": group, "messages": messages, **more, "max_tokens": most, "judge": judge}


def short(rng, i):
    w = world.World(rng, rng.randint(2, 4), rng.randint(3, 5), rng.randint(4, 5))
    text = world.tell(w, rng.randint(3, 16), .15)
    while not w.facts:
        text += " " + world.tell(w, 1, 0)
    question, _, answer = w.ask(rng.choice(sorted(w.facts, key=str)))
    return task("recall-short", i, [{"role": "user", "content": text + "\n\n" + question}], {"exact": answer})


def long(rng, i):
    """The fact asked for is among the first; what follows must leave it alone and fill 2,000 tokens (some 275 sentences)."""
    w = world.World(rng, rng.randint(3, 6), rng.randint(4, 10), rng.randint(4, 10))
    early = world.tell(w, 6, 0)
    old = dict(w.facts)
    text = early + "\n" + world.tell(w, 270, rng.choice([.3, .6]))
    kept = [k for k, v in old.items() if list(w.facts).index(k) < len(old) and w.facts[k] == v and unchanged(w, k, old)]
    if not kept:
        return long(rng, i)
    question, _, answer = w.ask(rng.choice(kept))
    return task("recall-long", i, [{"role": "user", "content": text + "\n\n" + question}], {"exact": answer})


def unchanged(w, key, old):
    """True if nothing later spoke of the fact: it still stands before all facts that are new."""
    order = list(w.facts)
    return all(order.index(key) < order.index(k) for k in order if k not in old)


def tools(rng, i):
    g = rng.choice(world.GOODS + world.THINGS)
    return task("tools", i, [{"role": "user", "content": rng.choice(world.LOOK).format(g=g)}],
                {"call": {"name": "lookup", "arguments": {"key": g}}}, tools=world.TOOLS)


def arithmetic(rng, i):
    m = world.arithmetic(rng, 1)["messages"]
    return task("arithmetic", i, m[:1], {"number": int(m[1]["content"].split()[-1].rstrip("."))})


def copying(rng, i):
    m = world.copying(rng, 1)["messages"]
    return task("copying", i, m[:1], {"exact": m[1]["content"]})


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--seed", type=int, default=7000001)
    ap.add_argument("--each", type=int, default=100)
    a = ap.parse_args()
    rng = random.Random(a.seed)
    with open(a.out, "w") as f:
        for make, n in ((short, a.each), (long, a.each // 2), (tools, a.each), (arithmetic, a.each), (copying, a.each // 2)):
            for i in range(n):
                f.write(json.dumps(make(rng, i)) + "\n")


if __name__ == "__main__":
    main()
