/* Cutting, merging, special tokens, encoding.  Files: tests/tokenizer_files.c; ids of the released
 * vocabulary: tests/tokenizer_ids.c. */
#include <check.h>
#include <jansson.h>
#include <pthread.h>

#include "format/tokenizer.h"
#include "format/utf8.h"
#include "tests/vocabulary.h"

static struct k3_pattern *patterns[2]; /* interpreted, JIT */

static void setup(void) {
    for (int jit = 0; jit < 2; jit++) ck_assert_int_eq(k3_pattern_new(jit, &patterns[jit], NULL), K3_OK);
    ck_assert(!k3_pattern_jitted(patterns[0]));
}

static void teardown(void) {
    for (int jit = 0; jit < 2; jit++) k3_pattern_free(patterns[jit]);
}

/* Lengths of the pieces of a text; returns how many. */
static size_t cut(const struct k3_pattern *p, const char *text, size_t n, size_t *pieces) {
    struct k3_match *match = k3_match_new(p);
    size_t count = 0;
    for (size_t at = 0; at < n; at += pieces[count++]) { /* every ck_assert writes to a file: few of them */
        k3_status status = k3_pattern_first(p, match, text + at, n - at, &pieces[count], NULL);
        if (status != K3_OK || pieces[count] == 0 || pieces[count] > n - at) ck_abort_msg("no piece at %zu", at);
    }
    k3_match_free(match);
    return count;
}

START_TEST(pieces_of_the_vectors) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/vectors.json", getenv("K3_SRCDIR"));
    json_t *root = json_load_file(path, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL), *item;
    json_t *list = json_object_get(root, "mode_ordinary");
    ck_assert_uint_eq(json_array_size(list), 7);
    size_t i, pieces[256];
    json_array_foreach(list, i, item) {
        json_t *text = json_object_get(item, "text"), *expected = json_object_get(item, "pieces"), *piece;
        const char *s = json_string_value(text);
        ck_assert_uint_eq(cut(patterns[_i], s, json_string_length(text), pieces), json_array_size(expected));
        size_t k;
        json_array_foreach(expected, k, piece) {
            ck_assert_uint_eq(pieces[k], json_string_length(piece));
            ck_assert_mem_eq(s, json_string_value(piece), pieces[k]);
            s += pieces[k];
        }
    }
    json_decref(root);
}
END_TEST

/* Pieces are joined by |, which none of the texts contains itself. */
static const char *const by_hand[] = {
    "a| b", "a| | b", "a|   | b", "hello|   ", "a|\t\t|\tb", "text|   \n|  | more", "a|\n\n\n\n|b",
    "line|1|\r\n|line", "a|   | !", "a|   | |7", "a|   | |中", "123|456|7", "½1²|3", "1〇〇|〇", "camel|Case",
    "HTMLParser", "ABCdef|G", "Mc|Donald", "it's", "IT'S", "it'\u017f", "don't|'x", "we'RE", "'llama", "1|'s",
    "a\u0301b", "\u0301|A|!", "!\u0301|!!\u0301|a", "中|A's", "x|々|y", "A|中|B", "한국|ABC", "ABC한국|DEF", "あい|中|う",
    "中|、|文", "中⺀", "!⺀| ⺀|x", "ᅟa", "ǅa|ǅA", "a|\u180eb", "a|\u180e\u180e|b", "\x1c\x1c| a", "a|\u3000b",
    "\u3000|中", "a|\u2028| b", "\r\n|a", " _|x", "a|_x", " __|x", "!!\r\n\r\n|x", "!\n|/x", "🚀🔥| 🚀",
};

START_TEST(pieces_by_hand) {
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
        char text[256], got[512];
        size_t n = 0, pieces[256], to = 0, at = 0;
        for (const char *s = by_hand[i]; *s; s++)
            if (*s != '|') text[n++] = *s;
        size_t count = cut(patterns[_i], text, n, pieces);
        for (size_t k = 0; k < count; k++) {
            if (k) got[to++] = '|';
            memcpy(got + to, text + at, pieces[k]);
            to += pieces[k];
            at += pieces[k];
        }
        got[to] = 0;
        ck_assert_str_eq(got, by_hand[i]);
    }
}
END_TEST

