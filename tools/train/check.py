#!/usr/bin/env python3
"""Compares the torch model with the numpy reference: exports random weights and computes both ways.

    check.py [STATE.pt]
"""
import os
import sys
import tempfile

import numpy as np
import torch

from export import export
from model import Config, Model, fake_mxfp4

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "reference"))
import k3_reference  # noqa: E402


def shake(model):
    """Moves what starts at a special value, so that a mistake cannot hide behind it."""
    for n, p in model.named_parameters():
        if "norm" in n or n.endswith("A_log"):
            p += .2 * torch.randn_like(p)
        if "_res_proj" in n:
            p += .1 * torch.randn_like(p)
    for m in model.moes():
        m.bias += .1 * torch.randn_like(m.bias)


@torch.no_grad()
def main():
    torch.manual_seed(3)
    model = Model(Config()).eval()
    if len(sys.argv) > 1:
        model.load_state_dict(torch.load(sys.argv[1], weights_only=False)["model"])
    else:
        shake(model)
    with tempfile.TemporaryDirectory() as out:
        export(model, out)
        kept_f32 = ("conv1d", "A_log", "dt_bias", "o_norm")
        for n, p in model.named_parameters():
            if n.split(".")[-1] in ("w1", "w2", "w3"):
                p.copy_(fake_mxfp4(p))
            elif not n.endswith(kept_f32):
                p.copy_(p.to(torch.bfloat16))
        ids = torch.randint(0, model.c.vocab, (1, 75))
        got = model(ids)[0].numpy()
        reference = k3_reference.cached(k3_reference.Model(out))
        want = reference.forward(ids[0].tolist(), reference.new_state())
    worst = (np.abs(got - want) / np.maximum(1, np.abs(want))).max()
    print(f"torch against the numpy reference: worst error {worst:.1e} of max(1, |logit|)")
    sys.exit(worst > 1e-3)


if __name__ == "__main__":
    main()
