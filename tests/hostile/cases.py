"""The table of hostile and broken inputs: how a copy of k3-tiny is broken, which commands meet it, how they must end.

Command lines may name {model}, the broken copy, and {temp}, an empty directory.
exit 0 stands for odd inputs that are valid.
"""
import base64
import json
import os
import struct

from breaking import LAYERS, shard_name
from harness import byte_vocabulary, golden

INSPECT = ["inspect", "{model}"]
RUN = ["run", "{model}", "--ids", "1,2,3", "-n", "1", "--quiet"]
TEXT = ["run", "{model}", "-p", "Hello world", "-n", "1", "--quiet"]
Q_PROJ = LAYERS + "1.self_attn.q_proj.weight"  # BF16 [96, 128] in shard 2
Q_CONV = LAYERS + "1.self_attn.q_conv1d.weight"  # F32 [96, 1, 4]
A_LOG = LAYERS + "1.self_attn.A_log"  # F32 [32], 3 used
EXPERT = LAYERS + "5.block_sparse_moe.experts.7.w3.weight_"  # U8, in shard 6
EMBEDDING = "language_model.model.embed_tokens.weight"  # in shard 14

CASES = []


class Case:
    def __init__(self, name, pattern, breaks, code, commands, stdin):
        self.name, self.pattern, self.code, self.commands, self.stdin = name, pattern, code, commands, stdin
        self.breaks = breaks or (lambda model: None)


def case(name, pattern, code=1, commands=(INSPECT, RUN), stdin=b""):
    """Decorates the function that breaks the model."""

    def add(breaks):
        CASES.append(Case(name, pattern, breaks, code, commands, stdin))
        return breaks

    return add


def line(name, pattern, *args, code=2, stdin=b""):
    """A case of the command line alone."""
    CASES.append(Case(name, pattern, None, code, [list(args)], stdin))


def config(name, pattern, code=1, **fields):
    """A case that sets fields of config.json."""
    whole = r"config\.json.*" + pattern if code else ""
    CASES.append(Case("config: " + name, whole, lambda m: m.config(**fields), code, (INSPECT, RUN), b""))


# -- the directory --------------------------------------------------------------------------------------------------

line("directory: not there", "/nonexistent/model", "inspect", "/nonexistent/model", code=1)
line("directory: not there, run", "/nonexistent/model", "run", "/nonexistent/model", "-p", "x", code=1)
line("directory: a file", "Not a directory|config.json", "inspect", os.path.join(golden(), "config.json"), code=1)
line("directory: empty", r"config\.json", "inspect", "{temp}", code=1)
line("directory: a name with a newline", "no.such", "inspect", "/nonexistent/no\nsuch", code=1)
line("directory: a name of 5000 letters", "path", "inspect", "/" + "x" * 5000)


@case("directory: no shards", r"model\.safetensors")
def _(m):
    for name in os.listdir(m.path):
        if name.startswith("model"):
            m.remove(name)


# -- config.json ----------------------------------------------------------------------------------------------------


@case("config: missing", r"config\.json")
def _(m):
    m.remove("config.json")


@case("config: a directory", r"config\.json")
def _(m):
    m.folder("config.json")


@case("config: a pipe", r"config\.json")
def _(m):
    m.fifo("config.json")


@case("config: endless", r"config\.json")
def _(m):
    m.link("config.json", "/dev/zero")


if os.geteuid() != 0:  # nothing is unreadable to root

    @case("config: unreadable", r"config\.json.*Permission denied")
    def _(m):
        m.write("config.json", m.read("config.json"))
        os.chmod(m.file("config.json"), 0)

    @case("shard: unreadable", r"model-00002-of-000014\.safetensors.*Permission denied")
    def _(m):
        m.write(shard_name(2), m.read(shard_name(2)))
        os.chmod(m.file(shard_name(2)), 0)


@case("config: links to itself", r"config\.json")
def _(m):
    m.link("config.json", "config.json")


@case("config: empty", r"config\.json")
def _(m):
    m.write("config.json", b"")