/* A piece of 400,000 characters must not meet a limit of the stack, the heap or the patience of PCRE2. */
START_TEST(long_pieces) {
    static const char *const units[] = {"a", "A", "ט", "\u0301", "中", " ", "\n", "\r", "!", "🚀", "\u3000", "ǅ", "ʰ"};
    static const char *const tails[] = {"", "a", " ", "\n", "1", "'s"};
    const size_t characters = 400000;
    char *text = malloc(characters * 4 + 8);
    ck_assert_ptr_nonnull(text);
    struct k3_match *match = k3_match_new(patterns[_i]);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (size_t t = 0; t < sizeof tails / sizeof *tails; t++) {
            size_t unit = strlen(units[u]), n = characters * unit, piece = 0;
            for (size_t i = 0; i < characters; i++) memcpy(text + i * unit, units[u], unit);
            memcpy(text + n, tails[t], strlen(tails[t]));
            n += strlen(tails[t]);
            ck_assert_int_eq(k3_pattern_first(patterns[_i], match, text, n, &piece, NULL), K3_OK);
            ck_assert_uint_ge(piece, (characters - 1) * unit);
        }
    k3_match_free(match);
    free(text);
}
END_TEST

START_TEST(jit_and_interpreter_agree) {
    uint64_t state = 1;
    char text[4 * 60];
    size_t a[256], b[256];
    for (int round = 0; round < 20000; round++) {
        size_t n = random_text(&state, text, 60), count = cut(patterns[0], text, n, a), total = 0;
        ck_assert_uint_eq(cut(patterns[1], text, n, b), count);
        ck_assert_mem_eq(a, b, count * sizeof *a);
        for (size_t i = 0; i < count; i++) total += a[i];
        ck_assert_uint_eq(total, n);
    }
}
END_TEST

/* ---- caps ---- */

