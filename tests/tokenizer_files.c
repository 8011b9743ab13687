/* tiktoken.model and tokenizer_config.json, good and bad. */
#include <check.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/tokenizer.h"
#include "tests/vocabulary.h"

/* Every single byte but one, for files that lack or replace its line. */
static struct model_text bytes_without(int left_out) {
    struct model_text m = {0};
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        if (byte != left_out) model_token(&m, &c, 1);
    }
    return m;
}

/* What is wrong with a tiktoken.model whose lines for the bytes 0 to 254 are fine and end with `tail`. */
struct bad_model {
    const char *tail;
    size_t tail_bytes; /* 0: a string */
    const char *message;
};

static const struct bad_model bad_models[] = {
    {"", 0, "model: no token for the single byte 0xff"},
    {"/w== 256\n", 0, "model:256: rank 256 leaves a gap"},
    {"/w== 254\n", 0, "model:256: rank 254 is on line 255 already"},
    {"/g== 255\n", 0, "model:256: rank 255 has the bytes of rank 254"},
    {"/w== 255\n\n", 0, "model:257: not \"<base64> <rank>\""},
    {"\n/w== 255\n", 0, "model:256: not \"<base64> <rank>\""},
    {"/w==\n", 0, "model:256: not \"<base64> <rank>\""},
    {"/w== \n", 0, "model:256: the rank is not a number"},
    {"/w==  255\n", 0, "model:256: the rank is not a number"},
    {"/w== 255 \n", 0, "model:256: the rank is not a number"},
    {"/w== -1\n", 0, "model:256: the rank is not a number"},
    {"/w== +255\n", 0, "model:256: the rank is not a number"},
    {"/w== 0xff\n", 0, "model:256: the rank is not a number"},
    {"/w== 255.0\n", 0, "model:256: the rank is not a number"},
    {"/w== 99999999999999999999999999\n", 0, "model:256: the rank is not a number"},
    {"/w== 18446744073709551615\n", 0, "model:256: rank 18446744073709551615 leaves a gap"},
    {"/w== 4294967551\n", 0, "model:256: rank 4294967551 leaves a gap"}, /* 255 + 2^32 */
    {"/w= 255\n", 0, "model:256: not base64"},
    {"/w 255\n", 0, "model:256: not base64"},
    {"/x== 255\n", 0, "model:256: not base64"}, /* bits that no byte has */
    {"/w==/w== 255\n", 0, "model:256: not base64"},
    {"==== 255\n", 0, "model:256: not base64"},
    {"/=== 255\n", 0, "model:256: not base64"},
    {"/-== 255\n", 0, "model:256: not base64"},
    {" 255\n", 0, "model:256: not base64"},
    {"/w== 255\n/w== 256\n", 0, "model:257: rank 256 has the bytes of rank 255"},
    {"/w\0= 255\n", 9, "model:256: not base64"},
    {"/w== 25\0\n", 9, "model:256: the rank is not a number"},
    {"\0\0\0\0", 4, "model:256: not \"<base64> <rank>\""},
    {"\xff\xfe\xfd 255\n", 0, "model:256: not base64"},
    {"/w==\t255\n", 0, "model:256: not \"<base64> <rank>\""},
};

START_TEST(bad_model_files) {
    for (size_t i = 0; i < sizeof bad_models / sizeof *bad_models; i++) {
        const struct bad_model *bad = &bad_models[i];
        struct model_text m = bytes_without(255);
        model_append(&m, bad->tail, bad->tail_bytes ? bad->tail_bytes : strlen(bad->tail));
        struct k3_vocab v;
        k3_error err = {0};
        ck_assert_int_eq(k3_vocab_parse("model", m.s, m.n, &v, &err), K3_ERR_FORMAT);
        bool named = strncmp(err.text, bad->message, strlen(bad->message)) == 0;
        ck_assert_msg(named, "%zu: \"%s\", not \"%s\"", i, err.text, bad->message);
        ck_assert_ptr_null(v.bytes);
        free(m.s);
    }
}
END_TEST

