"""Text to ids with a tiktoken.model: K3's cutting into pieces (for ASCII text) and merges by rank."""
import base64
import functools
import json
import os
import re

TAIL = r"(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?"
PIECES = re.compile(r"[^\r\nA-Za-z0-9]?[A-Z]*[a-z]+" + TAIL + r"|[^\r\nA-Za-z0-9]?[A-Z]+[a-z]*" + TAIL +
                    r"|[0-9]{1,3}| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class Tokenizer:
    def __init__(self, path):
        with open(os.path.join(path, "tiktoken.model")) as f:
            self.rank = {base64.b64decode(t): int(r) for t, r in (line.split() for line in f)}
        with open(os.path.join(path, "tokenizer_config.json")) as f:
            self.special = {t["content"]: int(i) for i, t in json.load(f)["added_tokens_decoder"].items()}
        self.vocab = len(self.rank) + 256
        self.piece = functools.lru_cache(None)(self.merge)

    def merge(self, piece):
        parts = [bytes([b]) for b in piece.encode()]
        while len(parts) > 1:
            rank, i = min((self.rank.get(a + b, 1 << 30), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
            if rank == 1 << 30:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [self.rank[p] for p in parts]

    def encode(self, text):
        return [i for piece in PIECES.findall(text) for i in self.piece(piece)]

    def segments(self, pieces):
        """(piece, special, target) triples to ids and targets."""
        ids, targets = [], []
        for s, special, target in pieces:
            new = [self.special[s]] if special else self.encode(s)
            ids += new
            targets += [target] * len(new)
        return ids, targets