/* The original's loop, on characters: where parts end. */
static size_t reference_parts(const uint32_t *c, size_t n, const struct k3_caps *caps, size_t *ends) {
    static const uint32_t blanks[] = {9, 10, 11, 12, 13, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680, 0x2000,
                                      0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a,
                                      0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    size_t count = 0;
    for (size_t slice = 0; slice < n; slice += caps->slice) {
        size_t end = n - slice < caps->slice ? n : slice + caps->slice, run = 0;
        bool kind = false;
        for (size_t i = slice; i < end; i++) {
            bool blank = false;
            for (size_t k = 0; k < sizeof blanks / sizeof *blanks; k++) blank |= c[i] == blanks[k];
            if (i == slice) kind = blank;
            if (blank != kind) run = 1;
            else if (++run > caps->run) ends[count++] = i, run = 1;
            kind = blank;
        }
        ends[count++] = end;
    }
    return count;
}

START_TEST(parts_equal_the_reference) {
    uint64_t state = 2;
    for (int round = 0; round < 20000; round++) {
        uint32_t c[60];
        char text[240];
        size_t offset[61] = {0}, n = test_random(&state) % 61, ends[120];
        bool often_blank = test_random(&state) & 1;
        for (size_t i = 0; i < n; i++) {
            bool blank = often_blank && test_random(&state) % 2;
            c[i] = blank ? 0x2000 + test_random(&state) % 16 : random_character(&state);
            offset[i + 1] = offset[i] + put_utf8(text + offset[i], c[i]);
        }
        struct k3_caps caps = {1 + test_random(&state) % 40, 1 + test_random(&state) % 12};
        size_t count = reference_parts(c, n, &caps, ends), at = 0, slice_left = 0;
        for (size_t i = 0, begin = 0; i < count; i++, begin = at) {
            size_t part = k3_caps_next(&caps, text, offset[n], &at, &slice_left);
            if (part == 0 || at != begin + part || at != offset[ends[i]]) ck_abort_msg("part %zu ends at %zu", i, at);
        }
        ck_assert_uint_eq(k3_caps_next(&caps, text, offset[n], &at, &slice_left), 0);
    }
}
END_TEST

START_TEST(released_caps) {
    const size_t n = 900001;
    char *text = malloc(n);
    ck_assert_ptr_nonnull(text);
    memset(text, 'a', n);
    size_t at = 0, slice_left = 0, parts = 0;
    for (size_t part; (part = k3_caps_next(&k3_caps_released, text, n, &at, &slice_left)) > 0; parts++)
        ck_assert_uint_eq(part, parts < 36 ? 25000 : 1);
    ck_assert_uint_eq(parts, 37);
    for (size_t i = 0; i < n; i += 2) text[i] = ' '; /* now only slices bind */
    at = slice_left = 0;
    ck_assert_uint_eq(k3_caps_next(&k3_caps_released, text, n, &at, &slice_left), 400000);
    ck_assert_uint_eq(k3_caps_next(&k3_caps_released, text, n, &at, &slice_left), 400000);
    ck_assert_uint_eq(k3_caps_next(&k3_caps_released, text, n, &at, &slice_left), 100001);
    free(text);
}
END_TEST

/* ---- merges ---- */

struct string {
    const char *s;
    size_t n;
};

/* By the definition: look at all pairs, join the one of lowest rank, begin anew. */
static size_t naive_merge(const struct k3_vocab *v, const char *s, size_t n, int32_t *ids) {
    struct string part[1024];
    if (k3_vocab_find(v, s, n) != K3_NO_TOKEN) return ids[0] = (int32_t)k3_vocab_find(v, s, n), 1;
    for (size_t i = 0; i < n; i++) part[i] = (struct string){s + i, 1};
    for (size_t parts = n;; parts--) {
        uint32_t best = K3_NO_TOKEN;
        size_t where = 0;
        for (size_t i = 0; i + 1 < parts; i++) {
            uint32_t rank = k3_vocab_find(v, part[i].s, part[i].n + part[i + 1].n);
            if (rank < best) best = rank, where = i;
        }
        if (best == K3_NO_TOKEN) {
            for (size_t i = 0; i < parts; i++) ids[i] = (int32_t)k3_vocab_find(v, part[i].s, part[i].n);
            return parts;
        }
        part[where].n += part[where + 1].n;
        memmove(&part[where + 1], &part[where + 2], (parts - where - 2) * sizeof *part);
    }
}

/* Random strings as tokens, in random order of rank: nastier than a learned vocabulary, whose tokens
 * always are the join of two lower ones. */
static void random_vocabulary(uint64_t *state, unsigned letters, unsigned tokens, struct k3_vocab *v) {
    struct model_text m = model_of_bytes();
    char string[160][12];
    ck_assert_uint_le(tokens, 160);
    for (unsigned i = 0; i < tokens; i++) {
        size_t n = 2 + test_random(state) % 11;
        memset(string[i], 0, sizeof string[i]);
        for (size_t k = 0; k < n; k++) string[i][k] = (char)('a' + test_random(state) % letters);
        bool known = false;
        for (unsigned k = 0; k < i; k++) known |= memcmp(string[k], string[i], sizeof string[i]) == 0;
        if (!known) model_token(&m, string[i], n);
    }
    ck_assert_int_eq(k3_vocab_parse("model", m.s, m.n, v, NULL), K3_OK);
    free(m.s);
}

START_TEST(merges_equal_the_naive_ones) {
    uint64_t state = 3;
    struct k3_merge_room room = {0};
    for (int round = 0; round < 40; round++) {
        struct k3_vocab v;
        unsigned letters = 1 + test_random(&state) % 4;
        random_vocabulary(&state, letters, 10 + test_random(&state) % 150, &v);
        for (int k = 0; k < 60; k++) {
            char s[300];
            int32_t got[300], expected[300];
            size_t most = k % 3 == 0 ? sizeof s : 70, n = 1 + test_random(&state) % most; /* both ways of merging */
            for (size_t i = 0; i < n; i++) s[i] = (char)('a' + test_random(&state) % letters);
            size_t count = k3_vocab_merge(&v, s, n, &room, got);
            ck_assert_uint_eq(count, naive_merge(&v, s, n, expected));
            ck_assert_mem_eq(got, expected, count * sizeof *got);
        }
        k3_vocab_clear(&v);
    }
    free(room.memory);
}
END_TEST

/* A token longer than all that merging is quick for, found as a whole. */
START_TEST(whole_pieces_come_first) {
    struct model_text m = model_of_bytes();
    char s[300];
    memset(s, 'x', sizeof s);
    model_token(&m, s, 300);
    model_token(&m, s, 5);
    struct k3_vocab v;
    ck_assert_int_eq(k3_vocab_parse("model", m.s, m.n, &v, NULL), K3_OK);
    struct k3_merge_room room = {0};
    int32_t ids[300];
    ck_assert_uint_eq(k3_vocab_merge(&v, s, 300, &room, ids), 1);
    ck_assert_int_eq(ids[0], 256);
    ck_assert_uint_eq(k3_vocab_merge(&v, s, 299, &room, ids), 299); /* no two bytes join */
    ck_assert_uint_eq(k3_vocab_merge(&v, s, 5, &room, ids), 1);
    ck_assert_int_eq(ids[0], 257);
    free(room.memory);
    k3_vocab_clear(&v);
    free(m.s);
}
END_TEST

/* ---- the whole ---- */

static const char config[] = "{\"added_tokens_decoder\": {"
                             "\"262\": {\"content\": \"[BOS]\", \"special\": true},"
                             "\"263\": {\"content\": \"<|open|>\"},"
                             "\"264\": {\"content\": \"<|open|>>\"}, \"265\": {\"content\": \"中\"},"
                             "\"517\": {\"content\": \"[PAD]\"}}}";

/* 262 base tokens: ranks 256 to 261 are these. */
static k3_tokenizer *small_tokenizer(void) {
    static const char *const tokens[] = {" a", "ab", "open", "<|", "  ", "op"};
    struct model_text m = model_of_bytes();
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) model_token(&m, tokens[i], strlen(tokens[i]));
    k3_tokenizer *t = NULL;
    k3_error err = {0};
    k3_status status = k3_tokenizer_from_memory(m.s, m.n, config, sizeof config - 1, &t, &err);
    ck_assert_msg(status == K3_OK, "%s", err.text);
    free(m.s);
    return t;
}

