#!/usr/bin/env python3
"""Makes a tokenizer for small test models: tiktoken.model and tokenizer_config.json.

    make_tokenizer.py DIR --vocab 1000 [--text FILE]

The vocabulary has `vocab` ids: the 256 single bytes in the released file's order, then merges that plain
byte pair encoding learns from the text (English-like sentences of its own if none is given), then the 256
special slots with K3's names.  The same arguments give the same files.
"""
import argparse
import base64
import json
import os
import re
import sys

SLOTS = 256
# Names of K3's special slots by position behind the base tokens.
NAMES = {0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>",
         6: "[start_header_id]", 7: "[end_header_id]", 9: "[EOT]", 18: "<|media_begin|>",
         19: "<|media_content|>", 20: "<|media_end|>", 21: "<|media_pad|>", 65: "<osagent_mode>",
         254: "[UNK]", 255: "[PAD]"}

SUBJECTS = "the model|a reader|the old machine|our neighbour|every engineer|the first token|a small library|" \
           "the long river|some people|a quiet morning|the night train|that question|the other answer".split("|")
VERBS = "reads|writes|remembers|carries|finds|would like|moves|keeps|returns|measures|explains|understands".split("|")
OBJECTS = "a letter|the numbers|another story|what is left|one page of the book|every word|the same message|" \
          "its weights|the memory of a day|something simple|a thousand experts|the state of things".split("|")
WORDS = """
about above across act after again against age air all almost alone along already also always among and animal
answer any appear arm around ask away back ball base because become bed been before began behind being believe below
best better between big bird black blue boat body bone book both bottom box boy brain bread break bright bring brother
brought build building built burn business busy but call came can cannot capital car care carry case cat catch cause
center certain chair chance change chapter check child children choose church circle city class clear climb close cloud
coast cold color column come common company compare complete computer condition consider contain continue control cook
copy corner correct cost could count country course cover cross crowd current cut dance dark daughter day dead deal
decide deep describe desert develop did difference different direct discover distance divide doctor does dog door down
draw dream drive drop dry during each early earth ease east easy eat edge effect egg eight either electric element
energy engine enough enter equal even evening ever example except excite exercise expect experience experiment eye face
fact fall family famous far farm fast father fear feel feet few field fight figure fill final find fine finger finish
fire first fish five floor flow flower fly follow food foot force foreign forest form forward found four free fresh
friend from front fruit full game garden gave general gentle girl give glass gold gone good govern grand grass gray
great green ground group grow guess guide had hair half hand happen happy hard has have head hear heart heat heavy
height held help here high history hold hole home hope horse hot hour house how huge human hundred hunt hurry idea
imagine important inch include increase indicate industry information insect instant instrument interest into invent
island join joy jump just keep key kind king knew know lady lake land language large last late laugh law lay lead learn
""".split()
ENDINGS = ["in the morning", "without a word", "before the others", "on the way home", "again and again",
           "with great care", "under the bridge", "as it should", "for the last time", "in 1984", "at half past 7"]


def built_in_text():
    lines = []
    for i, subject in enumerate(SUBJECTS):
        for k, verb in enumerate(VERBS):
            what, ending = OBJECTS[(3 * i + 5 * k) % len(OBJECTS)], ENDINGS[(7 * i + k) % len(ENDINGS)]
            lines.append(f"{subject[0].upper()}{subject[1:]} {verb} {what} {ending}.")
    lines += [" ".join(WORDS[i::16]) for i in range(16)]
    return "\n".join(lines) + "\n"


def single_bytes():
    """The 256 bytes as in the released file: those that print in Latin-1 first."""
    printing = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    return [bytes([b]) for b in printing + [b for b in range(256) if b not in printing]]


def learn(text, merges):
    """Merges the most frequent pair (the lowest bytes on ties) of the words' parts, again and again."""
    counts = {}
    for word in re.findall(r" ?[^\W\d_]+|\d{1,3}| ?[^\w\s]+|\s+", text):
        counts[word] = counts.get(word, 0) + 1
    words = [([bytes([b]) for b in word.encode()], n) for word, n in counts.items()]
    known, tokens = set(), []
    while len(tokens) < merges:
        pairs = {}
        for parts, n in words:
            for pair in zip(parts, parts[1:]):
                pairs[pair] = pairs.get(pair, 0) + n
        # Two pairs can join to the same bytes: a token is learned once.
        fresh = [(n, pair) for pair, n in pairs.items() if pair[0] + pair[1] not in known]
        if not fresh:
            sys.exit(f"the text holds only {len(tokens)} merges: {merges} are wanted, give a longer one")
        left, right = min(fresh, key=lambda entry: (-entry[0], entry[1]))[1]
        known.add(left + right)
        tokens.append(left + right)
        for parts, _ in words:
            i = 0
            while i + 1 < len(parts):
                if parts[i] == left and parts[i + 1] == right:
                    parts[i:i + 2] = [left + right]
                i += 1
    return tokens


def config(base):
    added = {str(base + slot): {"content": name, "lstrip": False, "normalized": False, "rstrip": False,
                                "single_word": False, "special": True} for slot, name in NAMES.items()}
    return {"added_tokens_decoder": added, "bos_token": "[BOS]", "eos_token": "[EOS]", "unk_token": "[UNK]",
            "pad_token": "[PAD]", "tokenizer_class": "TikTokenTokenizer"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--vocab", type=int, required=True, help="ids in all, 512 or more")
    parser.add_argument("--text", help="a UTF-8 file to learn merges from")
    args = parser.parse_args()
    base = args.vocab - SLOTS
    if base < 256:
        parser.error(f"--vocab {args.vocab}: 256 bytes and {SLOTS} special slots need 512 or more")
    text = open(args.text, encoding="utf-8", errors="replace").read() if args.text else built_in_text()
    tokens = single_bytes() + learn(text, base - 256)
    os.makedirs(args.dir, exist_ok=True)
    with open(os.path.join(args.dir, "tiktoken.model"), "w", encoding="ascii", newline="\n") as f:
        f.writelines(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens))
    with open(os.path.join(args.dir, "tokenizer_config.json"), "w", encoding="utf-8", newline="\n") as f:
        json.dump(config(base), f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
