/* The streaming decoder, and the UTF-8 functions beneath it. */
#include <check.h>

#include "format/tokenizer.h"
#include "format/utf8.h"
#include "tests/vocabulary.h"

#define R "\xef\xbf\xbd"

static k3_tokenizer *tokenizer; /* bytes, then three longer tokens, then special ids from 259 */
static k3_decoder *decoder;

static void setup(void) {
    struct model_text m = model_of_bytes();
    model_token(&m, "ab\xe4", 3);
    model_token(&m, "\xb8\xad\xf0\x9f", 4);
    model_token(&m, "\0x", 2);
    static const char config[] = "{\"added_tokens_decoder\": {\"259\": {\"content\": \"<|sep|>\"}}}";
    k3_error err = {0};
    k3_status status = k3_tokenizer_from_memory(m.s, m.n, config, sizeof config - 1, &tokenizer, &err);
    ck_assert_msg(status == K3_OK, "%s", err.text);
    free(m.s);
    ck_assert_int_eq(k3_decoder_new(tokenizer, &decoder, NULL), K3_OK);
}

static void teardown(void) {
    k3_decoder_free(decoder);
    k3_tokenizer_close(tokenizer);
}

static void expect(k3_status status, const char *text, size_t length, const char *expected, size_t n) {
    ck_assert_int_eq(status, K3_OK);
    ck_assert_uint_eq(length, n);
    ck_assert_mem_eq(text, expected, n);
    ck_assert_int_eq(text[n], 0);
}

static void push(int32_t id, const char *expected) {
    const char *text = NULL;
    size_t length = 99;
    k3_status status = k3_decoder_push(decoder, id, &text, &length, NULL);
    expect(status, text, length, expected, strlen(expected));
}

static void finish(const char *expected) {
    const char *text = NULL;
    size_t length = 99;
    k3_status status = k3_decoder_finish(decoder, &text, &length, NULL);
    expect(status, text, length, expected, strlen(expected));
}

START_TEST(characters_come_whole) {
    finish("");
    push('a', "a");
    push(0xe4, ""), push(0xb8, ""), push(0xad, "中");
    push(0xf0, ""), push(0x9f, ""), push(0x9a, ""), push(0x80, "🚀");
    push(0xc3, ""), push(0xa9, "é");
    push(256, "ab"); /* ends in the middle of 中, */
    push(257, "中"); /* which this one ends before it starts 🚀 */
    push(0x9a, ""), push(0x80, "🚀");
    finish("");
    finish("");
}
END_TEST

START_TEST(invalid_bytes_do_not_wait) {
    push(0xff, R);
    push(0x80, R);
    push(0xc0, R);
    push(0xe4, ""), push('a', R "a"); /* the lead can no longer become a character, a already is one */
    push(0xe4, ""), push(0xb8, ""), push(0xe4, R), push(0xb8, ""), push(0xad, "中");
    push(0xed, ""), push(0xa0, R R); /* surrogates: the lead is alone, and so is what follows */
    push(0xe0, ""), push(0x80, R R); /* overlong */
    push(0xf4, ""), push(0x90, R R); /* above U+10FFFF */
    push(0xf0, ""), push(0x9f, ""), push(0x9a, ""), push(259, R "<|sep|>");
    push(0xf0, ""), push(257, R); /* f0 b8 ad cannot go on with the next f0, which starts anew */
    finish(R);
    push('a', "a");
    finish("");
}
END_TEST

START_TEST(what_is_held_at_the_end) {
    push(0xe4, ""), finish(R);
    push(0xb8, R); /* nothing of the old text is left */
    push(0xf0, ""), push(0x9f, ""), push(0x9a, ""), finish(R);
    finish("");
}
END_TEST

START_TEST(special_and_unknown_ids) {
    push(259, "<|sep|>");
    push(260, "<|reserved_token_260|>");
    push(514, "<|reserved_token_514|>");
    static const int32_t unknown[] = {-1, 515, INT32_MAX, INT32_MIN};
    push(0xe4, "");
    for (size_t i = 0; i < 4; i++) {
        const char *text = NULL;
        size_t length;
        k3_error err = {0};
        ck_assert_int_eq(k3_decoder_push(decoder, unknown[i], &text, &length, &err), K3_ERR_TOKEN);
        ck_assert_ptr_nonnull(strstr(err.text, "0 to 514"));
        ck_assert_ptr_null(text);
    }
    push(0xb8, ""), push(0xad, "中"); /* unknown ids leave the decoder as it was */
}
END_TEST

START_TEST(zero_bytes_are_text) {
    const char *text = NULL;
    size_t length = 0;
    k3_status status = k3_decoder_push(decoder, 258, &text, &length, NULL);
    expect(status, text, length, "\0x", 2);
}
END_TEST