static void expect_ids(const k3_tokenizer *t, const char *text, unsigned flags, size_t count, const int32_t *expected) {
    int32_t *ids = NULL;
    size_t n = 99;
    ck_assert_int_eq(k3_tokenizer_encode(t, text, strlen(text), flags, &ids, &n, NULL), K3_OK);
    ck_assert_uint_eq(n, count);
    if (count) ck_assert_mem_eq(ids, expected, count * sizeof *ids);
    else ck_assert_ptr_null(ids);
    k3_free(ids);
}

#define IDS(...) sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__}

START_TEST(special_tokens) {
    k3_tokenizer *t = small_tokenizer();
    ck_assert_uint_eq(k3_tokenizer_vocab_size(t), 262 + 256);
    expect_ids(t, "", K3_ENCODE_SPECIAL, 0, NULL);
    expect_ids(t, "[BOS]", K3_ENCODE_SPECIAL, IDS(262));
    expect_ids(t, "[BOS", K3_ENCODE_SPECIAL, IDS('[', 'B', 'O', 'S'));
    expect_ids(t, "<|open|>", K3_ENCODE_SPECIAL, IDS(263));
    expect_ids(t, "<|open|>", K3_ENCODE_ORDINARY, IDS(259, 258, '|', '>'));
    expect_ids(t, "<|open|>>", K3_ENCODE_SPECIAL, IDS(264)); /* the longest */
    expect_ids(t, "<|open|>x>[BOS][BOS]", K3_ENCODE_SPECIAL, IDS(263, 'x', '>', 262, 262));
    expect_ids(t, "<<|open|>", K3_ENCODE_SPECIAL, IDS('<', 263));
    expect_ids(t, "a中b", K3_ENCODE_SPECIAL, IDS('a', 265, 'b'));
    expect_ids(t, "<|reserved_token_300|>", K3_ENCODE_SPECIAL, IDS(300));
    expect_ids(t, "<|reserved_token_262|>", K3_ENCODE_SPECIAL, /* that slot has a name */
               IDS(259, 'r', 'e', 's', 'e', 'r', 'v', 'e', 'd', '_', 't', 'o', 'k', 'e', 'n', '_', '2', '6', '2', '|',
                   '>'));
    /* The text before a special token ends there: its two blanks stay together, as at the end of a text. */
    expect_ids(t, "x  [BOS]", K3_ENCODE_SPECIAL, IDS('x', 260, 262));
    expect_ids(t, "x  [BOS]", K3_ENCODE_ORDINARY, IDS('x', ' ', ' ', '[', 'B', 'O', 'S', ']'));

    ck_assert_int_eq(k3_tokenizer_special(t, "[BOS]"), 262);
    ck_assert_int_eq(k3_tokenizer_special(t, "<|open|>"), 263);
    ck_assert_int_eq(k3_tokenizer_special(t, "<|open|"), -1);
    ck_assert_int_eq(k3_tokenizer_special(t, ""), -1);
    ck_assert_int_eq(k3_tokenizer_special(t, "ab"), -1);
    ck_assert_int_eq(k3_tokenizer_special(t, "<|reserved_token_300|>"), 300);
    ck_assert(k3_tokenizer_is_reserved(t, 300) && k3_tokenizer_is_reserved(t, 517));
    ck_assert(!k3_tokenizer_is_reserved(t, 262) && !k3_tokenizer_is_reserved(t, 97));
    ck_assert(!k3_tokenizer_is_reserved(t, -1) && !k3_tokenizer_is_reserved(t, 518));
    k3_tokenizer_close(t);
}
END_TEST

