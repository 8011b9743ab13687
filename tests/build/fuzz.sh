#!/usr/bin/env bash
# A few seconds of each libFuzzer target.
exec fuzz/run 5
