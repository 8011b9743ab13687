"""k3 bench: the table and the object have what they promise."""
from harness import golden, k3, main, test

SMALL = ["--prompt", 16, "--decode", 4, "--repeat", 3]


@test
def the_object_is_whole():
    r = k3("bench", golden(), *SMALL, "--threads", "1,2", "--json")
    assert r.code == 0 and r.err == b"", r
    j = r.json()
    assert [row["threads"] for row in j["rows"]] == [1, 2] and j["repeat"] == 3, j
    for row in j["rows"]:
        for key in ("prompt_tokens_per_second", "decode_tokens_per_second", "read_bytes_per_second"):
            s = row[key]
            assert 0 < s["min"] <= s["median"] <= s["max"], (key, s)
        assert row["load_seconds"] > 0 and 0 < row["share"] < 100, row
        read = row["decode_tokens_per_second"]["median"] * j["token_bytes"]
        assert abs(row["decode_bytes_per_second"] - read) < 1e-3 * read, row
        assert abs(row["share"] - read / row["read_bytes_per_second"]["median"]) < 1e-3 * row["share"], row


@test
def the_table_has_a_row_for_each():
    r = k3("bench", golden(), *SMALL, "--threads", "2 1")
    lines = r.out.decode().splitlines()
    assert r.code == 0 and len(lines) == 5, r
    assert lines[3].split()[0] == "2" and lines[4].split()[0] == "1" and lines[3].endswith("%"), lines


@test
def the_default_is_one_row():
    r = k3("bench", golden(), *SMALL, "--json")
    assert r.code == 0 and len(r.json()["rows"]) == 1, r


main()