START_TEST(bytes_of_ids) {
    k3_tokenizer *t = small_tokenizer();
    size_t n;
    for (int32_t byte = 0; byte < 256; byte++) {
        ck_assert_int_eq((unsigned char)*k3_tokenizer_bytes(t, byte, &n), byte);
        ck_assert_uint_eq(n, 1);
    }
    ck_assert_mem_eq(k3_tokenizer_bytes(t, 258, &n), "open", 4);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(k3_tokenizer_bytes(t, 263, &n), "<|open|>");
    ck_assert_uint_eq(n, 8);
    ck_assert_str_eq(k3_tokenizer_bytes(t, 516, &n), "<|reserved_token_516|>");
    ck_assert_ptr_null(k3_tokenizer_bytes(t, 518, &n));
    ck_assert_ptr_null(k3_tokenizer_bytes(t, -1, &n));
    ck_assert_ptr_null(k3_tokenizer_bytes(t, INT32_MIN, &n));
    ck_assert_ptr_null(k3_tokenizer_bytes(t, INT32_MAX, &n));
    k3_tokenizer_close(t);
}
END_TEST

/* Encodes and joins the ids' bytes again. */
static void expect_round_trip(const k3_tokenizer *t, const struct k3_caps *caps, const char *text, size_t n,
                              unsigned flags, const char *expected, size_t expected_n) {
    int32_t *ids = NULL;
    size_t count = 0, at = 0, length;
    ck_assert_int_eq(k3_tokenizer_encode_capped(t, caps, text, n, flags, &ids, &count, NULL), K3_OK);
    for (size_t i = 0; i < count; i++) {
        const char *bytes = k3_tokenizer_bytes(t, ids[i], &length);
        if (!bytes || at + length > expected_n || memcmp(expected + at, bytes, length)) ck_abort_msg("id %d", ids[i]);
        if (flags == K3_ENCODE_ORDINARY && ids[i] >= 262) ck_abort_msg("special id %d in ordinary text", ids[i]);
        at += length;
    }
    ck_assert_uint_eq(at, expected_n);
    k3_free(ids);
}

START_TEST(round_trips) {
    static const char *const spellings[] = {"[BOS]", "<|open|>", "<|reserved_token_400|>", "ab", " a", "open"};
    k3_tokenizer *t = small_tokenizer();
    uint64_t state = 4;
    for (int round = 0; round < 10000; round++) {
        char text[1000];
        size_t n = 0;
        for (int k = 0; k < 3; k++) {
            const char *spelling = spellings[test_random(&state) % 6];
            n += random_text(&state, text + n, 40);
            memcpy(text + n, spelling, strlen(spelling));
            n += strlen(spelling);
        }
        struct k3_caps caps = {1 + test_random(&state) % 50, 1 + test_random(&state) % 20};
        expect_round_trip(t, &k3_caps_released, text, n, (unsigned)round & 1, text, n);
        expect_round_trip(t, &caps, text, n, (unsigned)round & 1, text, n);
    }
    k3_tokenizer_close(t);
}
END_TEST

START_TEST(invalid_text_is_repaired) {
    k3_tokenizer *t = small_tokenizer();
    uint64_t state = 5;
    for (int round = 0; round < 5000; round++) {
        char text[64];
        size_t n = test_random(&state) % sizeof text, fixed_n;
        for (size_t i = 0; i < n; i++) text[i] = (char)(test_random(&state) >> 8);
        char *fixed = k3_utf8_repair(text, n, &fixed_n);
        ck_assert_uint_eq(k3_utf8_valid(fixed, fixed_n), fixed_n);
        expect_round_trip(t, &k3_caps_released, text, n, (unsigned)round & 1, fixed, fixed_n);
        free(fixed);
    }
    expect_ids(t, "a\xff" "b", 0, IDS('a', 0xef, 0xbf, 0xbd, 'b'));
    k3_tokenizer_close(t);
}
END_TEST

