/* The recorded ids of the released vocabulary, which is not part of this project: K3_TIKTOKEN says where
 * its tiktoken.model is. */
#include <check.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "format/tokenizer.h"

#include "chat_case.h"

static json_t *vectors;
static k3_tokenizer *tokenizer;

static void load_vectors(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/vectors.json", getenv("K3_SRCDIR"));
    vectors = json_load_file(path, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    ck_assert_ptr_nonnull(vectors);
}

/* The names that the vectors give, as a tokenizer_config.json. */
static char *make_config(void) {
    json_t *names = json_object(), *name;
    const char *id;
    json_object_foreach(json_object_get(vectors, "named_special"), id, name)
        json_object_set_new(names, id, json_pack("{sO}", "content", name));
    json_t *config = json_pack("{so}", "added_tokens_decoder", names);
    char *text = json_dumps(config, 0);
    json_decref(config);
    return text;
}

static void setup(void) {
    const char *given = getenv("K3_TIKTOKEN");
    char path[4096], *data = NULL;
    struct stat st;
    size_t n = 0;
    k3_error err = {0};
    load_vectors();
    bool is_dir = stat(given, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(path, sizeof path, "%s%s", given, is_dir ? "/tiktoken.model" : "");
    k3_status status = k3_file_read_text(path, &data, &n, &err);
    char *config = make_config();
    if (status == K3_OK) status = k3_tokenizer_from_memory(data, n, config, strlen(config), &tokenizer, &err);
    ck_assert_msg(status == K3_OK, "%s", err.text);
    free(config);
    free(data);
}

static void teardown(void) {
    k3_tokenizer_close(tokenizer);
    json_decref(vectors);
}

static size_t number(const json_t *item, const char *key, size_t otherwise) {
    json_t *value = json_object_get(item, key);
    return value ? (size_t)json_real_value(value) : otherwise;
}

/* All cases of one list; returns how many there are. */
static size_t expect_ids(const char *list, unsigned flags) {
    json_t *item;
    size_t i, k;
    json_array_foreach(json_object_get(vectors, list), i, item) {
        json_t *text = json_object_get(item, "text"), *expected = json_object_get(item, "ids"), *id;
        struct k3_caps caps = {number(item, "max_chars", k3_caps_released.slice),
                               number(item, "max_run", k3_caps_released.run)};
        int32_t *ids = NULL;
        size_t n = 0;
        ck_assert_int_eq(k3_tokenizer_encode_capped(tokenizer, &caps, json_string_value(text), json_string_length(text),
                                                    flags, &ids, &n, NULL),
                         K3_OK);
        ck_assert_msg(n == json_array_size(expected), "%s %zu: %zu ids", list, i, n);
        json_array_foreach(expected, k, id)
            ck_assert_msg(ids[k] == (int32_t)json_real_value(id), "%s %zu, \"%s\": id %zu is %d", list, i,
                          json_string_value(text), k, ids[k]);
        k3_free(ids);
    }
    return json_array_size(json_object_get(vectors, list));
}

START_TEST(recorded_ids) {
    ck_assert_uint_eq(k3_tokenizer_vocab_size(tokenizer), 163840);
    ck_assert_uint_eq(expect_ids("mode_special_allowed", K3_ENCODE_SPECIAL), 78);
    ck_assert_uint_eq(expect_ids("mode_ordinary", K3_ENCODE_ORDINARY), 7);
    ck_assert_uint_eq(expect_ids("run_cap", K3_ENCODE_ORDINARY), 7);
    ck_assert_uint_eq(expect_ids("outer_cap_recorded", K3_ENCODE_ORDINARY), 7);
}
END_TEST

/* Whole conversations. */
START_TEST(recorded_chats) {
    char path[4096];
    json_t *c, *id;
    size_t i, k, n;
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/chat.json", getenv("K3_SRCDIR"));
    json_t *recorded = json_load_file(path, 0, NULL), *cases = json_object_get(recorded, "chat");
    ck_assert_uint_ge(json_array_size(cases), 13);
    json_array_foreach(cases, i, c) {
        struct chat_case in;
        k3_error err = {0};
        int32_t *ids;
        chat_case_read(c, &in);
        k3_status status = k3_chat_render(tokenizer, in.messages, &in.options, &ids, &n, &err);
        ck_assert_msg(status == K3_OK, "%s: %s", in.name, err.text);
        ck_assert_msg(n == json_array_size(json_object_get(c, "ids")), "%s: %zu ids", in.name, n);
        json_array_foreach(json_object_get(c, "ids"), k, id)
            ck_assert_msg(ids[k] == json_integer_value(id), "%s: id %zu is %d", in.name, k, ids[k]);
        k3_free(ids);
        chat_case_clear(&in);
    }
    json_decref(recorded);
}
END_TEST

/* Every base token that is text by itself and one piece comes back as its own id. */
START_TEST(tokens_encode_to_themselves) {
    size_t same = 0, other = 0, n, count;
    for (int32_t id = 0; id < 163584; id++) {
        const char *bytes = k3_tokenizer_bytes(tokenizer, id, &n);
        int32_t *ids;
        if (k3_tokenizer_encode(tokenizer, bytes, n, 0, &ids, &count, NULL) != K3_OK) ck_abort_msg("id %d", id);
        if (count == 1 && ids[0] == id) same++;
        else other++;
        k3_free(ids);
    }
    ck_assert_uint_gt(same, 150000);
    ck_assert_uint_eq(same + other, 163584);
}
END_TEST

int main(void) {
    if (!getenv("K3_TIKTOKEN")) {
        puts("skipped: to compare ids, set K3_TIKTOKEN to the released tiktoken.model and run make check");
        return 77;
    }
    Suite *suite = suite_create("tokenizer ids");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, recorded_ids);
    tcase_add_test(all, recorded_chats);
    tcase_add_test(all, tokens_encode_to_themselves);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