START_TEST(odd_but_valid_model_files) {
    static const char *const tails[] = {"/w== 255\n", "/w== 255", "/w== 255\r\n", "/w== 255\r", "/w== 0255\n"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        struct model_text m = bytes_without(255);
        model_append(&m, tails[i], strlen(tails[i]));
        struct k3_vocab v;
        ck_assert_int_eq(k3_vocab_parse("model", m.s, m.n, &v, NULL), K3_OK);
        ck_assert_uint_eq(v.count, 256);
        ck_assert_uint_eq(k3_vocab_find(&v, "\xff", 1), 255);
        k3_vocab_clear(&v);
        free(m.s);
    }
}
END_TEST

START_TEST(missing_bytes_are_named) {
    for (int byte = 0; byte < 256; byte += 17) {
        struct model_text m = bytes_without(byte);
        struct k3_vocab v;
        k3_error err = {0};
        char expected[64];
        snprintf(expected, sizeof expected, "model: no token for the single byte 0x%02x", byte);
        ck_assert_int_eq(k3_vocab_parse("model", m.s, m.n, &v, &err), K3_ERR_FORMAT);
        ck_assert_str_eq(err.text, expected);
        free(m.s);
    }
    struct k3_vocab v;
    k3_error err = {0};
    ck_assert_int_eq(k3_vocab_parse("model", "", 0, &v, &err), K3_ERR_FORMAT);
    ck_assert_str_eq(err.text, "model: empty");
    ck_assert_int_eq(k3_vocab_parse("model", "\n", 1, &v, &err), K3_ERR_FORMAT);
}
END_TEST

START_TEST(tokens_of_extreme_length) {
    for (size_t n = K3_TOKEN_MAX_BYTES; n <= K3_TOKEN_MAX_BYTES + 1; n++) {
        struct model_text m = model_of_bytes();
        char *s = malloc(n);
        ck_assert_ptr_nonnull(s);
        memset(s, 'x', n);
        model_token(&m, s, n);
        struct k3_vocab v;
        k3_error err = {0};
        k3_status status = k3_vocab_parse("model", m.s, m.n, &v, &err);
        if (n <= K3_TOKEN_MAX_BYTES) {
            ck_assert_int_eq(status, K3_OK);
            ck_assert_uint_eq(k3_vocab_find(&v, s, n), 256);
            k3_vocab_clear(&v);
        } else {
            ck_assert_int_eq(status, K3_ERR_FORMAT);
            ck_assert_str_eq(err.text, "model:257: a token of 65536 bytes");
        }
        free(s);
        free(m.s);
    }
}
END_TEST

START_TEST(ranks_in_any_order) {
    struct k3_vocab v;
    struct model_text m = model_of_bytes(), reversed = {0};
    for (size_t end = m.n; end > 0;) {
        size_t begin = end - 1;
        while (begin && m.s[begin - 1] != '\n') begin--;
        model_append(&reversed, m.s + begin, end - begin);
        end = begin;
    }
    ck_assert_int_eq(k3_vocab_parse("model", reversed.s, reversed.n, &v, NULL), K3_OK);
    for (unsigned byte = 0; byte < 256; byte++) ck_assert_uint_eq(v.byte_rank[byte], byte);
    k3_vocab_clear(&v);
    free(m.s);
    free(reversed.s);
}
END_TEST

/* ---- tokenizer_config.json; the special ids are 300 to 555 ---- */

