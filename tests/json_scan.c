/* The strict JSON reader: which values it takes, what it makes of strings and numbers, and that it
 * makes the same of a text in memory and of one that comes in pieces. */
#include "format/json_scan.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct pieces {
    const char *text;
    size_t length, at, blanks, piece;
};

static size_t read_piece(void *user, char *to, size_t room) {
    struct pieces *p = user;
    size_t n = p->blanks < room ? p->blanks : room;
    if (n) {
        memset(to, ' ', n);
        p->blanks -= n;
        return n;
    }
    n = p->length - p->at < p->piece ? p->length - p->at : p->piece;
    if (n > room) n = room;
    memcpy(to, p->text + p->at, n);
    p->at += n;
    return n;
}

/* Runs one reading of a text of its own, in memory or in pieces behind many blanks. */
static void with_text(const char *text, size_t length, bool pieces, void (*use)(struct k3_json *j, void *arg),
                      void *arg) {
    char *memory = malloc(pieces ? K3_JSON_WINDOW : length + 1); /* as large as needed: sanitizers see more */
    ck_assert_ptr_nonnull(memory);
    struct pieces p = {.text = text, .length = length, .blanks = K3_JSON_WINDOW - K3_JSON_TOKEN - 5, .piece = 1};
    struct k3_json_source source = {read_piece, &p};
    struct k3_json j = pieces ? k3_json_from(&source, memory) : k3_json_of(memory, length);
    if (!pieces && length) memcpy(memory, text, length);
    use(&j, arg);
    free(memory);
}

static const char *const valid[] = {
    "0", "-0", "7", "-12", "1.5", "-0.25", "1e9", "1E+9", "1.0e-9", "123456789012345678901234567890", "true", "false",
    "null", "\"\"", "\"a\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0041\\u00e9\\u4e2d\\uD83D\\uDE00\"",
    "\"\xf0\x9f\x98\x80\"", "\"a string of more than sixteen bytes, to be passed eight by eight\"", "[]", "{}",
    "[[],{}]", "[1,2 , 3]", "{\"a\":1,\"b\":[{\"c\":null}],\"d\":{}}", " \t\r\n[ \t\r\n1 \t\r\n] \t\r\n",
    "{\"a\" : {\"b\" : {} } , \"c\":[ ] }", "{\"\":\"\"}",
};

static const char *const invalid[] = {
    "", " ", "-", "+1", "01", "-01", "1.", ".5", "1.e5", "1e", "1e+", "0x10", "NaN", "Infinity", "tru", "truex",
    "nul", "True", "\"", "\"a", "\"\\\"", "\"\\", "\"\\u12\"", "\"\\u12g4\"", "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"",
    "\"\\ud800\\u0041\"", "\"\\ud800x\"", "\"\\u0000\"", "\"a\tb\"", "\"\x80\"", "\"\xc0\x80\"",
    "\"\xf4\x90\x80\x80\"", "\"\xe4\xb8\"", "'a'", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}",
    "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{1:2}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
    "{\"a\":1]", "{\"a\":}", "{a:1}", "[1]]", "1 2", "[] x", "/**/1",
    "[\xef\xbb\xbf]", "\xef\xbb\xbf[]",
};

static void skip_all(struct k3_json *j, void *good) {
    bool ok = k3_json_skip(j) && k3_json_finish(j);
    *(bool *)good = ok;
    ck_assert_int_eq(ok, j->error == NULL);
    if (!ok) ck_assert(!k3_json_skip(j) && !k3_json_finish(j)); /* an error stays */
}

START_TEST(test_valid) {
    bool ok = false;
    with_text(valid[_i], strlen(valid[_i]), false, skip_all, &ok);
    ck_assert_msg(ok, "%s", valid[_i]);
    with_text(valid[_i], strlen(valid[_i]), true, skip_all, &ok);
    ck_assert_msg(ok, "in pieces: %s", valid[_i]);
}
END_TEST

START_TEST(test_invalid) {
    bool ok = true;
    with_text(invalid[_i], strlen(invalid[_i]), false, skip_all, &ok);
    ck_assert_msg(!ok, "%s", invalid[_i]);
    with_text(invalid[_i], strlen(invalid[_i]), true, skip_all, &ok);
    ck_assert_msg(!ok, "in pieces: %s", invalid[_i]);
}
END_TEST

/* Every cut of a text, and a zero byte anywhere in it, is refused. */
START_TEST(test_cut) {
    static const char text[] = "{\"ab\\u00e9\":[1.5e3,true,null,\"x\"],\"c\":{\"d\":-1}}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        bool ok = true;
        char zero[sizeof text];
        with_text(text, n, false, skip_all, &ok);
        ck_assert_msg(!ok, "%zu", n);
        memcpy(zero, text, sizeof text);
        zero[n] = 0;
        with_text(zero, sizeof text - 1, false, skip_all, &ok);
        ck_assert_msg(!ok, "zero at %zu", n);
    }
}
END_TEST