/* A cap cuts even through a special token's spelling, as in the original. */
START_TEST(caps_come_before_special_tokens) {
    k3_tokenizer *t = small_tokenizer();
    char *text = malloc(25010);
    ck_assert_ptr_nonnull(text);
    for (size_t before = 24994; before <= 25000; before++) {
        memset(text, 'z', before);
        memcpy(text + before, "[BOS]", 5);
        int32_t *ids;
        size_t n;
        ck_assert_int_eq(k3_tokenizer_encode(t, text, before + 5, K3_ENCODE_SPECIAL, &ids, &n, NULL), K3_OK);
        bool whole = before + 5 <= 25000 || before == 25000;
        ck_assert_int_eq(ids[n - 1], whole ? 262 : ']');
        k3_free(ids);
    }
    free(text);
    k3_tokenizer_close(t);
}
END_TEST

START_TEST(unknown_flags) {
    k3_tokenizer *t = small_tokenizer();
    int32_t *ids = NULL;
    size_t n;
    k3_error err = {0};
    ck_assert_int_eq(k3_tokenizer_encode(t, "a", 1, 2, &ids, &n, &err), K3_ERR_ARGUMENT);
    ck_assert_ptr_null(ids);
    ck_assert_ptr_nonnull(strstr(err.text, "flags"));
    k3_tokenizer_close(t);
}
END_TEST

struct worker {
    pthread_t thread;
    const k3_tokenizer *tokenizer;
    const char *text;
    size_t n, wrong;
    const int32_t *expected;
    size_t expected_n;
};

static void *encode_again(void *arg) {
    struct worker *w = arg;
    for (int round = 0; round < 50; round++) {
        int32_t *ids = NULL;
        size_t n = 0;
        if (k3_tokenizer_encode(w->tokenizer, w->text, w->n, K3_ENCODE_SPECIAL, &ids, &n, NULL) != K3_OK ||
            n != w->expected_n || memcmp(ids, w->expected, n * sizeof *ids) != 0)
            w->wrong++;
        k3_free(ids);
    }
    return NULL;
}

START_TEST(several_threads) {
    k3_tokenizer *t = small_tokenizer();
    struct worker workers[4];
    uint64_t state = 6;
    static char text[4][4 * 2000];
    for (int i = 0; i < 4; i++) {
        int32_t *ids;
        size_t n = random_text(&state, text[i], 2000), count;
        ck_assert_int_eq(k3_tokenizer_encode(t, text[i], n, K3_ENCODE_SPECIAL, &ids, &count, NULL), K3_OK);
        workers[i] = (struct worker){.tokenizer = t, .text = text[i], .n = n, .expected = ids, .expected_n = count};
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, encode_again, &workers[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].wrong, 0);
        k3_free((void *)workers[i].expected);
    }
    k3_tokenizer_close(t);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tokenizer");
    TCase *pieces = tcase_create("pieces"), *merges = tcase_create("merges"), *whole = tcase_create("whole");
    tcase_add_checked_fixture(pieces, setup, teardown);
    tcase_add_loop_test(pieces, pieces_of_the_vectors, 0, 2);
    tcase_add_loop_test(pieces, pieces_by_hand, 0, 2);
    tcase_add_loop_test(pieces, long_pieces, 0, 2);
    tcase_add_test(pieces, jit_and_interpreter_agree);
    tcase_add_test(pieces, parts_equal_the_reference);
    tcase_add_test(pieces, released_caps);
    tcase_add_test(merges, merges_equal_the_naive_ones);
    tcase_add_test(merges, whole_pieces_come_first);
    tcase_add_test(whole, special_tokens);
    tcase_add_test(whole, bytes_of_ids);
    tcase_add_test(whole, round_trips);
    tcase_add_test(whole, invalid_text_is_repaired);
    tcase_add_test(whole, caps_come_before_special_tokens);
    tcase_add_test(whole, unknown_flags);
    tcase_add_test(whole, several_threads);
    tcase_set_timeout(pieces, 120);
    tcase_set_timeout(merges, 120);
    tcase_set_timeout(whole, 120);
    suite_add_tcase(suite, pieces);
    suite_add_tcase(suite, merges);
    suite_add_tcase(suite, whole);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
