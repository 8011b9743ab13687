#!/usr/bin/env python3
"""Trains the small model on the micro-world; resumable.

    train.py DATA_DIR OUT_DIR [--steps 2150] [--workers 2]

DATA_DIR holds what data.py wrote: rows of tokens for each length of the curriculum.  Every step takes
`--micro` batches of about `--tokens` tokens; `--workers` processes of one thread each draw them one by one, so a
process that is slowed down by other work draws fewer.  The state is saved every `--save` steps to OUT_DIR/state.pt and
taken up from there.  The last part of the training lets the learning rate fall to zero and rounds the experts
to MXFP4 in the forward pass, so that the published packing costs nothing.
"""
import argparse
import json
import os
import time

import numpy as np
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

from model import Config, Model

# From this share of the steps on, the lengths of the rows, drawn in turn.
STAGES = [(0.0, [256]), (0.40, [256, 512]), (0.48, [512, 2304])]
DECAY = 0.50        # the last share of the steps: the learning rate falls
QUANTISE = 0.30     # the last share of the steps: experts are rounded to MXFP4


class Rows:
    """The rows of one length; row i of the stream is always the same."""

    def __init__(self, path, length):
        self.tokens = np.load(os.path.join(path, f"tokens-{length}.npy"), mmap_mode="r")
        self.weights = np.load(os.path.join(path, f"weights-{length}.npy"), mmap_mode="r")

    def take(self, at, n):
        i = np.arange(at, at + n) % len(self.tokens)
        t = torch.from_numpy(self.tokens[i].astype(np.int64))
        return t[:, :-1], t[:, 1:], torch.from_numpy(self.weights[i][:, 1:].astype(np.float32))


