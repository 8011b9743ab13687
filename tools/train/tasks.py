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

LONG_KINDS = ["where", "person", "count", "colour"]
TOKENS_A_WORD = 1.2         # of the model's own tokenizer


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
    """The fact asked for is among the first; what follows leaves it alone and fills 2,000 tokens or a little more."""
    w = world.World(rng, rng.randint(3, 6), rng.randint(4, 10), rng.randint(4, 10))
    text = world.tell(w, 8, 0)
    keys = sorted(k for k in w.facts if k[0] == LONG_KINDS[i % 4])
    if not keys:
        return long(rng, i)
    key = rng.choice(keys)
    fill, later = rng.choice([.1, .3, .6]), ""
    while len(later.split()) < 2000 / TOKENS_A_WORD:
        w.turn(keep=key[1:] if isinstance(key[1], str) else ())
        later += "\n" + world.tell(w, 12, fill)
    question, _, answer = w.ask(key)
    return task("recall-long", i, [{"role": "user", "content": text + later + "\n\n" + question}], {"exact": answer})


def tools(rng, i):
    m = world.lookup(rng, 1)["messages"]
    call = m[1]["tool_calls"][0]["function"]
    judge = {"call": {"name": call["name"], "arguments": json.loads(call["arguments"])}}
    return task("tools", i, m[:1], judge, tools=world.TOOLS)


def arithmetic(rng, i):
    m = world.arithmetic(rng, 1)["messages"]
    return task("arithmetic", i, m[:1], {"exact": m[1]["content"]})


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
        half = a.each // 2
        for make, n in (short, a.each), (long, half), (tools, a.each), (arithmetic, a.each), (copying, half):
            for i in range(n):
                f.write(json.dumps(make(rng, i)) + "\n")


if __name__ == "__main__":
    main()
