"""The released Kimi K3 at full size, 497,220 tensors in 96 shards, laid out as sparse files: names, types, shapes and
shards of the text model are the release's, the data is one hole.  Inspecting it is quick and small; running it says
what it needs."""
import json
import os
import struct
import subprocess
import sys
import time

from harness import BUILD, K3, fresh_directory, k3, main, test

D, VOCAB, INTER, HEADS, RANK, Q_RANK, NOPE, ROPE, V = 7168, 163840, 33792, 96, 512, 1536, 128, 64, 128
C, K, EXPERTS, LATENT, FF, LAYERS = 96 * 128, 128, 896, 3584, 3072, 93
MLA = [*range(3, 92, 4), 92]  # from 0; config.json counts from 1
CONFIG = {
    "model_type": "kimi_k3", "tie_word_embeddings": False,
    "text_config": {
        "model_type": "kimi_linear", "vocab_size": VOCAB, "hidden_size": D, "intermediate_size": INTER,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_act": "situ", "rms_norm_eps": 1e-5,
        "q_lora_rank": Q_RANK, "kv_lora_rank": RANK, "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE,
        "v_head_dim": V, "mla_use_nope": True, "mla_use_output_gate": True, "attn_res_block_size": 12,
        "num_experts": EXPERTS, "num_experts_per_token": 16, "moe_intermediate_size": FF,
        "routed_expert_hidden_size": LATENT,
        "latent_moe_use_norm": True, "num_shared_experts": 2, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "moe_router_activation_func": "sigmoid", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
        "eos_token_id": 163586,
        "linear_attn_config": {
            "num_heads": HEADS, "head_dim": K, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0,
            "use_full_rank_gate": True, "full_attn_layers": [i + 1 for i in MLA],
            "kda_layers": [i + 1 for i in range(LAYERS) if i not in MLA]},
        "quantization_config": {"format": "mxfp4-pack-quantized"}}}


def bf16(name, *shape):
    return name + ".weight", "BF16", shape


def attention(layer):
    if layer in MLA:
        yield bf16("q_a_proj", Q_RANK, D)
        yield bf16("q_a_layernorm", Q_RANK)
        yield bf16("q_b_proj", HEADS * (NOPE + ROPE), Q_RANK)
        yield bf16("kv_a_proj_with_mqa", RANK + ROPE, D)
        yield bf16("kv_a_layernorm", RANK)
        yield bf16("kv_b_proj", HEADS * (NOPE + V), RANK)
        yield bf16("g_proj", HEADS * V, D)
        yield bf16("o_proj", D, HEADS * V)
        return
    for x in "qkv":
        yield bf16(x + "_proj", C, D)
        yield x + "_conv1d.weight", "F32", (C, 1, 4)
    yield "A_log", "F32", (128,)
    yield "dt_bias", "F32", (C,)
    yield "o_norm.weight", "F32", (K,)
    yield bf16("f_a_proj", K, D)
    yield bf16("f_b_proj", C, K)
    yield bf16("b_proj", HEADS, D)
    yield bf16("g_proj", C, D)
    yield bf16("o_proj", D, C)


def mlp(part, width):
    yield bf16(part + "gate_proj", width, D)
    yield bf16(part + "up_proj", width, D)
    yield bf16(part + "down_proj", D, width)


