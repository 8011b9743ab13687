#!/usr/bin/env python3
"""Writes the tokenizer's training text, or packed rows of tokens for train.py.

    data.py text OUT.txt [--documents N]            what make_tokenizer.py learns its merges from
    data.py rows TOKENIZER_DIR OUT_DIR --length L --rows N [--seed S]

Rows hold L + 1 tokens (uint16) and their weights in the loss (uint8: most where the model has to answer, for that is a
small part of all text; 0 behind the last document).  A row starts with a document and holds as many whole ones as fit; the documents' sizes
follow the row's.
"""
import argparse
import os
import random

import numpy as np

import chat
import world
from tokens import Tokenizer


WEIGHTS = {0: 1, chat.MARKUP: 2, chat.BODY: 16}


def text(a):
    rng = random.Random(a.seed)
    with open(a.out, "w") as f:
        for i in range(a.documents):
            pieces = chat.segments(world.document(rng, 250))
            # a line a piece, but a leading blank stays with its word
            f.write("".join(s if s.startswith(" ") else "\n" + s for s, special, _ in pieces if not special))


def row(rng, t, length):
    ids, weights, misses = [], [], 0
    while misses < 3 and length + 1 - len(ids) > 40:
        new, target = t.segments(chat.segments(world.document(rng, min(length + 1 - len(ids), length))))
        if len(ids) + len(new) > length + 1:
            misses += 1
            continue
        ids += new
        weights += [WEIGHTS[x] for x in target]
    pad = length + 1 - len(ids)
    return ids + [0] * pad, weights + [0] * pad


def rows(a):
    rng, t = random.Random(a.seed * 100003 + a.length), Tokenizer(a.tokenizer)
    tokens, weights = np.zeros((a.rows, a.length + 1), np.uint16), np.zeros((a.rows, a.length + 1), np.uint8)
    for i in range(a.rows):
        tokens[i], weights[i] = row(rng, t, a.length)
    os.makedirs(a.out, exist_ok=True)
    np.save(os.path.join(a.out, f"tokens-{a.length}.npy"), tokens)
    np.save(os.path.join(a.out, f"weights-{a.length}.npy"), weights)
    print(f"{a.rows} rows of {a.length}: {(weights > 0).mean():.0%} filled, {(weights == 16).mean():.0%} answers")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(required=True)
    p = sub.add_parser("text")
    p.add_argument("out")
    p.add_argument("--documents", type=int, default=6000)
    p.set_defaults(run=text)
    p = sub.add_parser("rows")
    p.add_argument("tokenizer")
    p.add_argument("out")
    p.add_argument("--length", type=int, required=True)
    p.add_argument("--rows", type=int, required=True)
    p.set_defaults(run=rows)
    for p in sub.choices.values():
        p.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
