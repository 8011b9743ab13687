"""k3 perplexity and k3 compare: against NumPy's reference, for windows and strides of all kinds."""
import json
import math
import os
import random
import sys

from harness import SOURCE, copy_model, fresh_directory, golden, k3, main, model_with_tokenizer, replace, test

try:
    import numpy
except ImportError:
    print("skipped: Python has no NumPy")
    sys.exit(77)
sys.path.insert(0, os.path.join(SOURCE, "tests", "reference"))
sys.dont_write_bytecode = True
import k3_reference  # noqa: E402

IDS = [random.Random(4).randrange(512) for _ in range(150)]
REFERENCE = []


def reference_logits(ids):
    if not REFERENCE:
        REFERENCE.append(k3_reference.cached(k3_reference.Model(golden())))
    return REFERENCE[0].forward(ids, REFERENCE[0].new_state()).astype(numpy.float64)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(-1, keepdims=True))


def expected_nll(ids, window, stride):
    """The mean over all ids but the first, each scored in the first window that holds it with context."""
    nll, start, scored = [], 0, 1
    while scored < len(ids):
        part = ids[start:start + window]
        lp = log_softmax(reference_logits(part))
        nll += [-lp[i - start - 1, ids[i]] for i in range(scored, start + len(part))]
        scored, start = start + len(part), start + stride
    assert len(nll) == len(ids) - 1
    return numpy.mean(nll), numpy.std(nll, ddof=1) / math.sqrt(len(nll))


def ids_file(ids=IDS):
    path = os.path.join(fresh_directory(), "ids")
    replace(path, " ".join(map(str, ids)))
    return path


def perplexity(*args):
    r = k3("perplexity", golden(), ids_file(), "--ids", "--json", *args)
    assert r.code == 0, r
    return r.json()


@test
def one_window():
    j = perplexity()
    want, error = expected_nll(IDS, 2048, 1024)
    assert abs(j["nll"] - want) < 1e-4 and abs(j["nll_error"] - error) < 1e-4, (j, want, error)
    assert abs(j["perplexity"] - math.exp(want)) < 1e-4 * math.exp(want), j
    assert j["tokens"] == 150 and j["scored"] == 149 and j["windows"] == 1


@test
def windows_and_strides():
    for window, stride in ((64, 32), (50, 49), (2, 1), (100, 7), (149, 148), (150, 1), (151, 75)):
        j = perplexity("--window", window, "--stride", stride)
        want, _ = expected_nll(IDS, window, stride)
        assert j["scored"] == 149 and abs(j["nll"] - want) < 1e-4, (window, stride, j, want)


@test
def a_text_is_encoded():
    path = os.path.join(fresh_directory(), "text")
    replace(path, "An apple.")
    r = k3("perplexity", model_with_tokenizer(), path, "--json")
    want, _ = expected_nll(list(b"An apple."), 2048, 1024)
    assert abs(r.json()["nll"] - want) < 1e-4, (r, want)
    r = k3("perplexity", model_with_tokenizer(), "-", "--json", stdin="An apple.")
    assert abs(r.json()["nll"] - want) < 1e-4, r
    shown = k3("perplexity", model_with_tokenizer(), path)
    said = float(shown.out.split(b"perplexity ")[1].split()[0])  # 4 digits, and JSON has 9 in all: not the same rounding
    assert shown.code == 0 and abs(said - r.json()["perplexity"]) < 2e-4, shown


def compare(*args):
    r = k3("compare", golden(), ids_file(), "--ids", "--json", *args)
    assert r.code == 0, r
    return r.json()


@test
def a_way_compared_with_itself():
    j = compare("--a", "--threads 1", "--b", "--threads 2", "--window", 64)
    assert j["kl_mean"] == j["kl_max"] == 0 and j["same_top"] == 1 and j["scored"] == 149, j
    assert abs(j["a"]["nll"] - expected_nll(IDS, 64, 32)[0]) < 1e-4 and j["a"]["nll"] == j["b"]["nll"], j
    j = compare("--a", "--isa scalar")
    assert 0 <= j["kl_mean"] < 1e-6 and j["same_top"] > .99, j


@test
def two_checkpoints_compared():
    other = copy_model()
    config = json.load(open(os.path.join(other, "config.json")))
    config["text_config"]["activation_situ_beta"] = 1.0
    replace(os.path.join(other, "config.json"), json.dumps(config))
    j = compare("--b-model", other)
    a = log_softmax(reference_logits(IDS))[:-1]
    b = log_softmax(k3_reference.cached(k3_reference.Model(other)).forward(
        IDS, REFERENCE[0].new_state()).astype(numpy.float64))[:-1]
    kl = (numpy.exp(a) * (a - b)).sum(-1)
    assert kl.mean() > 1e-3 and abs(j["kl_mean"] - kl.mean()) < 1e-3 * kl.mean(), (j, kl.mean())
    assert abs(j["kl_max"] - kl.max()) < 1e-3 * kl.max() and j["kl_99"] <= j["kl_max"], (j, kl.max())
    same = (a.argmax(-1) == b.argmax(-1)).mean()
    assert abs(j["same_top"] - same) < .02, (j, same)
    assert b"KL(a || b)" in k3("compare", golden(), ids_file(), "--ids", "--b-model", other).out


@test
def what_is_wrong_with_a_comparison_is_said():
    small = fresh_directory()
    replace(os.path.join(small, "config.json"), "{}")
    for args, code, part in ((("--a", "--isa nothing"), 2, "--isa"), (("--a", "'"), 2, "--a: a quote is left open"),
                             (("--b", "--json"), 2, "unknown option --json"), (("--b", "x"), 2, "is not an option"),
                             (("--b-model", small), 1, "config.json")):
        r = k3("compare", golden(), ids_file(), "--ids", *args)
        assert r.code == code and part in r.lines[0] and len(r.lines) == 1, (args, r)


@test
def what_is_wrong_is_said():
    for args, code, part in ((("--window", 64, "--stride", 64), 2, "below the window"),
                             (("--window", 1), 2, "--window"), ((), 1, "at least two tokens")):
        r = k3("perplexity", golden(), ids_file([5] if not args else IDS), "--ids", *args)
        assert r.code == code and part in r.lines[-1] and len(r.lines) == 1, (args, r)
    r = k3("perplexity", golden(), ids_file([5, 512]), "--ids")
    assert r.code == 2 and "512" in r.lines[0], r
    assert k3("perplexity", golden()).code == 2
    assert k3("perplexity", golden(), "/nowhere", "--ids").code == 1


if __name__ == "__main__":
    main()