class Muon:
    """Momentum, then the nearest orthogonal matrix by Newton-Schulz; for matrices [.., out, in]."""

    def __init__(self, params, momentum=0.95):
        self.params, self.momentum = params, momentum
        self.buf = [torch.zeros_like(p) for p in params]

    @staticmethod
    def orthogonal(x):
        tall = x.shape[-2] > x.shape[-1]
        x = x.mT if tall else x
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.mT
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x.mT if tall else x

    @torch.no_grad()
    def step(self, lr, decay):
        groups = {}
        for i, p in enumerate(self.params):
            self.buf[i].lerp_(p.grad, 1 - self.momentum)
            groups.setdefault(p.shape[-2:], []).append((p, p.grad.lerp(self.buf[i], self.momentum)))
        for shape, members in groups.items():
            u = self.orthogonal(torch.cat([g.reshape(-1, *shape) for _, g in members]))
            scale = max(1, shape[0] / shape[1]) ** .5
            for (p, _), v in zip(members, u.split([p.numel() // (shape[0] * shape[1]) for p, _ in members])):
                p.mul_(1 - lr * decay).add_(v.reshape(p.shape), alpha=-lr * scale)


def optimisers(model):
    is_matrix = lambda n, p: p.dim() >= 2 and "conv" not in n and n not in ("embed", "lm_head")
    matrices = [p for n, p in model.named_parameters() if is_matrix(n, p)]
    others = [p for n, p in model.named_parameters() if not is_matrix(n, p)]
    return Muon(matrices), torch.optim.AdamW(others, lr=1, betas=(.9, .97), eps=1e-10, weight_decay=0)


def lengths_at(share):
    return [lengths for start, lengths in STAGES if share >= start][-1]


def batch_of(data, a, step, i):
    """The i-th batch of a step: inputs, targets, weights."""
    lengths, number = lengths_at(step / a.steps), step * a.micro + i
    length = lengths[number % len(lengths)]
    n = max(1, a.tokens // length)
    return data[length].take(number // len(lengths) * n, n)


def learn(model, data, a, step, i):
    """Adds one batch's gradient; returns the sums of the weighted loss and of the weights."""
    x, y, w = batch_of(data, a, step, i)
    loss = (F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none") * w.flatten()).sum()
    (loss / (w.sum() * a.micro)).backward()
    return loss.item(), w.sum().item()


def draw(shared):
    with shared["next"].get_lock():
        i = shared["next"].value
        shared["next"].value += 1
    return i


def take_part(model, data, a, shared, me):
    """Draws batches of the current step until none is left; leaves gradients and loads in shared memory."""
    step, done = shared["step"].value, torch.zeros(2)
    for m in model.moes():
        m.quantised = step >= a.steps * (1 - QUANTISE)
    model.zero_grad(set_to_none=False)
    while (i := draw(shared)) < a.micro:
        done += torch.tensor(learn(model, data, a, step, i))
    shared["loss"][me] = done
    shared["load"][me] = torch.stack([m.load for m in model.moes()])
    for m in model.moes():
        m.load.zero_()


def own_gradients(model, flat):
    at = 0
    for p in model.parameters():
        p.grad = flat[at:at + p.numel()].view_as(p)
        at += p.numel()


def worker(model, a, shared, me):
    os.nice(10)
    torch.set_num_threads(1)
    data = open_data(a)
    own_gradients(model, shared["grad"][me])
    while True:
        shared["begin"].wait()
        if shared["step"].value < 0:
            return
        take_part(model, data, a, shared, me)
        shared["end"].wait()


def open_data(a):
    return {n: Rows(a.data, n) for n in sorted({n for _, lengths in STAGES for n in lengths})}


def one_step(model, optims, data, a, shared, step):
    shared["step"].value, shared["next"].value = step, 0
    shared["begin"].wait()
    take_part(model, data, a, shared, 0)
    shared["end"].wait()
    shared["grad"][0] += shared["grad"][1:].sum(0)
    norm = shared["grad"][0].norm().item()
    if norm > 2:
        shared["grad"][0] *= 2 / norm
    lr = min(1, (step + 1) / 40, (1 - step / a.steps) / DECAY)
    optims[0].step(a.lr * lr, .01)
    optims[1].param_groups[0]["lr"] = a.adam_lr * lr
    optims[1].step()
    for m, load in zip(model.moes(), shared["load"].sum(0)):
        m.load.copy_(load)
        m.balance(.003 * min(1, lr))
    loss, weight = shared["loss"].sum(0).tolist()
    return loss / weight, norm, lr


def save(path, model, optims, step, seconds):
    torch.save({"config": vars(model.c), "model": model.state_dict(), "muon": optims[0].buf,
                "adam": optims[1].state_dict(), "step": step, "seconds": seconds}, path + ".new")
    os.replace(path + ".new", path)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("data")
    ap.add_argument("out")
    ap.add_argument("--steps", type=int, default=2150)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--micro", type=int, default=2)
    ap.add_argument("--tokens", type=int, default=3072)
    ap.add_argument("--lr", type=float, default=.015)
    ap.add_argument("--adam-lr", type=float, default=.004)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--save", type=int, default=50)
    ap.add_argument("--until", type=int, help="stop after this step")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    model = Model(Config())
    model.share_memory()
    optims, first, before, path = optimisers(model), 0, 0, os.path.join(a.out, "state.pt")
    if os.path.exists(path):
        state = torch.load(path, weights_only=False)
        model.load_state_dict(state["model"])
        optims[1].load_state_dict(state["adam"])
        for b, saved in zip(optims[0].buf, state["muon"]):
            b.copy_(saved)
        first, before = state["step"], state["seconds"]
    n = sum(p.numel() for p in model.parameters())
    moes = model.moes()
    shared = dict(grad=torch.zeros(a.workers, n).share_memory_(), loss=torch.zeros(a.workers, 2).share_memory_(),
                  load=torch.zeros(a.workers, len(moes), model.c.experts).share_memory_(), step=mp.Value("q", 0),
                  next=mp.Value("q", 0), begin=mp.Barrier(a.workers), end=mp.Barrier(a.workers))
    others = [mp.Process(target=worker, args=(model, a, shared, i)) for i in range(1, a.workers)]
    for p in others:
        p.start()
    own_gradients(model, shared["grad"][0])
    data, start, log = open_data(a), time.time(), open(os.path.join(a.out, "log.jsonl"), "a")
    print(f"{n} parameters, from step {first} to {a.steps}", flush=True)
    last = min(a.until or a.steps, a.steps)
    for step in range(first, last):
        loss, norm, lr = one_step(model, optims, data, a, shared, step)
        seconds = before + time.time() - start
        line = {"step": step, "loss": round(loss, 4), "grad": round(norm, 3), "lr": round(lr, 3),
                "seconds": round(seconds)}
        log.write(json.dumps(line) + "\n")
        log.flush()
        if step % 10 == 0:
            print(line, flush=True)
        if (step + 1) % a.save == 0 or step + 1 == last:
            save(path, model, optims, step + 1, seconds)
    shared["step"].value = -1
    shared["begin"].wait()
    for p in others:
        p.join()


if __name__ == "__main__":
    mp.set_start_method("fork")
    main()
