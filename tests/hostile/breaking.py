"""Breaks copies of k3-tiny: a copy is a folder of links until a file of it is replaced."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from harness import byte_vocabulary, copy_model, replace  # noqa: E402  (the path comes first)

LAYERS = "language_model.model.layers."


def shard_name(i):
    return "model-%05d-of-000014.safetensors" % i


class Model:
    """A copy of k3-tiny.  path is the folder; every change makes a file of its own."""

    def __init__(self):
        self.path = copy_model()

    def file(self, name):
        return os.path.join(self.path, name)

    def read(self, name):
        with open(self.file(name), "rb") as f:
            return f.read()

    def write(self, name, data):
        replace(self.file(name), data)

    def remove(self, name):
        os.unlink(self.file(name))

    def link(self, name, target):
        if os.path.lexists(self.file(name)):
            self.remove(name)
        os.symlink(target, self.file(name))

    def fifo(self, name):
        if os.path.lexists(self.file(name)):
            self.remove(name)
        os.mkfifo(self.file(name))

    def folder(self, name):
        if os.path.lexists(self.file(name)):
            self.remove(name)
        os.mkdir(self.file(name))

    # -- JSON files --

    def config(self, **fields):
        """Sets fields of text_config; None removes one.  linear__x is a field of linear_attn_config."""
        c = json.loads(self.read("config.json"))
        for key, value in fields.items():
            part = c["text_config"]
            if key.startswith("linear__"):
                part, key = part["linear_attn_config"], key[8:]
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value
        self.write("config.json", json.dumps(c))

    def edit(self, name, old, new):
        data = self.read(name)
        old, new = (x.encode() if isinstance(x, str) else x for x in (old, new))
        assert old in data, (name, old)
        self.write(name, data.replace(old, new, 1))

    def index(self, change):
        j = json.loads(self.read("model.safetensors.index.json"))
        change(j)
        self.write("model.safetensors.index.json", json.dumps(j))

    # -- shards --

    def shard(self, i):
        """(header as a dict, data) of shard i."""
        raw = self.read(shard_name(i))
        n = struct.unpack("<Q", raw[:8])[0]
        return json.loads(raw[8:8 + n]), raw[8 + n:]

    def write_shard(self, i, header, data, length=None):
        """header: a dict or bytes; length: what the file says about it, where that is not the truth."""
        raw = header if isinstance(header, bytes) else json.dumps(header).encode()
        self.write(shard_name(i), struct.pack("<Q", len(raw) if length is None else length) + raw + data)

    def header_text(self, i, change):
        """Replaces the text of shard i's header."""
        raw = self.read(shard_name(i))
        n = struct.unpack("<Q", raw[:8])[0]
        self.write_shard(i, change(raw[8:8 + n]), raw[8 + n:])

    def tensor(self, i, name, **fields):
        """Sets fields of one tensor in shard i's header."""
        header, data = self.shard(i)
        header[name].update(fields)
        self.write_shard(i, header, data)

    def drop_tensor(self, i, name):
        """Takes a tensor out of header and index."""
        header, data = self.shard(i)
        del header[name]
        self.write_shard(i, header, data)
        self.index(lambda j: j["weight_map"].pop(name))

    def patch_data(self, i, name, at, new):
        """Overwrites bytes of a tensor's data."""
        header, data = self.shard(i)
        at += header[name]["data_offsets"][0]
        self.write_shard(i, header, data[:at] + new + data[at + len(new):])

    # -- tokenizer --

    def vocabulary(self, text=None):
        self.write("tiktoken.model", byte_vocabulary() if text is None else text)