@case("config: cut in the middle", r"config\.json")
def _(m):
    data = m.read("config.json")
    m.write("config.json", data[:len(data) // 2])


@case("config: text behind the object", r"config\.json")
def _(m):
    m.write("config.json", m.read("config.json") + b" {}")


@case("config: an array", r"config\.json")
def _(m):
    m.write("config.json", b"[1, 2]")


@case("config: a key twice", r"config\.json.*(duplicate|twice|hidden_size)")
def _(m):
    m.edit("config.json", b'"hidden_size": 128', b'"hidden_size": 128, "hidden_size": 64')


@case("config: not UTF-8", r"config\.json")
def _(m):
    m.edit("config.json", b"KimiK3ForConditionalGeneration", b"Kimi\xff\xfeK3")


@case("config: 100,000 brackets deep", r"config\.json")
def _(m):
    m.write("config.json", b"[" * 100000)


@case("config: a number of 100,000 digits", r"config\.json")
def _(m):
    m.edit("config.json", b'"hidden_size": 128', b'"hidden_size": ' + b"9" * 100000)


@case("config: another model", r"config\.json.*llama")
def _(m):
    m.write("config.json", json.dumps({"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 2}))


config("no hidden_size", "hidden_size", hidden_size=None)
config("no layers", "num_hidden_layers", num_hidden_layers=None)
config("no kv_lora_rank", "kv_lora_rank", kv_lora_rank=None)
config("no linear_attn_config", "linear_attn_config", linear_attn_config=None)
config("hidden_size is a string", "hidden_size", hidden_size="128")
config("hidden_size is negative", "hidden_size.*-128", hidden_size=-128)
config("hidden_size is 0", "hidden_size", hidden_size=0)
config("hidden_size is a fraction", "hidden_size", hidden_size=128.5)
config("a billion layers", "num_hidden_layers|layers", num_hidden_layers=10 ** 9)
config("vocab_size is 2^40", "vocab_size", vocab_size=2 ** 40)
config("heads of size 2^31", "head_dim|qk_nope_head_dim", qk_nope_head_dim=2 ** 31)
config("lists overlap", "layer.*4|layer.*3", linear__kda_layers=[1, 2, 3, 4, 5, 6, 7, 9, 10, 11])
config("lists leave a gap", "layer.*(2|1)", linear__kda_layers=[1, 3, 5, 6, 7, 9, 10, 11])
config("a list names layer 0", "kda_layers", linear__kda_layers=[0, 2, 3, 5, 6, 7, 9, 10, 11])
config("a list names layer 99", "kda_layers.*99", linear__kda_layers=[1, 2, 3, 5, 6, 7, 9, 10, 11, 99])
config("a list names a layer twice", "kda_layers", linear__kda_layers=[1, 1, 2, 3, 5, 6, 7, 9, 10, 11])
config("more experts a token than there are", "num_experts_per_token.*17", num_experts_per_token=17)
config("2^31 experts", "experts", num_experts=2 ** 31)
config("an unknown activation", "hidden_act.*gelu", hidden_act="gelu")
config("an unknown router", "moe_router_activation_func.*relu", moe_router_activation_func="relu")
config("groups that do not divide", "num_expert_group", num_expert_group=3)
config("an unknown quantization", "quantization.*nvfp4", quantization_config={"format": "nvfp4-pack-quantized"})
config("rotary MLA", "mla_use_nope", mla_use_nope=False)
config("a convolution of width 0", "short_conv_kernel_size", linear__short_conv_kernel_size=0)
config("a negative epsilon", "rms_norm_eps", rms_norm_eps=-1)


@case("config: a wider vocabulary than the embedding", r"(embed_tokens|lm_head)\.weight")
def _(m):
    m.config(vocab_size=600)


@case("config: more layers than the files hold", r"layers\.13\.")
def _(m):
    m.config(num_hidden_layers=14, linear__kda_layers=[1, 2, 3, 5, 6, 7, 9, 10, 11, 14])


@case("generation_config: cut in the middle", r"generation_config\.json")
def _(m):
    m.write("generation_config.json", b'{"eos_token_id": [1')


@case("generation_config: eos is a string", r"generation_config\.json.*eos_token_id")
def _(m):
    m.write("generation_config.json", b'{"eos_token_id": "end"}')


# -- the index ------------------------------------------------------------------------------------------------------
INDEX = r"model\.safetensors\.index\.json"


@case("index: cut in the middle", INDEX)
def _(m):
    data = m.read("model.safetensors.index.json")
    m.write("model.safetensors.index.json", data[:len(data) // 2])


@case("index: no weight_map", INDEX + ".*weight_map")
def _(m):
    m.write("model.safetensors.index.json", b'{"metadata": {}}')


@case("index: weight_map is an array", INDEX + ".*weight_map")
def _(m):
    m.write("model.safetensors.index.json", b'{"weight_map": []}')


@case("index: an absent shard", r"model-00099-of-000014\.safetensors")
def _(m):
    m.index(lambda j: j["weight_map"].update({Q_PROJ: "model-00099-of-000014.safetensors"}))


@case("index: the wrong shard", r"q_proj\.weight|model-0000[23]-of")
def _(m):
    m.index(lambda j: j["weight_map"].update({Q_PROJ: shard_name(3)}))


@case("index: a shard outside the directory", r"\.\./|passwd")
def _(m):
    m.index(lambda j: j["weight_map"].update({Q_PROJ: "../../../../etc/passwd"}))


@case("index: a shard with an absolute path", r"/etc/passwd")
def _(m):
    m.index(lambda j: j["weight_map"].update({Q_PROJ: "/etc/passwd"}))


@case("index: a shard that is a number", INDEX)
def _(m):
    m.index(lambda j: j["weight_map"].update({Q_PROJ: 7}))


@case("index: a tensor that no shard holds", r"(model-00002|index).*|imaginary")
def _(m):
    m.index(lambda j: j["weight_map"].update({"language_model.imaginary.weight": shard_name(2)}))


# -- shards ---------------------------------------------------------------------------------------------------------
SHARD2 = r"model-00002-of-000014\.safetensors"


@case("shard: missing", SHARD2)
def _(m):
    m.remove(shard_name(2))


@case("shard: a link to nothing", SHARD2)
def _(m):
    m.link(shard_name(2), "nowhere")


@case("shard: a directory", SHARD2)
def _(m):
    m.folder(shard_name(2))


@case("shard: a pipe", SHARD2)
def _(m):
    m.fifo(shard_name(2))


@case("shard: a device", SHARD2)
def _(m):
    m.link(shard_name(2), "/dev/zero")


@case("shard: empty", SHARD2)
def _(m):
    m.write(shard_name(2), b"")


@case("shard: 7 bytes", SHARD2)
def _(m):
    m.write(shard_name(2), b"\0" * 7)


@case("shard: cut by one byte", SHARD2)
def _(m):
    m.write(shard_name(2), m.read(shard_name(2))[:-1])


@case("shard: one byte too long", SHARD2)
def _(m):
    m.write(shard_name(2), m.read(shard_name(2)) + b"\0")


@case("shard: cut inside the header", SHARD2)
def _(m):
    m.write(shard_name(2), m.read(shard_name(2))[:1000])


@case("shard: not safetensors", SHARD2)
def _(m):
    m.write(shard_name(2), b"GGUF" + b"\1" * 5000)


@case("shard: a gigabyte of header", SHARD2)
def _(m):
    m.write(shard_name(2), struct.pack("<Q", 10 ** 9))
    os.truncate(m.file(shard_name(2)), 2 * 10 ** 9)


for text, length in {"2^63": 1 << 63, "2^64 - 1": (1 << 64) - 1, "0": 0, "1": 1, "beyond the file": 502616}.items():

    @case("shard: header of length " + text, SHARD2)
    def _(m, length=length):
        header, data = m.shard(2)
        m.write_shard(2, header, data, length)


@case("header: an array", SHARD2)
def _(m):
    m.header_text(2, lambda h: b"[]" + b" " * (len(h) - 2))


@case("header: nested 8,000 deep", SHARD2)
def _(m):
    m.header_text(2, lambda h: b'{"a":' * (len(h) // 5) + b" " * (len(h) % 5))


@case("header: a tensor twice", SHARD2 + ".*|q_proj")
def _(m):
    again = b', "' + Q_PROJ.encode() + b'": {"dtype": "BF16", "shape": [96, 128], "data_offsets": [0, 24576]}}'
    m.header_text(2, lambda h: h.rstrip()[:-1] + again)


@case("header: a name that is not UTF-8", SHARD2)
def _(m):
    m.header_text(2, lambda h: h.replace(b"q_proj", b"q_\xff\xfe\xfdj", 1))


@case("header: a name with a newline", r"q_proj|" + SHARD2)
def _(m):
    m.header_text(2, lambda h: h.replace(b"q_proj", b"q\\nproj", 1))


def tensor_case(name, pattern, tensor=Q_PROJ, shard=2, code=1, **fields):

    def breaks(m):
        m.tensor(shard, tensor, **fields)

    CASES.append(Case("tensor: " + name, pattern, breaks, code, (INSPECT, RUN), b""))


Q = r"model-00002-of-000014\.safetensors.*q_proj\.weight|q_proj\.weight.*model-00002-of-000014\.safetensors"
tensor_case("offsets beyond the file", Q, data_offsets=[10 ** 9, 10 ** 9 + 24576])
tensor_case("offsets near 2^64", Q, data_offsets=[2 ** 64 - 24577, 2 ** 64 - 1])
tensor_case("offsets backwards", Q, data_offsets=[24576, 0])
tensor_case("negative offsets", Q, data_offsets=[-24576, 0])
tensor_case("one offset", Q, data_offsets=[0])
tensor_case("no offsets", Q, data_offsets=None)
tensor_case("offsets that are fractions", Q, data_offsets=[0.5, 24576.5])
tensor_case("overlapping", r"q_proj\.weight|overlap", data_offsets=[0, 24576])
tensor_case("a size that is not the shape's", Q, shape=[96, 127])
tensor_case("a negative shape", Q, shape=[-96, -128])
tensor_case("a shape of 2^63", Q, shape=[2 ** 63, 2])
tensor_case("a shape whose product overflows", Q, shape=[2 ** 32, 2 ** 32, 12288])
tensor_case("a shape that overflows to the right size", Q, shape=[2 ** 33, 2 ** 31 + 12288])
tensor_case("a shape with a fraction", Q, shape=[96.5, 128])
tensor_case("a shape that is a string", Q, shape="96x128")
tensor_case("no shape", Q, shape=None)
tensor_case("a transposed shape", Q, shape=[128, 96])
tensor_case("rank 0", Q, shape=[])
tensor_case("rank 5", Q, shape=[1, 1, 1, 96, 128])
tensor_case("rank 1000", Q, shape=[1] * 998 + [96, 128])
tensor_case("the wrong type", Q, dtype="U8", shape=[96, 256])
tensor_case("integers", Q, dtype="I16")
tensor_case("an unknown type", Q, dtype="Q4_K")
tensor_case("a type that is a number", Q, dtype=16)
tensor_case("convolution of rank 4", r"q_conv1d\.weight", tensor=Q_CONV, shape=[96, 1, 1, 4])
tensor_case("convolution of another width", r"q_conv1d\.weight", tensor=Q_CONV, shape=[128, 1, 3])
tensor_case("convolution of rank 2", "", tensor=Q_CONV, shape=[96, 4], code=0)
tensor_case("A_log of rank 4", "", tensor=A_LOG, shape=[1, 1, 32, 1], code=0)


@case("tensor: too few values in A_log", r"A_log")
def _(m):
    header, data = m.shard(2)
    begin = header[A_LOG]["data_offsets"][0]
    header[A_LOG].update(shape=[2], data_offsets=[begin, begin + 8])
    m.write_shard(2, header, data)


@case("tensor: an expert missing in one layer", r"layers\.5\..*experts\.7\.w3")
def _(m):
    m.drop_tensor(6, EXPERT + "packed")


@case("tensor: an expert's scale missing", r"layers\.5\..*experts\.7\.w3\.weight_scale")
def _(m):
    m.drop_tensor(6, EXPERT + "scale")


@case("tensor: a norm missing", r"layers\.2\.input_layernorm\.weight")
def _(m):
    m.drop_tensor(3, LAYERS + "2.input_layernorm.weight")


@case("tensor: the final norm missing", r"model\.norm\.weight")
def _(m):
    m.drop_tensor(14, "language_model.model.norm.weight")


@case("tensor: an expert's scale as BF16", r"experts\.7\.w3\.weight_scale")
def _(m):
    m.tensor(6, EXPERT + "scale", dtype="BF16", shape=[96, 1])


@case("tensor: fused experts under other names", r"experts")
def _(m):
    for shard in range(2, 14):
        m.header_text(shard, lambda h: h.replace(b".experts.", b".experts_"))
    m.index(lambda j: j.update(weight_map={k.replace(".experts.", ".experts_"): v for k, v in j["weight_map"].items()}))


@case("tensor: in two shards", r"q_proj\.weight|model-0000[23]")
def _(m):
    header, data = m.shard(3)
    header[Q_PROJ] = {"dtype": "BF16", "shape": [96, 128], "data_offsets": [len(data), len(data) + 24576]}
    m.write_shard(3, header, data + b"\0" * 24576)


@case("tensor: unknown ones are ignored", "", code=0)
def _(m):
    header, data = m.shard(2)
    header["vision_tower.something"] = {"dtype": "F64", "shape": [2], "data_offsets": [len(data), len(data) + 16]}
    m.write_shard(2, header, data + b"\0" * 16)
    m.index(lambda j: j["weight_map"].update({"vision_tower.something": shard_name(2)}))


@case("header: padded with blanks", "", code=0)
def _(m):
    m.header_text(2, lambda h: h + b" " * 1001)


# -- values ---------------------------------------------------------------------------------------------------------


@case("values: NaN in a projection", r"layer 1\b", commands=(RUN,))
def _(m):
    m.patch_data(2, Q_PROJ, 0, b"\xc0\x7f" * (96 * 128))


@case("values: infinity in a projection", r"layer 1\b", commands=(RUN,))
def _(m):
    m.patch_data(2, Q_PROJ, 0, b"\x80\x7f" * (96 * 128))


@case("values: NaN in the embedding", r"embed|layer 0\b", commands=(RUN,))
def _(m):
    m.patch_data(14, EMBEDDING, 0, b"\xc0\x7f" * (512 * 128))


@case("values: NaN in the output head", r"head|logit|norm|output", commands=(RUN,))
def _(m):
    m.patch_data(14, "language_model.lm_head.weight", 0, b"\xc0\x7f" * (512 * 128))


@case("values: MXFP4 scale 255", r"layers\.5\..*experts\.7\.w3\.weight_scale", commands=(RUN,))
def _(m):
    m.patch_data(6, EXPERT + "scale", 5, b"\xff")


@case("values: MXFP4 scale 0 is a subnormal", "", code=0, commands=(RUN,))
def _(m):
    m.patch_data(6, EXPERT + "scale", 0, b"\0" * 192)


# -- tokenizer ------------------------------------------------------------------------------------------------------
VOCABULARY = r"tiktoken\.model"


def vocabulary_case(name, pattern, text, code=1):
    CASES.append(Case("tokenizer: " + name, pattern, lambda m: m.vocabulary(text), code, (TEXT,), b""))


BYTES = byte_vocabulary()
LINES = BYTES.splitlines(keepends=True)
vocabulary_case("empty", VOCABULARY, "")
vocabulary_case("a gap in the ranks", VOCABULARY, BYTES + "YWI= 300\n")
vocabulary_case("a rank twice", VOCABULARY, BYTES + "YWI= 255\n")
vocabulary_case("a token twice", VOCABULARY, BYTES + "YQ== 256\n")
vocabulary_case("a byte missing", VOCABULARY, "".join(LINES[:97] + ["YWI= 97\n"] + LINES[98:]))
vocabulary_case("not base64", VOCABULARY, BYTES + "@@@@ 256\n")
vocabulary_case("base64 cut", VOCABULARY, BYTES + "YWI 256\n")
vocabulary_case("a rank that is no number", VOCABULARY, BYTES + "YWI= x\n")
vocabulary_case("a negative rank", VOCABULARY, BYTES + "YWI= -1\n")
vocabulary_case("a rank of 2^32", VOCABULARY, BYTES + "YWI= 4294967296\n")
vocabulary_case("an empty token", VOCABULARY, BYTES + " 256\n")
vocabulary_case("a line without a rank", VOCABULARY, BYTES + "YWI=\n")
vocabulary_case("binary", VOCABULARY, b"\0\1\2\3" * 1000)
vocabulary_case("the last line has no newline", "", BYTES[:-1], code=0)


@case("tokenizer: a directory", VOCABULARY, commands=(TEXT, RUN))
def _(m):
    m.folder("tiktoken.model")


@case("tokenizer: a pipe", VOCABULARY, commands=(TEXT,))
def _(m):
    m.fifo("tiktoken.model")


@case("tokenizer: endless", VOCABULARY, commands=(TEXT,))
def _(m):
    m.link("tiktoken.model", "/dev/zero")


@case("tokenizer: missing", VOCABULARY, commands=(TEXT,))
def _(m):
    pass


@case("tokenizer: names cut in the middle", r"tokenizer_config\.json", commands=(TEXT,))
def _(m):
    m.vocabulary()
    m.write("tokenizer_config.json", b'{"added_tokens_decoder": {"256"')


@case("tokenizer: a name twice", r"tokenizer_config\.json", commands=(TEXT,))
def _(m):
    m.vocabulary()
    names = {i: {"content": "<x>"} for i in ("256", "257")}
    m.write("tokenizer_config.json", json.dumps({"added_tokens_decoder": names}))


@case("tokenizer: more ids than the model", r"prompt: id 6\d\d .*512", commands=(TEXT,))
def _(m):
    """Every pair with an H first is a token, from id 600 on the one that Hello starts with."""
    pairs = [bytes([72, i]) for i in range(256) if i != 101] + [bytes([73, i]) for i in range(100)]
    more = "".join("%s %d\n" % (base64.b64encode(p).decode(), 256 + i) for i, p in enumerate(pairs + [b"He"]))
    m.vocabulary(BYTES + more)


# -- prompts, ids, limits -------------------------------------------------------------------------------------------
GOLDEN = golden()
line("ids: one beyond the vocabulary", "--ids.*512.*place 2", "run", GOLDEN, "--ids", "1,512")
line("ids: one beyond the vocabulary, logits", "--ids.*512", "logits", GOLDEN, "--ids", "512", "--out", "{temp}/x")
line("ids: negative", "--ids.*-1", "run", GOLDEN, "--ids", "-1")
line("ids: 2^31", "--ids.*2147483648", "run", GOLDEN, "--ids", "2147483648")
line("ids: none", "--ids.*empty", "run", GOLDEN, "--ids", "")
line("ids: no file", "/nonexistent/ids", "run", GOLDEN, "--ids", "@/nonexistent/ids", code=1)
line("ids: a directory", "{temp}|directory", "run", GOLDEN, "--ids", "@{temp}", code=1)
line("ids: binary", "place 1|zero byte", "run", GOLDEN, "--ids", "@-", stdin=bytes(range(256)) * 100)
line("ids: a file that is empty", "empty", "run", GOLDEN, "--ids", "@-")
line("split: too long", "--split.*4.*3", "logits", GOLDEN, "--ids", "1,2,3", "--split", "2,2", "--out", "{temp}/x")
line("out: a full device", "/dev/full", "logits", GOLDEN, "--ids", "1", "--out", "/dev/full", code=1)
line("out: a directory", "directory", "logits", GOLDEN, "--ids", "1", "--out", "{temp}", code=1)
line("out: nowhere", "/nonexistent/x", "logits", GOLDEN, "--ids", "1", "--out", "/nonexistent/x", code=1)
line("memory: too little", "[0-9]+ bytes|need", "run", GOLDEN, "--ids", "1", "--memory", "1M", code=1)
line("memory: a byte", "[0-9]+ bytes|need", "run", GOLDEN, "--ids", "1", "--memory", "1", code=1)


def with_vocabulary(m):
    m.vocabulary()


def prompt_case(name, pattern, *args, code=2, stdin=b"", breaks=with_vocabulary):
    command = ["run", "{model}", "-n", "1", "--quiet", *args]
    CASES.append(Case("prompt: " + name, pattern, breaks, code, [command], stdin))


def long_runs(m):
    """Tokens of 2, 4, ... 8192 letters a: a line of 3 MB becomes some 400 ids."""
    powers = "".join("%s %d\n" % (base64.b64encode(b"a" * 2 ** i).decode(), 255 + i) for i in range(1, 14))
    m.vocabulary(BYTES + powers)


prompt_case("no file", "/nonexistent/prompt", "-f", "/nonexistent/prompt", code=1)
prompt_case("a directory", "directory", "-f", "{temp}", code=1)
prompt_case("empty", "-p.*empty", "-p", "")
prompt_case("empty input", "empty", "-f", "-")
prompt_case("an empty file", "empty", "-f", "/dev/null")
prompt_case("invalid UTF-8", "", "-f", "-", code=0, stdin=b"\xff\xfe\xc0\x80\xed\xa0\x80 x\xe2\x82")
prompt_case("zero bytes", "", "-f", "-", code=0, stdin=b"\0" * 100)
prompt_case("one line of 3 MB", "", "-f", "-", code=0, stdin=b"a" * 3000000, breaks=long_runs)
prompt_case("more than memory holds", "memory|budget", "-f", "-", "--memory", "12M", code=1, stdin=b"x y" * 1000000)

assert len({c.name for c in CASES}) == len(CASES), "two cases of one name"