def moe():
    yield bf16("gate", EXPERTS, D)
    yield "gate.e_score_correction_bias", "F32", (EXPERTS,)
    yield bf16("routed_expert_down_proj", LATENT, D)
    yield bf16("routed_expert_up_proj", D, LATENT)
    yield bf16("routed_expert_norm", LATENT)
    yield from mlp("shared_experts.", 2 * FF)
    for e in range(EXPERTS):
        for w, (rows, columns) in {"w1": (FF, LATENT), "w2": (LATENT, FF), "w3": (FF, LATENT)}.items():
            yield "experts.%d.%s.weight_packed" % (e, w), "U8", (rows, columns // 2)
            yield "experts.%d.%s.weight_scale" % (e, w), "U8", (rows, columns // 32)


def layer_tensors(layer):
    start = "language_model.model.layers.%d." % layer
    for norm in ("input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm"):
        yield (start + norm + ".weight", "BF16", (D,))
    for projection in ("self_attention_res_proj", "mlp_res_proj"):
        yield (start + projection + ".weight", "BF16", (1, D))
    for name, dtype, shape in attention(layer):
        yield (start + "self_attn." + name, dtype, shape)
    for name, dtype, shape in moe() if layer else mlp("", INTER):
        yield (start + ("block_sparse_moe." if layer else "mlp.") + name, dtype, shape)


def shards():
    for layer in range(LAYERS):
        yield list(layer_tensors(layer))
    model = "language_model.model."
    yield [bf16(model + "embed_tokens", VOCAB, D), bf16("language_model.lm_head", VOCAB, D), bf16(model + "norm", D),
           bf16(model + "output_attn_res_norm", D), bf16(model + "output_attn_res_proj", 1, D)]
    yield [bf16("mm_projector.%d" % i, 1000, 1000) for i in range(3)]
    yield [bf16("vision_tower.%d" % i, 1000, 2000) for i in range(165)]


def write_header(f, tensors):
    """Writes a shard's header and returns the bytes of its data."""
    header, at = {}, 0
    for name, dtype, shape in tensors:
        size = {"BF16": 2, "F32": 4, "U8": 1}[dtype]
        for d in shape:
            size *= d
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header, separators=(",", ":")).encode()
    f.write(struct.pack("<Q", len(raw)) + raw)
    f.truncate(8 + len(raw) + at)
    return at


def lay_out(folder):
    """Returns the bytes of all tensors."""
    total = 0
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(CONFIG, f)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as index:
        index.write('{"metadata": {}, "weight_map": {')
        for i, tensors in enumerate(shards()):
            shard = "model-%05d-of-000096.safetensors" % (i + 1)
            with open(os.path.join(folder, shard), "wb") as f:
                total += write_header(f, tensors)
            index.write(",\n" if i else "\n")
            index.write(",\n".join('"%s": "%s"' % (name, shard) for name, _, _ in tensors))
        index.write("}}\n")
    return total


def is_sanitized():
    program = os.path.join(BUILD, ".libs", "k3")
    with open(program if K3 == os.path.join(BUILD, "k3") and os.path.exists(program) else K3, "rb") as f:
        return b"__asan_init" in f.read()


FOLDER = fresh_directory()
TOTAL = lay_out(FOLDER)
VISION = 3 * 2 * 1000 * 1000 + 165 * 2 * 1000 * 2000


@test
def sizes_are_the_release_s():
    """Against the published sum less its vision part, and the families of the model's description."""
    r = k3("inspect", FOLDER, "--json")
    assert r.code == 0 and r.err == b"", r
    j = r.json()
    assert j["tensors"] == 497220 and j["shards"] == 96, j
    assert j["total_bytes"] == TOTAL and j["total_bytes"] - VISION == 1560860324864 - 894717952, j["total_bytes"]
    assert j["bytes"]["ignored"] == VISION and sum(j["bytes"].values()) == TOTAL, j["bytes"]
    assert j["kda_layers"] == 69 and j["mla_layers"] == 24 and j["moe_layers"] == 92, j
    assert j["bytes"]["experts"] == 92 * 896 * 17547264 and j["bytes"]["head"] == 2348810240, j["bytes"]


@test
def inspecting_is_quick_and_small():
    if is_sanitized():
        print("a sanitized program: its time and memory are not measured")
        return
    best, wall, most = 1e9, 1e9, 0
    for _ in range(5):
        began = time.monotonic()
        p = subprocess.Popen([K3, "inspect", FOLDER], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        assert p.returncode == 0, p.returncode
        wall = min(wall, time.monotonic() - began)
        best, most = min(best, usage.ru_utime + usage.ru_stime), max(most, usage.ru_maxrss * 1024)
    print("inspect: %.2f s, of the processor %.2f s, %.0f MB" % (wall, best, most / 1e6))
    assert best < 1 and most < 200e6, (best, most)  # the processor's time: others may be at work here


@test
def running_it_says_how_much_memory_it_needs():
    r = k3("run", FOLDER, "--ids", "1,2,3", "--memory", "64G")
    assert r.code == 1 and len(r.lines) == 1, r
    assert " bytes (1560 GB) of memory and 64000000000 (64 GB) are available" in r.lines[0], r


@test
def a_listing_finds_one_tensor_of_half_a_million():
    name = "language_model.model.layers.47.block_sparse_moe.experts.895.w2.weight_scale"
    listed = k3("inspect", FOLDER, "--json", "--tensors", "layers.47.*experts.895.w2.weight_scale").json()
    assert listed["tensor_list"] == []  # a pattern with a star matches the whole name
    listed = k3("inspect", FOLDER, "--json", "--tensors", name).json()["tensor_list"]
    assert [t["name"] for t in listed] == [name] and listed[0]["shape"] == [3584, 96], listed


if sys.platform == "linux":
    main()