static const struct {
    const char *json, *message;
} bad_configs[] = {
    {"", "config:1: "},
    {"{", "config:1: "},
    {"[]", "config: not a JSON object"},
    {"3", "config:1: "},
    {"{\"a\": 1, \"a\": 2}", "config:1: duplicate object key"},
    {"{\"a\": \"\xff\"}", "config:1: "},
    {"{\"added_tokens_decoder\": []}", "config: added_tokens_decoder is not an object"},
    {"{\"added_tokens_decoder\": null}", "config: added_tokens_decoder is not an object"},
    {"{\"added_tokens_decoder\": {\"299\": {\"content\": \"x\"}}}",
     "config: added_tokens_decoder: id 299 is not a special id"},
    {"{\"added_tokens_decoder\": {\"556\": {\"content\": \"x\"}}}",
     "config: added_tokens_decoder: id 556 is not a special id"},
    {"{\"added_tokens_decoder\": {\"4294967596\": {\"content\": \"x\"}}}",
     "config: added_tokens_decoder: id 4294967596 is"},
    {"{\"added_tokens_decoder\": {\"99999999999999999999999\": {\"content\": \"x\"}}}",
     "config: added_tokens_decoder: \"9999"},
    {"{\"added_tokens_decoder\": {\"-1\": {\"content\": \"x\"}}}",
     "config: added_tokens_decoder: \"-1\" is not an id"},
    {"{\"added_tokens_decoder\": {\"\": {\"content\": \"x\"}}}", "config: added_tokens_decoder: \"\" is not an id"},
    {"{\"added_tokens_decoder\": {\"[BOS]\": 300}}", "config: added_tokens_decoder: \"[BOS]\" is not an id"},
    {"{\"added_tokens_decoder\": {\"300\": {\"content\": 7}}}",
     "config: added_tokens_decoder: id 300 has no content"},
    {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"\"}}}",
     "config: added_tokens_decoder: id 300 has no content"},
    {"{\"added_tokens_decoder\": {\"300\": {}}}", "config: added_tokens_decoder: id 300 has no content"},
    {"{\"added_tokens_decoder\": {\"300\": \"x\"}}", "config: added_tokens_decoder: id 300 has no content"},
    {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"a\\u0000b\"}}}", "config:1: "},
    {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"x\"}, \"0300\": {\"content\": \"y\"}}}",
     "config: added_tokens_decoder: id 0300 is there twice"},
    {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"x\"}, \"301\": {\"content\": \"x\"}}}",
     "config: special tokens 300 and 301 have the same spelling \"x\""},
    {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"<|reserved_token_400|>\"}}}",
     "config: special tokens 300 and 400 have the same spelling"},
};

START_TEST(bad_configs_are_refused) {
    for (size_t i = 0; i < sizeof bad_configs / sizeof *bad_configs; i++) {
        struct k3_specials s = {.first = 300};
        k3_error err = {0};
        const char *json = bad_configs[i].json, *message = bad_configs[i].message;
        ck_assert_int_eq(k3_specials_parse("config", json, strlen(json), &s, &err), K3_ERR_FORMAT);
        bool named = strncmp(err.text, message, strlen(message)) == 0;
        ck_assert_msg(named, "%zu: \"%s\", not \"%s\"", i, err.text, message);
        ck_assert_ptr_null(s.name[0]);
    }
}
END_TEST

START_TEST(configs_without_names) {
    static const char *const configs[] = {"{}", "{\"added_tokens_decoder\": {}}"};
    for (size_t i = 0; i < 2; i++) {
        struct k3_specials s = {.first = 300};
        ck_assert_int_eq(k3_specials_parse("config", configs[i], strlen(configs[i]), &s, NULL), K3_OK);
        ck_assert_str_eq(s.name[0], "<|reserved_token_300|>");
        ck_assert_str_eq(s.name[255], "<|reserved_token_555|>");
        ck_assert(s.reserved[0] && s.reserved[255]);
        k3_specials_clear(&s);
    }
}
END_TEST

/* ---- directories ---- */

static char dir[] = "/tmp/k3-tokenizer-XXXXXX";
static char model_path[64], config_path[64];

static void make_dir(void) {
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(model_path, sizeof model_path, "%s/tiktoken.model", dir);
    snprintf(config_path, sizeof config_path, "%s/tokenizer_config.json", dir);
}

static void remove_dir(void) {
    if (unlink(model_path) != 0) rmdir(model_path);
    if (unlink(config_path) != 0) rmdir(config_path);
    rmdir(dir);
}

