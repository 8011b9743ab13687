"""k3 eval: judging, repeating, results that appear whole, task files with mistakes."""
import json
import os
import signal

from harness import TIMEOUT, byte_vocabulary, endless_model, fresh_directory, k3, main, model_with_tokenizer, replace
from harness import start, test

NAMES = {"%d" % (256 + i): {"content": n} for i, n in enumerate(
    ["[BOS]", "[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>"])}


def chat_model():
    to = model_with_tokenizer()
    replace(os.path.join(to, "tokenizer_config.json"), json.dumps({"added_tokens_decoder": NAMES}))
    return to


def task(number, judge, **more):
    return {"id": "t%d" % number, "group": "g%d" % (number % 2), "prompt": "An apple", "max_tokens": 8,
            "judge": judge, **more}


def file_of(tasks):
    path = os.path.join(fresh_directory(), "tasks.jsonl")
    replace(path, "".join((t if isinstance(t, str) else json.dumps(t)) + "\n" for t in tasks))
    return path


def continuation(model):
    return k3("run", model, "-p", "An apple", "-n", 8, "--temperature", 0, "--json").json()["text"]


@test
def every_kind_of_judge():
    model = chat_model()
    text = continuation(model)
    chat = {"messages": [{"role": "user", "content": "x"}], "prompt": None}
    tasks = [task(0, {"exact": " %s\n" % text.strip(" \t\r\n")}), task(1, {"exact": text + "x"}),
             task(2, {"regex": "^[\\s\\S]*$"}), task(3, {"regex": "^never this$"}),
             task(4, {"number": 12345}), task(5, {"number": 1e9, "tolerance": 2e9}),
             task(6, {"call": {"name": "f", "arguments": {}}})]
    for t in tasks[6:]:
        t.update(chat)
        del t["prompt"]
    out = os.path.join(fresh_directory(), "results")
    r = k3("eval", model, file_of(tasks), "--json", "--out", out)
    assert r.code == 0, r
    lines = [json.loads(line) for line in open(out, encoding="utf-8")]
    right = {line["id"]: line["right"] for line in lines[1:]}
    has_number = any(c.isdigit() for c in text)
    want = [True, False, True, False, False, has_number, False]
    assert right == {"t%d" % i: w for i, w in enumerate(want)}, right
    assert lines[1]["answer"] == text and len(lines[1]["ids"]) == 8 and lines[0]["tasks_bytes"] > 0, lines[:2]
    groups = {g["group"]: g for g in r.json()["groups"]}
    assert groups["all"]["tasks"] == 7 and groups["g0"]["tasks"] == 4 and groups["g0"]["right"] == 2, groups
    low, high = groups["g0"]["interval"]
    assert abs(low - .15) < .01 and abs(high - .85) < .01, groups["g0"]  # Wilson, 2 of 4
    assert groups["all"]["cost_per_task"] is None


def without_times(path):
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    for line in lines:
        line.pop("seconds", None)
    return lines


@test
def the_same_seed_gives_the_same_results():
    model, folder = chat_model(), fresh_directory()
    tasks = file_of([task(i, {"regex": "e"}) for i in range(3)])
    def run(name, seed, threads):
        r = k3("eval", model, tasks, "--repeat", 3, "--temperature", 1, "--seed", seed, "--threads", threads, "--out",
               os.path.join(folder, name), "--json", "--price", "0.80")
        assert r.code == 0, r
        lines = without_times(os.path.join(folder, name))
        lines[0].pop("threads")
        return lines, r.json()
    a, b, c = run("a", 7, 1), run("b", 7, 2), run("c", 8, 1)
    assert a[0] == b[0] and a[0] != c[0]
    assert [line["seed"] for line in a[0][1:]] == [7, 8, 9] * 3
    assert [line["ids"] for line in a[0][2::3]] == [line["ids"] for line in c[0][1::3]]  # seed 8 in both
    assert a[1]["runs"] == 9 and a[1]["groups"][-1]["cost_per_task"] > 0, a[1]


@test
def groups_and_limits():
    model = chat_model()
    path = file_of([task(i, {"regex": ""}) for i in range(6)])
    r = k3("eval", model, path, "--group", "g1", "--limit", 2, "--json").json()
    assert [(g["group"], g["tasks"], g["rate"]) for g in r["groups"]] == [("g1", 2, 1), ("all", 2, 1)], r
    shown = k3("eval", model, path)
    assert shown.code == 0 and b"100.0 % (61.0 - 100.0)" in shown.out, shown
    assert k3("eval", model, path, "--group", "none").code == 2


@test
def mistakes_are_named():
    model, good = chat_model(), task(1, {"regex": "a"})
    for bad, part in (("{", "line 2: "), ([1], "not a JSON object"), ({"prompt": "a"}, "id: not there"),
                      ({**good, "id": "x", "judge": {}}, "one of exact"), (good, "two tasks with the id t1"),
                      ({**good, "id": "x", "judge": {"regex": "("}}, "not a valid pattern"),
                      ({**good, "id": "x", "judge": {"exact": "a", "regex": "a"}}, "one of exact"),
                      ({**good, "id": "x", "messages": []}, "one of prompt"),
                      ({**good, "id": "x", "max_tokens": 0}, "max_tokens"), ({**good, "id": "x", "tools": []}, "tools"),
                      ({**good, "id": "x", "effort": 3}, "effort"),
                      ({**good, "id": "x", "prompt": ""}, "prompt is empty"),
                      ({"id": "x", "judge": {"exact": ""}, "messages": [{"role": "robot"}]}, "task x: message 1: role"),
                      ({"id": "x", "judge": {"exact": ""}, "effort": "medium", "messages": [
                          {"role": "user", "content": "a"}]}, "medium")):
        r = k3("eval", model, file_of([good, bad]))
        assert r.code == 1 and len(r.lines) == 1 and part in r.lines[0], (bad, r)
    assert "no tasks" in k3("eval", model, file_of([])).lines[0]
    assert k3("eval", model).code == 2 and k3("eval", model, "/nowhere").code == 1
    bytes_only = endless_model()
    replace(os.path.join(bytes_only, "tiktoken.model"), byte_vocabulary())
    chat = {"id": "c", "messages": [{"role": "user", "content": "a"}], "judge": {"exact": ""}}
    assert "<|open|>" in k3("eval", bytes_only, file_of([chat])).lines[0]


@test
def an_interrupted_run_shows_what_it_has():
    folder = fresh_directory()
    p = start("eval", chat_model(), file_of([task(i, {"regex": ""}, max_tokens=100000) for i in range(50)]))
    assert p.stderr.read(0) == b""
    try:
        p.wait(3)
    except Exception:  # still at work, as it should be
        p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=TIMEOUT)
    assert p.returncode == 130 and b"50 tasks" in out, (p.returncode, out, err)
    assert os.listdir(folder) == []


if __name__ == "__main__":
    main()
