#!/usr/bin/env python3
"""Writes a trained state as a checkpoint in the published layout: config.json, shards, index.

    export.py STATE.pt OUT_DIR

The trunk becomes BF16, the experts MXFP4 (rounded as in the last phase of training); one shard a layer and one
for the embedding and the head.  The tokenizer's files are tokenizer.py's work.
"""
import json
import os
import struct
import sys

import numpy as np
import torch

from model import LEVELS, Config, Model, MoE, mxfp4

PREFIX = "language_model.model."


def bf16(x):
    return "BF16", x.detach().to(torch.bfloat16).view(torch.int16).numpy()


def f32(x):
    return "F32", x.detach().float().numpy()


def packed(name, w):
    """weight_packed (low nibble first) and weight_scale of one matrix [out, in]."""
    r, e = mxfp4(w.detach())
    code = torch.bucketize(r.abs(), LEVELS) + 8 * (torch.signbit(r) & (r != 0))
    code = code.reshape(w.shape).to(torch.uint8).numpy()
    return {name + ".weight_packed": ("U8", code[:, 0::2] | code[:, 1::2] << 4),
            name + ".weight_scale": ("U8", (e.squeeze(-1) + 127).to(torch.uint8).numpy())}


def mlp(name, m):
    return {f"{name}.{n}.weight": bf16(getattr(m, n)) for n in ("gate_proj", "up_proj", "down_proj")}


def moe(m):
    t = {"gate.weight": bf16(m.gate), "gate.e_score_correction_bias": f32(m.bias),
         "routed_expert_down_proj.weight": bf16(m.down), "routed_expert_norm.weight": bf16(m.norm),
         "routed_expert_up_proj.weight": bf16(m.up)}
    for e in range(m.c.experts):
        for n in ("w1", "w2", "w3"):
            t.update(packed(f"experts.{e}.{n}", getattr(m, n)[e]))
    t.update(mlp("shared_experts", m.shared_experts))
    return {"block_sparse_moe." + n: v for n, v in t.items()}


def attention(m, c):
    t = {}
    for n, p in m.named_parameters():
        if n.endswith("conv1d"):
            t[n + ".weight"] = f32(p.unsqueeze(1))
        elif n == "A_log":      # the release pads it with zeros to the head size
            t[n] = f32(torch.cat([p, torch.zeros(max(0, c.kda_dim - c.kda_heads))]))
        elif n == "dt_bias":
            t[n] = f32(p)
        else:
            t[n + ".weight"] = f32(p) if n == "o_norm" else bf16(p)
    return {"self_attn." + n: v for n, v in t.items()}


def layer(m):
    t = {}
    for site in ("self_attention_res", "mlp_res"):
        t[site + "_norm.weight"] = bf16(getattr(m, site + "_norm"))
        t[site + "_proj.weight"] = bf16(getattr(m, site + "_proj").unsqueeze(0))
    for n in ("input_layernorm", "post_attention_layernorm"):
        t[n + ".weight"] = bf16(getattr(m, n))
    t.update(attention(m.attention, m.c))
    t.update(moe(m.ffn) if isinstance(m.ffn, MoE) else mlp("mlp", m.ffn))
    return t


def write_shard(path, tensors):
    header, at = {}, 0
    for name, (dtype, a) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(raw)) + raw)
        for _, a in tensors.values():
            f.write(np.ascontiguousarray(a).tobytes())
    return at


def config_json(c):
    mla = [i + 1 for i in range(c.layers) if c.is_mla(i)]
    kda = [i + 1 for i in range(c.layers) if not c.is_mla(i)]
    weights = dict(num_bits=4, type="float", group_size=32, strategy="group", symmetric=True, scale_dtype="torch.uint8")
    quantised = dict(quant_method="compressed-tensors", format="mxfp4-pack-quantized", quantization_status="compressed",
                     config_groups=dict(group_0=dict(format="mxfp4-pack-quantized", targets=["Linear"], weights=weights)),
                     ignore=["re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
                             "re:.*lm_head.*"])
    special = dict(bos_token_id=c.vocab - 256, eos_token_id=c.vocab - 254, pad_token_id=c.vocab - 1)
    text = dict(model_type="kimi_linear", architectures=["KimiLinearForCausalLM"], vocab_size=c.vocab, hidden_size=c.hidden,
                intermediate_size=c.dense_ff, num_hidden_layers=c.layers, num_attention_heads=c.heads,
                num_key_value_heads=c.heads, hidden_act="situ", activation_situ_beta=c.beta,
                activation_situ_linear_beta=c.linear_beta, rms_norm_eps=c.eps, tie_word_embeddings=False, **special,
                moe_intermediate_size=c.expert_ff, moe_renormalize=True, moe_router_activation_func="sigmoid",
                num_experts=c.experts, num_experts_per_token=c.top_k, num_shared_experts=c.shared,
                routed_scaling_factor=1.0, routed_expert_hidden_size=c.latent, latent_moe_use_norm=True,
                first_k_dense_replace=1, moe_layer_freq=1, num_expert_group=1, topk_group=1, q_lora_rank=c.q_rank,
                kv_lora_rank=c.kv_rank, qk_nope_head_dim=c.nope, qk_rope_head_dim=c.rope, v_head_dim=c.vdim,
                mla_use_nope=True, mla_use_output_gate=True, attn_res_block_size=c.block, max_position_embeddings=1048576,
                dtype="bfloat16", quantization_config=quantised, linear_attn_config=dict(
                    full_attn_layers=mla, kda_layers=kda, head_dim=c.kda_dim, num_heads=c.kda_heads,
                    short_conv_kernel_size=c.conv, gate_lower_bound=c.lower_bound, use_full_rank_gate=True))
    return dict(model_type="kimi_k3", architectures=["KimiK3ForConditionalGeneration"], dtype="bfloat16", **special,
                tie_word_embeddings=False, text_config=text)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def export(model, out):
    c, shards, weight_map, total = model.c, model.c.layers + 1, {}, 0
    os.makedirs(out, exist_ok=True)
    parts = [{f"layers.{i}.{n}": t for n, t in layer(m).items()} for i, m in enumerate(model.layers)]
    ends = {"embed_tokens.weight": bf16(model.embed), "norm.weight": bf16(model.norm),
            "output_attn_res_norm.weight": bf16(model.output_attn_res_norm),
            "output_attn_res_proj.weight": bf16(model.output_attn_res_proj.unsqueeze(0))}
    for i, part in enumerate(parts + [ends]):
        tensors = {PREFIX + n: t for n, t in part.items()}
        if part is ends:
            tensors["language_model.lm_head.weight"] = bf16(model.lm_head)
        shard = f"model-{i + 1:05d}-of-{shards:06d}.safetensors"
        total += write_shard(os.path.join(out, shard), tensors)
        weight_map.update({n: shard for n in tensors})
    write_json(os.path.join(out, "model.safetensors.index.json"), {"metadata": {"total_size": total}, "weight_map": weight_map})
    write_json(os.path.join(out, "config.json"), config_json(c))
    write_json(os.path.join(out, "generation_config.json"), {"max_length": 1048576, "eos_token_id": c.vocab - 254})
    return total


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    state = torch.load(sys.argv[1], weights_only=False)
    model = Model(Config(**state["config"]))
    model.load_state_dict(state["model"])
    print(f"{sys.argv[2]}: {export(model, sys.argv[2])} bytes of weights after {state['step']} steps")


if __name__ == "__main__":
    main()