static void write_file(const char *path, const char *s, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(s, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

static void expect_failure(k3_status status, const char *file, const char *reason) {
    k3_tokenizer *t = NULL;
    k3_error err = {0};
    ck_assert_int_eq(k3_tokenizer_open(dir, &t, &err), status);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(err.text, file) && strstr(err.text, reason), "%s", err.text);
    ck_assert_int_eq(k3_tokenizer_open(dir, &t, NULL), status);
}

START_TEST(directories) {
    expect_failure(K3_ERR_IO, model_path, strerror(ENOENT));
    ck_assert_int_eq(mkdir(model_path, 0700), 0);
    expect_failure(K3_ERR_IO, model_path, "not a regular file");
    ck_assert_int_eq(rmdir(model_path), 0);
    ck_assert_int_eq(mkfifo(model_path, 0600), 0);
    expect_failure(K3_ERR_IO, model_path, "not a regular file"); /* and does not wait for a writer */
    ck_assert_int_eq(unlink(model_path), 0);
    write_file(model_path, "", 0);
    expect_failure(K3_ERR_FORMAT, model_path, "empty");
    write_file(model_path, "", 0);
    ck_assert_int_eq(truncate(model_path, (off_t)1 << 40), 0);
    expect_failure(K3_ERR_FORMAT, model_path, "1099511627776 bytes");

    struct model_text m = model_of_bytes();
    write_file(model_path, m.s, m.n);
    k3_tokenizer *t = NULL;
    ck_assert_int_eq(k3_tokenizer_open(dir, &t, NULL), K3_OK);
    ck_assert_int_eq(k3_tokenizer_special(t, "<|reserved_token_256|>"), 256);
    k3_tokenizer_close(t);

    static const char config[] = "{\"added_tokens_decoder\": {\"256\": {\"content\": \"[BOS]\"}}}";
    write_file(config_path, config, sizeof config - 2); /* cut by one byte */
    expect_failure(K3_ERR_FORMAT, config_path, ":1: ");
    write_file(config_path, config, sizeof config - 1);
    ck_assert_int_eq(k3_tokenizer_open(dir, &t, NULL), K3_OK);
    ck_assert_int_eq(k3_tokenizer_special(t, "[BOS]"), 256);
    k3_tokenizer_close(t);

    ck_assert_int_eq(unlink(config_path), 0);
    ck_assert_int_eq(mkdir(config_path, 0700), 0);
    t = NULL;
    expect_failure(K3_ERR_IO, config_path, "not a regular file");
    ck_assert_int_eq(rmdir(config_path), 0);
    ck_assert_int_eq(symlink("nowhere", config_path), 0); /* there, but leading nowhere: not the same as absent */
    expect_failure(K3_ERR_IO, config_path, strerror(ENOENT));
    free(m.s);
}
END_TEST

/* What tools/make_tokenizer.py wrote. */
START_TEST(made_tokenizers) {
    static const uint32_t bases[] = {256, 744};
    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/data/tokenizer/%u", getenv("K3_SRCDIR"), bases[i]);
        k3_tokenizer *t = NULL;
        k3_error err = {0};
        k3_status status = k3_tokenizer_open(path, &t, &err);
        ck_assert_msg(status == K3_OK, "%s", err.text);
        ck_assert_uint_eq(k3_tokenizer_vocab_size(t), bases[i] + 256);
        ck_assert_int_eq(k3_tokenizer_special(t, "<|end_of_msg|>"), (int32_t)bases[i] + 2);
        ck_assert_int_eq(k3_tokenizer_special(t, "[PAD]"), (int32_t)bases[i] + 255);
        int32_t *ids;
        size_t n;
        ck_assert_int_eq(k3_tokenizer_encode(t, " morning", 8, 0, &ids, &n, NULL), K3_OK);
        ck_assert_uint_eq(n, bases[i] == 256 ? 8 : 1);
        k3_free(ids);
        k3_tokenizer_close(t);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tokenizer files");
    TCase *files = tcase_create("files"), *directory = tcase_create("directories");
    tcase_add_test(files, bad_model_files);
    tcase_add_test(files, odd_but_valid_model_files);
    tcase_add_test(files, missing_bytes_are_named);
    tcase_add_test(files, tokens_of_extreme_length);
    tcase_add_test(files, ranks_in_any_order);
    tcase_add_test(files, bad_configs_are_refused);
    tcase_add_test(files, configs_without_names);
    tcase_add_test(files, made_tokenizers);
    tcase_add_checked_fixture(directory, make_dir, remove_dir);
    tcase_add_test(directory, directories);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, directory);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