/* Unicode 15, tables 3-8 to 3-11: how many U+FFFD stand for what. */
static const struct {
    const char *bytes, *text;
} repairs[] = {
    {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", R R R R R R R R "A"},
    {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", R R R R R R R R "A"},
    {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", R R R R R "A" R R "B"},
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", R R R R "A"},
    {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "a" R R R "b" R "c" R R "d"},
    {"\xF0\x9F\x9A", R},
    {"\xEF\xBF\xBE\xF4\x8F\xBF\xBF", "\xEF\xBF\xBE\xF4\x8F\xBF\xBF"},
    {"", ""},
};

START_TEST(repairs_of_the_standard) {
    for (size_t i = 0; i < sizeof repairs / sizeof *repairs; i++) {
        size_t n = 0;
        char *fixed = k3_utf8_repair(repairs[i].bytes, strlen(repairs[i].bytes), &n);
        ck_assert_uint_eq(n, strlen(repairs[i].text));
        ck_assert_mem_eq(fixed, repairs[i].text, n);
        free(fixed);
        const char *s = repairs[i].bytes, *text; /* the same through the decoder, byte by byte */
        char got[64];
        size_t at = 0, length;
        for (; *s; s++) {
            ck_assert_int_eq(k3_decoder_push(decoder, (unsigned char)*s, &text, &length, NULL), K3_OK);
            memcpy(got + at, text, length);
            at += length;
        }
        ck_assert_int_eq(k3_decoder_finish(decoder, &text, &length, NULL), K3_OK);
        memcpy(got + at, text, length);
        ck_assert_uint_eq(at + length, n);
        ck_assert_mem_eq(got, repairs[i].text, n);
    }
}
END_TEST

START_TEST(every_character) {
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[4];
        size_t n = put_utf8(s, c), used = 0;
        bool surrogate = c >= 0xd800 && c < 0xe000;
        enum k3_utf8 kind = k3_utf8_next(s, n, &used);
        bool fine = surrogate ? kind == K3_UTF8_BAD && used == 1 : kind == K3_UTF8_CHAR && used == n;
        if (!surrogate) fine = fine && k3_utf8_decode(s, n) == c && k3_utf8_valid(s, n) == n;
        for (size_t cut = 1; !surrogate && cut < n; cut++)
            fine = fine && k3_utf8_next(s, cut, &used) == K3_UTF8_CUT && used == cut && k3_utf8_valid(s, cut) == 0;
        if (!fine) ck_abort_msg("U+%04X", c);
    }
}
END_TEST

/* Random tokens of mostly broken bytes: the stream is the repaired whole, and what came is always valid. */
START_TEST(streams_equal_the_repaired_whole) {
    static const unsigned char favoured[] = {0xe4, 0xb8, 0xad, 0xf0, 0x9f, 0x9a, 0x80, 0xc3, 0xa9, 0xed, 0xa0, 'a'};
    uint64_t state = 1;
    for (int round = 0; round < 5000; round++) {
        char raw[200], got[600];
        size_t raw_n = 0, got_n = 0, length, n;
        const char *text, *bytes;
        for (int k = 0; k < 30; k++) {
            int32_t id = (int32_t)(test_random(&state) % 3 ? favoured[test_random(&state) % sizeof favoured]
                                                           : test_random(&state) % 259);
            bytes = k3_tokenizer_bytes(tokenizer, id, &length);
            memcpy(raw + raw_n, bytes, length);
            raw_n += length;
            if (k3_decoder_push(decoder, id, &text, &length, NULL) != K3_OK) ck_abort_msg("push");
            if (k3_utf8_valid(text, length) != length) ck_abort_msg("invalid text came out");
            memcpy(got + got_n, text, length);
            got_n += length;
        }
        if (k3_decoder_finish(decoder, &text, &length, NULL) != K3_OK) ck_abort_msg("finish");
        memcpy(got + got_n, text, length);
        got_n += length;
        char *fixed = k3_utf8_repair(raw, raw_n, &n);
        ck_assert_uint_eq(got_n, n);
        ck_assert_mem_eq(got, fixed, n);
        free(fixed);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decoder");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, characters_come_whole);
    tcase_add_test(all, invalid_bytes_do_not_wait);
    tcase_add_test(all, what_is_held_at_the_end);
    tcase_add_test(all, special_and_unknown_ids);
    tcase_add_test(all, zero_bytes_are_text);
    tcase_add_test(all, repairs_of_the_standard);
    tcase_add_test(all, every_character);
    tcase_add_test(all, streams_equal_the_repaired_whole);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