START_TEST(test_depth) {
    static const size_t depths[] = {1, K3_JSON_DEPTH, K3_JSON_DEPTH + 1, 100000};
    char *text = malloc(200000);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < COUNT(depths); i++) {
        size_t n = depths[i];
        bool ok;
        memset(text, '[', n);
        memset(text + n, ']', n);
        with_text(text, 2 * n, false, skip_all, &ok);
        ck_assert_int_eq(ok, n <= K3_JSON_DEPTH);
        with_text(text, n, false, skip_all, &ok);
        ck_assert(!ok);
    }
    free(text);
}
END_TEST

static void read_string(struct k3_json *j, void *wanted) {
    struct k3_name s;
    ck_assert(k3_json_string(j, &s));
    ck_assert_uint_eq(s.length, strlen(wanted));
    ck_assert_int_eq(memcmp(s.s, wanted, s.length), 0);
    ck_assert(k3_json_finish(j));
}

START_TEST(test_strings) {
    static const char *const strings[][2] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"a\\u0041b\"", "aAb"},
        {"\"\\u00e9\\u07ff\\u0800\\uffff\"", "\xc3\xa9\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"},
        {"\"\\ud800\\udc00\\udbff\\udfff\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"\"中\\u6587 and 文\"", "中文 and 文"},
        {"\"12345678\\n12345678901\"", "12345678\n12345678901"},
    };
    for (int pieces = 0; pieces < 2; pieces++)
        for (size_t i = 0; i < COUNT(strings); i++)
            with_text(strings[i][0], strlen(strings[i][0]), pieces, read_string, (void *)strings[i][1]);
}
END_TEST

static void read_uint(struct k3_json *j, void *out) {
    uint64_t v = 1234;
    if (k3_json_uint(j, &v) && k3_json_finish(j)) snprintf(out, 40, "%llu", (unsigned long long)v);
    else snprintf(out, 40, "%s", j->error);
}

START_TEST(test_numbers) {
    static const char *const numbers[][2] = {
        {"0", "0"}, {"7", "7"}, {"123456789012345678", "123456789012345678"},
        {"1234567890123456789", "1234567890123456789"}, {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "a number beyond 2^64 - 1"}, {"99999999999999999999", "a number beyond 2^64 - 1"},
        {"184467440737095516150", "a number beyond 2^64 - 1"}, {"00", "a number with a leading zero"},
        {"01", "a number with a leading zero"}, {"-1", "a negative number"}, {"-0", "a negative number"},
        {"1.0", "a number that is not whole"}, {"1e3", "a number that is not whole"}, {"", "expected a whole number"},
        {"\"1\"", "expected a whole number"}, {"1x", "more text behind the end"},
    };
    for (int pieces = 0; pieces < 2; pieces++)
        for (size_t i = 0; i < COUNT(numbers); i++) {
            char out[40];
            with_text(numbers[i][0], strlen(numbers[i][0]), pieces, read_uint, out);
            ck_assert_str_eq(out, numbers[i][1]);
        }
}
END_TEST

/* Strings from a source end at a limit, wherever they lie in the window; in memory they do not. */
START_TEST(test_limit) {
    char *text = malloc(K3_JSON_TOKEN + 10);
    ck_assert_ptr_nonnull(text);
    for (size_t over = 0; over < 2; over++) {
        size_t n = K3_JSON_TOKEN + over;
        bool ok;
        memset(text, 'x', n + 2);
        text[0] = text[n + 1] = '"';
        with_text(text, n + 2, false, skip_all, &ok);
        ck_assert(ok);
        for (size_t blanks = 0; blanks < 3; blanks++) {
            struct pieces p = {.text = text, .length = n + 2, .piece = 1000};
            struct k3_json_source source = {read_piece, &p};
            char *window = malloc(K3_JSON_WINDOW);
            p.blanks = blanks == 0 ? 0 : K3_JSON_WINDOW - K3_JSON_TOKEN - 1 - blanks;
            struct k3_json j = k3_json_from(&source, window);
            skip_all(&j, &ok);
            ck_assert_int_eq(ok, over == 0);
            free(window);
        }
    }
    free(text);
}
END_TEST

int main(void) {
    Suite *s = suite_create("json_scan");
    TCase *c = tcase_create("json_scan");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, test_valid, 0, COUNT(valid));
    tcase_add_loop_test(c, test_invalid, 0, COUNT(invalid));
    tcase_add_test(c, test_cut);
    tcase_add_test(c, test_depth);
    tcase_add_test(c, test_strings);
    tcase_add_test(c, test_numbers);
    tcase_add_test(c, test_limit);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
