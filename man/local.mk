dist_man_MANS = man/k3.1 man/k3-run.1 man/k3-logits.1 man/k3-inspect.1 man/k3-bench.1 \
  man/k3-perplexity.1 man/k3-compare.1 man/k3-eval.1 man/libk3.3
