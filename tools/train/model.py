"""Kimi K3's architecture in torch, small enough to train on a desktop CPU.

Everything that K3 has is here: KDA with a lower bound and a full-rank output gate, gated NoPE MLA with
q_lora every fourth layer and last, attention residuals, LatentMoE with norm and shared experts, SiTU, a dense
first layer.  tests/reference/k3_reference.py computes the same from an exported checkpoint (see check.py).

Letters: B sequences, T tokens, D hidden size, H heads, K head size of KDA, E experts, Z latent size, F width.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 16          # tokens of a KDA chunk: the decay of one chunk, exp(-5 * 16), still fits a float32


@dataclass
class Config:
    vocab: int = 1280
    layers: int = 6
    hidden: int = 128
    dense_ff: int = 384
    kda_heads: int = 4
    kda_dim: int = 32
    heads: int = 4
    nope: int = 24
    rope: int = 8
    vdim: int = 32
    kv_rank: int = 64
    q_rank: int = 64
    experts: int = 16
    top_k: int = 2
    expert_ff: int = 96
    latent: int = 64
    shared: int = 1
    block: int = 3
    every: int = 4          # an MLA layer after so many
    conv: int = 4
    lower_bound: float = -5.0
    beta: float = 4.0       # SiTU
    linear_beta: float = 25.0
    eps: float = 1e-5

    def is_mla(self, layer):
        return (layer + 1) % self.every == 0 or layer + 1 == self.layers


def rms(x, weight, eps):
    return weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps))


def situ(gate, up, c):
    return c.beta * torch.tanh(gate / c.beta) * torch.sigmoid(gate) * c.linear_beta * torch.tanh(up / c.linear_beta)


# ---- MXFP4: what the last phase of training sees of its experts' weights

LEVELS = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6])
MIDDLES = (LEVELS[1:] + LEVELS[:-1]) / 2


def mxfp4(w):
    """w [..., n*32] -> codes (0..7 of the magnitude, with sign) as values, and the group's exponent.

    The exponent is the one of two candidates that rounds the group with the smaller squared error.
    """
    g = w.reshape(*w.shape[:-1], -1, 32)
    top = torch.floor(torch.log2(g.abs().amax(-1, keepdim=True).clamp_min(1e-30))) - 2
    best = None
    for e in (top, top + 1):
        e = e.clamp(-126, 126)
        v = g / torch.exp2(e)
        r = LEVELS[torch.bucketize(v.abs().contiguous(), MIDDLES)] * torch.sign(v)
        err = ((r - v) * torch.exp2(e)).square().sum(-1, keepdim=True)
        if best is None:
            best = r, e, err
        else:
            take = err < best[2]
            best = torch.where(take, r, best[0]), torch.where(take, e, best[1]), None
    return best[0], best[1]


def fake_mxfp4(w):
    """Rounded in the forward pass, straight through in the backward one."""
    with torch.no_grad():
        r, e = mxfp4(w)
        rounded = (r * torch.exp2(e)).reshape(w.shape)
    return w + (rounded - w).detach()


# ---- operations

def short_conv(x, weight):
    """Causal depthwise convolution and SiLU: x [B, T, C], weight [C, W]; tap W-1 meets the current token."""
    w = weight.shape[1]
    y = sum(F.pad(x, (0, 0, w - 1 - j, 0))[:, :x.shape[1]] * weight[:, j] for j in range(w))
    return F.silu(y)


def kda(q, k, v, g, beta):
    """The delta rule in chunks.  q, k, v, g [B, T, H, K]; q and k normalised; beta [B, T, H]; returns [B, T, H, K]."""
    b, t, h, d = q.shape
    pad = -t % CHUNK
    if pad:
        q, k, v, g = (F.pad(x, (0, 0, 0, 0, 0, pad)) for x in (q, k, v, g))
        beta = F.pad(beta, (0, 0, 0, pad))
    n = (t + pad) // CHUNK

    def chunks(x):          # [B, T, H, d] -> [B*H, n, CHUNK, d]
        return x.reshape(b, n, CHUNK, h, -1).permute(0, 3, 1, 2, 4).reshape(b * h, n, CHUNK, -1)

    q, k, v, g, beta = chunks(q), chunks(k), chunks(v), chunks(g), chunks(beta.unsqueeze(-1))
    total = g.cumsum(2)
    end = total[:, :, -1:]
    half = end / 2
    rise, fall = torch.exp(total - half), torch.exp(half - total)
    kf = k * fall
    lower = (k * rise) @ kf.transpose(-1, -2)
    power = -(lower * beta).tril(-1)
    eye = torch.eye(CHUNK)
    inverse = eye + power
    for _ in range(3):      # (I - N)^-1 = (I + N)(I + N^2)(I + N^4)(I + N^8), as N^16 = 0
        power = power @ power
        inverse = inverse + inverse @ power
    decay = torch.exp(total)
    w = inverse @ (beta * k * decay)
    u = inverse @ (beta * v)
    inside = ((q * rise) @ kf.transpose(-1, -2)).tril()
    kend = (k * torch.exp(end - total)).transpose(-1, -2)
    carry = torch.exp(end).transpose(-1, -2)
    state, states, us = torch.zeros(b * h, d, d), [], []
    for w_i, u_i, k_i, c_i in zip(w.unbind(1), u.unbind(1), kend.unbind(1), carry.unbind(1)):
        states.append(state)
        u_i = torch.baddbmm(u_i, w_i, state, alpha=-1)
        us.append(u_i)
        state = torch.baddbmm(c_i * state, k_i, u_i)
    o = (q * decay) @ torch.stack(states, 1) + inside @ torch.stack(us, 1)
    return o.reshape(b, h, n, CHUNK, d).permute(0, 2, 3, 1, 4).reshape(b, n * CHUNK, h, d)[:, :t]


def inverse_rms(x, eps):
    return torch.rsqrt(x.square().mean(-1) + eps)


def attn_res(blocks, x, norm_weight, proj, eps):
    """A softmax over depth: blocks is a list of (v [B, T, D], inverse_rms(v)), x [B, T, D]."""
    site = norm_weight * proj
    sources = blocks + [(x, inverse_rms(x, eps))]
    p = torch.stack([(v @ site) * r for v, r in sources], -1).softmax(-1).unsqueeze(-1).unbind(-2)
    y = p[0] * sources[0][0]
    for p_j, (v, _) in zip(p[1:], sources[1:]):
        y = torch.addcmul(y, p_j, v)
    return y


def matrix(o, i, gain=1.0):
    return nn.Parameter(torch.randn(o, i) * (gain / math.sqrt(i)))


def ones(n):
    return nn.Parameter(torch.ones(n))


class KDA(nn.Module):
    def __init__(self, c):
        super().__init__()
        n = c.kda_heads * c.kda_dim
        self.c = c
        self.q_proj, self.k_proj, self.v_proj, self.g_proj = (matrix(n, c.hidden) for _ in range(4))
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (
            nn.Parameter(torch.cat([torch.randn(n, c.conv - 1) * .3, torch.ones(n, 1)], 1)) for _ in range(3))
        self.f_a_proj, self.f_b_proj = matrix(c.kda_dim, c.hidden), matrix(n, c.kda_dim)
        self.b_proj = matrix(c.kda_heads, c.hidden)
        self.A_log = nn.Parameter(torch.zeros(c.kda_heads))
        self.dt_bias = nn.Parameter(torch.empty(n).uniform_(-10, -3))
        self.o_norm = ones(c.kda_dim)
        self.o_proj = matrix(c.hidden, n, .5)

    def forward(self, x):
        c = self.c
        heads = (*x.shape[:2], c.kda_heads, c.kda_dim)
        q, k, v = (short_conv(x @ w.t(), conv).view(heads) for w, conv in (
            (self.q_proj, self.q_conv1d), (self.k_proj, self.k_conv1d), (self.v_proj, self.v_conv1d)))
        q = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) * c.kda_dim ** -.5
        k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
        z = (x @ self.f_a_proj.t() @ self.f_b_proj.t() + self.dt_bias).view(heads)
        g = c.lower_bound * torch.sigmoid(self.A_log.exp()[:, None] * z)
        o = kda(q, k, v, g, torch.sigmoid(x @ self.b_proj.t()))
        o = rms(o, self.o_norm, c.eps) * torch.sigmoid(x @ self.g_proj.t()).view(heads)
        return o.reshape(*x.shape[:2], -1) @ self.o_proj.t()


class MLA(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_a_proj, self.q_a_layernorm = matrix(c.q_rank, c.hidden), ones(c.q_rank)
        self.q_b_proj = matrix(c.heads * (c.nope + c.rope), c.q_rank)
        self.kv_a_proj_with_mqa, self.kv_a_layernorm = matrix(c.kv_rank + c.rope, c.hidden), ones(c.kv_rank)
        self.kv_b_proj = matrix(c.heads * (c.nope + c.vdim), c.kv_rank)
        self.g_proj = matrix(c.heads * c.vdim, c.hidden)
        self.o_proj = matrix(c.hidden, c.heads * c.vdim, .5)

    def forward(self, x):
        c, (b, t, _) = self.c, x.shape
        q = rms(x @ self.q_a_proj.t(), self.q_a_layernorm, 1e-6) @ self.q_b_proj.t()
        latent, pe = (x @ self.kv_a_proj_with_mqa.t()).split([c.kv_rank, c.rope], -1)
        kv = (rms(latent, self.kv_a_layernorm, 1e-6) @ self.kv_b_proj.t()).view(b, t, c.heads, c.nope + c.vdim)
        k = torch.cat([kv[..., :c.nope], pe[:, :, None].expand(b, t, c.heads, c.rope)], -1)
        o = F.scaled_dot_product_attention(q.view(b, t, c.heads, -1).transpose(1, 2), k.transpose(1, 2),
                                           kv[..., c.nope:].transpose(1, 2), is_causal=True)
        return (o.transpose(1, 2).reshape(b, t, -1) * torch.sigmoid(x @ self.g_proj.t())) @ self.o_proj.t()


class MLP(nn.Module):
    def __init__(self, c, width):
        super().__init__()
        self.c = c
        self.gate_proj, self.up_proj = matrix(width, c.hidden), matrix(width, c.hidden)
        self.down_proj = matrix(c.hidden, width, .5)

    def forward(self, x):
        return situ(x @ self.gate_proj.t(), x @ self.up_proj.t(), self.c) @ self.down_proj.t()


class MoE(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.gate = matrix(c.experts, c.hidden)
        self.register_buffer("bias", torch.zeros(c.experts))    # e_score_correction_bias: balances the load
        self.register_buffer("load", torch.zeros(c.experts), persistent=False)
        self.down, self.norm, self.up = matrix(c.latent, c.hidden), ones(c.latent), matrix(c.hidden, c.latent, .5)
        self.w1, self.w3, self.w2 = (nn.Parameter(torch.randn(c.experts, o, i) / math.sqrt(i)) for o, i in (
            (c.expert_ff, c.latent), (c.expert_ff, c.latent), (c.latent, c.expert_ff)))
        self.shared_experts = MLP(c, c.expert_ff * c.shared)
        self.quantised = False

    def forward(self, x):
        c = self.c
        flat = x.reshape(-1, c.hidden)
        scores = torch.sigmoid(flat @ self.gate.t())
        ids = (scores + self.bias).topk(c.top_k, -1).indices
        weights = scores.gather(1, ids)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        order = ids.reshape(-1).argsort(stable=True)
        counts = torch.bincount(ids.reshape(-1), minlength=c.experts)
        if self.training:
            self.load += counts
        token = order // c.top_k
        z = (flat @ self.down.t()).index_select(0, token).split(counts.tolist())
        w1, w3, w2 = ((fake_mxfp4(w) if self.quantised else w).unbind(0) for w in (self.w1, self.w3, self.w2))
        out = torch.cat([situ(z_e @ a.t(), z_e @ b.t(), c) @ d.t() for z_e, a, b, d in zip(z, w1, w3, w2)])
        out = out * weights.reshape(-1).index_select(0, order)[:, None]
        y = torch.zeros(len(flat), c.latent).index_add(0, token, out)
        return (rms(y, self.norm, c.eps) @ self.up.t()).view_as(x) + self.shared_experts(x)

    def balance(self, rate):
        """Raises the bias of experts with less than their share of tokens, lowers that of the others."""
        self.bias += rate * torch.sign(self.load.mean() - self.load)
        self.bias -= self.bias.mean()
        self.load.zero_()


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        self.c, self.opens, self.first = c, index % c.block == 0, index == 0
        self.input_layernorm, self.post_attention_layernorm = ones(c.hidden), ones(c.hidden)
        self.self_attention_res_norm, self.mlp_res_norm = ones(c.hidden), ones(c.hidden)
        self.self_attention_res_proj, self.mlp_res_proj = (nn.Parameter(torch.zeros(c.hidden)) for _ in range(2))
        self.attention = MLA(c) if c.is_mla(index) else KDA(c)
        self.ffn = MLP(c, c.dense_ff) if index == 0 else MoE(c)

    def forward(self, x, blocks):
        eps = self.c.eps
        y = attn_res(blocks, x, self.self_attention_res_norm, self.self_attention_res_proj, eps) if blocks else x
        if self.opens:
            blocks = blocks + [(x, inverse_rms(x, eps))]
        y = self.attention(rms(y, self.input_layernorm, eps))
        x = y if self.opens else x + y
        y = attn_res(blocks, x, self.mlp_res_norm, self.mlp_res_proj, eps)
        return x + self.ffn(rms(y, self.post_attention_layernorm, eps)), blocks


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Parameter(torch.randn(c.vocab, c.hidden))
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c.layers))
        self.output_attn_res_norm, self.norm = ones(c.hidden), ones(c.hidden)
        self.output_attn_res_proj = nn.Parameter(torch.zeros(c.hidden))
        self.lm_head = matrix(c.vocab, c.hidden, .5)

    def forward(self, ids):
        """ids [B, T] -> logits [B, T, vocab]."""
        x, blocks = F.embedding(ids, self.embed), []
        for layer in self.layers:
            x, blocks = layer(x, blocks)
        x = attn_res(blocks, x, self.output_attn_res_norm, self.output_attn_res_proj, self.c.eps)
        return rms(x, self.norm, self.c.eps) @ self.lm_head.t()

    def moes(self):
        return [m for m in self.modules() if isinstance(m, MoE)]
