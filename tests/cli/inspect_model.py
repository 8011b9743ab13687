"""k3 inspect: the numbers of a checkpoint, for people and as JSON."""
import os
import re
import struct
import json

from harness import golden, goldens, k3, main, replace, copy_model, test


def headers(folder):
    """name -> (dtype, shape, bytes) of all tensors, read independently."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with open(os.path.join(folder, name), "rb") as f:
                header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            for tensor, t in header.items():
                if tensor != "__metadata__":
                    found[tensor] = (t["dtype"], t["shape"], t["data_offsets"][1] - t["data_offsets"][0])
    return found


FAMILY = {
    "experts": r"\.experts\.",
    "head": r"lm_head",
    "embedding": r"embed_tokens",
    "shared": r"shared_experts",
    "dense": r"\.mlp\.(gate|up|down)_proj",
    "router": r"block_sparse_moe\.gate\.",
    "latent": r"routed_expert_",
}


@test
def sizes_add_up():
    for name in goldens():
        want = headers(golden(name))
        r = k3("inspect", golden(name), "--json")
        assert r.code == 0 and r.err == b"", r
        j = r.json()
        assert j["tensors"] == len(want)
        assert j["total_bytes"] == sum(b for _, _, b in want.values()) == sum(j["bytes"].values()), (name, j)
        for family, pattern in FAMILY.items():
            size = sum(b for n, (_, _, b) in want.items() if re.search(pattern, n))
            assert j["bytes"][family] == size, (name, family, size)


@test
def shape_of_k3_tiny():
    j = k3("inspect", golden(), "--json").json()
    for key, value in {"architecture": "kimi_k3", "layers": 13, "kda_layers": 9, "mla_layers": 4, "moe_layers": 12,
                       "hidden_size": 128, "vocab_size": 512, "experts": 16, "experts_per_token": 4,
                       "shared_experts": 2, "latent_size": 64, "attn_res_block_size": 3, "shards": 14,
                       "quantized": True}.items():
        assert j[key] == value, (key, j[key])
    assert j["bytes"]["ignored"] == 0
    # a token reads every byte but the embedding (one row of it) and the experts (4 of 16)
    b = j["bytes"]
    most = j["total_bytes"] - b["embedding"] - b["experts"] * 12 // 16 + 2 * 128
    assert most - 2 * 128 <= j["token_bytes"] <= most, (j["token_bytes"], most)


@test
def the_summary_is_for_people():
    r = k3("inspect", golden())
    out = r.out.decode()
    assert r.code == 0 and r.err == b"", r
    for piece in ("kimi_k3: 13 layers (9 KDA, 4 MLA; 12 MoE, 1 dense)", "16 a layer, 4 a token, 2 shared", "14 shards",
                  "AttnRes", "routed experts", "read for a token", "6,634,112"):
        assert piece in out, (piece, out)


@test
def tensors_are_listed():
    want = headers(golden())
    r = k3("inspect", golden(), "--json", "--tensors")
    listed = {t["name"]: (t["dtype"], t["shape"], t["bytes"]) for t in r.json()["tensor_list"]}
    assert listed == want
    out = k3("inspect", golden(), "--tensors").out.decode()
    assert all(name in out for name in want)


@test
def patterns_choose():
    def names(*args):
        return sorted(t["name"] for t in k3("inspect", golden(), "--json", *args).json()["tensor_list"])

    want = headers(golden())
    assert names("--tensors", "A_log") == sorted(n for n in want if "A_log" in n)
    assert names("--tensors=A_log") == sorted(n for n in want if "A_log" in n)
    assert names("--tensors", "*.norm.weight") == ["language_model.model.norm.weight"]
    assert names("--tensors", "nothing") == []


@test
def links_and_unknown_files_do_not_disturb():
    model = copy_model()
    replace(os.path.join(model, "README.md"), "hello")
    assert k3("inspect", model, "--json").json()["tensors"] == len(headers(golden()))


@test
def a_checkpoint_that_is_not_there_is_named():
    r = k3("inspect", "/nonexistent/model")
    assert r.code == 1 and len(r.lines) == 1 and "/nonexistent/model" in r.lines[0], r


main()
