/* K3's chat format: conversations to ids against the recorded ones, and replies back into their parts. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/tokenizer.h"

#include "chat_case.h"

static k3_tokenizer *bytes; /* a vocabulary of single bytes: ids are the text's bytes, whatever the pieces were */
static json_t *recorded;

static void setup(void) {
    char path[4096];
    k3_error err = {0};
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/256", getenv("K3_SRCDIR"));
    ck_assert_msg(k3_tokenizer_open(path, &bytes, &err) == K3_OK, "%s", err.text);
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/chat.json", getenv("K3_SRCDIR"));
    recorded = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(recorded);
}

static void teardown(void) {
    k3_tokenizer_close(bytes);
    json_decref(recorded);
}

/* ---- rendering */

struct rendered {
    char *text; /* special tokens spelled */
    size_t specials;
};

static k3_status render(const k3_tokenizer *t, const char *messages, const k3_chat_options *o, struct rendered *out,
                        k3_error *err) {
    int32_t *ids;
    size_t n, length = 0;
    k3_status status = k3_chat_render(t, messages, o, &ids, &n, err);
    if (status) return status;
    *out = (struct rendered){.text = calloc(n + 1, 64)};
    for (size_t i = 0; i < n; i++) {
        size_t m;
        const char *s = k3_tokenizer_bytes(t, ids[i], &m);
        memcpy(out->text + length, s, m);
        length += m;
        out->specials += ids[i] >= (int32_t)(k3_tokenizer_vocab_size(t) - K3_SPECIAL_SLOTS);
    }
    k3_free(ids);
    return K3_OK;
}

/* The text of a rendering without the effort's message and the generation prompt. */
static void expect(const char *messages, const char *wanted) {
    k3_chat_options o;
    k3_error err = {0};
    struct rendered got;
    k3_chat_options_init(&o);
    o.effort = NULL;
    o.generation_prompt = false;
    ck_assert_msg(render(bytes, messages, &o, &got, &err) == K3_OK, "%s", err.text);
    ck_assert_str_eq(got.text, wanted);
    free(got.text);
}

static void expect_error(const char *messages, k3_status status, const char *part) {
    k3_error err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    ck_assert_int_eq(k3_chat_render(bytes, messages, NULL, &ids, &n, &err), status);
    ck_assert_msg(strstr(err.text, part), "%s: %s", messages, err.text);
    ck_assert_ptr_null(ids);
}

START_TEST(recorded_texts) {
    json_t *cases = json_object_get(recorded, "chat"), *c;
    size_t i;
    ck_assert_uint_ge(json_array_size(cases), 13);
    json_array_foreach(cases, i, c) {
        struct chat_case in;
        struct rendered got;
        k3_error err = {0};
        chat_case_read(c, &in);
        ck_assert_msg(render(bytes, in.messages, &in.options, &got, &err) == K3_OK, "%s: %s", in.name, err.text);
        ck_assert_str_eq(got.text, json_string_value(json_object_get(c, "text")));
        ck_assert_msg((json_int_t)got.specials == json_integer_value(json_object_get(c, "specials")), "%s", in.name);
        free(got.text);
        chat_case_clear(&in);
    }
}
END_TEST

#define M(role, body) "<|open|>message role=\"" role "\"<|sep|>" body "<|close|>message<|sep|><|end_of_msg|>"
#define A(body) M("assistant", "<|open|>think<|sep|><|close|>think<|sep|>" body)
#define R(text) "<|open|>response<|sep|>" text "<|close|>response<|sep|>"

START_TEST(messages) {
    expect("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\\n\"},"
           "\"c\"]}]",
           M("user", "ab\nc"));
    expect("[{\"role\":\"user\",\"content\":\" kept "
           "\"},{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\" \\n\"}]",
           M("user", " kept ") A(R("")));
    expect("[{\"role\":\"user\",\"name\":\"a\\\"&b\",\"content\":\"&\",\"x\":[{}]}]",
           "<|open|>message role=\"user\" name=\"a&quot;&amp;b\"<|sep|>&<|close|>message<|sep|><|end_of_msg|>");
    expect("[{\"role\":\"system\",\"tools\":[{\"b\":1.50,\"a\":\"\\u00e9\\/\"}]}]",
           "<|open|>message role=\"system\" type=\"tool-declare\"<|sep|>## New Tools Available\nThe system dynamically "
           "extends the toolset via lazy-loading.\nYou have access to all existing and extended tools.\nHere are the "
           "specs for the extended tools.\n\n```json\n[{\"a\":\"\xc3\xa9/\",\"b\":1.50}]\n```<|close|>message<|sep|>"
           "<|end_of_msg|>");
}
END_TEST

#define CALL(id, name, arguments)                                                                                      \
    "{\"id\":\"" id "\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}"
#define TOOLS(calls) "<|open|>tools<|sep|>" calls "<|close|>tools<|sep|>"
#define C(name, index, body) "<|open|>call tool=\"" name "\" index=\"" index "\"<|sep|>" body "<|close|>call<|sep|>"
#define ARG(key, type, text) "<|open|>argument key=\"" key "\" type=\"" type "\"<|sep|>" text "<|close|>argument<|sep|>"
#define RESULT(tool, index, text)                                                                                      \
    "<|open|>message role=\"tool\" tool=\"" tool "\" index=\"" index "\"<|sep|>" text                                  \
    "<|close|>message<|sep|><|end_of_msg|>"

START_TEST(call_arguments) {
    expect("[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[" CALL(
               "1", "f",
               "{\\\"s\\\":\\\"a\\\\\\\"b\\\",\\\"n\\\":1e2,\\\"z\\\":null,\\\"t\\\":true,\\\"l\\\":[1,2.0],\\\"o\\\":{"
               "\\\"b\\\":1,\\\"a\\\":2}}") "," CALL("2", "g", "") "," CALL("3", "h", "{}") "]}]",
           A(R("x") TOOLS(C("f", "1",
                            ARG("s", "string", "a\"b") ARG("n", "number", "1e2") ARG("z", "null", "null")
                                ARG("t", "boolean", "true") ARG("l", "array", "[1, 2.0]")
                                    ARG("o", "object", "{\"b\": 1, \"a\": 2}")) C("g", "2", "") C("h", "3", ""))));
    expect_error("[{\"role\":\"assistant\",\"tool_calls\":[" CALL("1", "f", "[1]") "]}]", K3_ERR_FORMAT, "no object");
}
END_TEST

START_TEST(results) {
    const char *calls = "{\"role\":\"assistant\",\"tool_calls\":[" CALL("1", "f", "") "," CALL("2", "g", "") "]}";
    const char *rendered_calls = A(R("") TOOLS(C("f", "1", "") C("g", "2", "")));
    char json[4096], wanted[4096];
    /* in the calls' order; a run with a stray one stays as it came; the index goes on across a user's turn */
    snprintf(json, sizeof json,
             "[%s,{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"two\"},"
             "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"one\"},{\"role\":\"user\",\"content\":\"u\"},"
             "{\"role\":\"tool\",\"tool_call_id\":\"9\",\"name\":\"own\",\"content\":\"stray\"}]",
             calls);
    snprintf(wanted, sizeof wanted, "%s%s", rendered_calls,
             RESULT("f", "1", "one") RESULT("g", "2", "two") M("user", "u") RESULT("own", "3", "stray"));
    expect(json, wanted);
    snprintf(json, sizeof json,
             "[%s,{\"role\":\"tool\",\"tool_call_id\":\"2\",\"tool\":\"x\",\"content\":\"two\"},"
             "{\"role\":\"tool\",\"tool_call_id\":\"9\",\"tool\":\"y\",\"content\":\"stray\"}]",
             calls);
    snprintf(wanted, sizeof wanted, "%s%s", rendered_calls, RESULT("x", "1", "two") RESULT("y", "2", "stray"));
    expect(json, wanted);
}
END_TEST

START_TEST(refused_messages) {
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"", "messages: "},
        {"{}", "messages: expected an array"},
        {"[]", "there are none"},
        {"[1]", "message 1: expected an object"},
        {"[{}]", "message 1: no role"},
        {"[{\"role\":\"user\"}]", "message 1: no content"},
        {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"robot\",\"content\":\"a\"}]",
         "message 2: role: not system"},
        {"[{\"role\":\"user\",\"content\":7}]", "message 1: content: expected a string"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]", "not of type text"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", "a part without text"},
        {"[{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}]",
         "only the assistant"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{}]}]", "without a function's name"},
        {"[{\"role\":\"user\",\"content\":\"a\",\"tools\":[]}]", "only a system message"},
        {"[{\"role\":\"system\",\"content\":\"a\",\"tools\":[1]}]", "make it two"},
        {"[{\"role\":\"user\",\"content\":\"\xff\"}]", "not UTF-8"},
        {"[{\"role\":\"user\",\"content\":\"\\u0000\"}]", "zero byte"},
        {"[{\"role\":\"user\",\"content\":\"a\"}", "ends too early"},
        {"[{\"role\":\"user\",\"content\":\"a\"}] x", "behind the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_error(cases[i].json, K3_ERR_FORMAT, cases[i].part);
    enum { DEEP = 100000 };
    char *deep = malloc(DEEP + 64);
    strcpy(deep, "[{\"role\":\"user\",\"x\":");
    memset(deep + strlen(deep) + 1, 0, 1);
    size_t n = strlen(deep);
    memset(deep + n, '[', DEEP);
    deep[n + DEEP] = 0;
    expect_error(deep, K3_ERR_FORMAT, "too deep");
    memcpy(deep, "[{\"role\":\"system\",\"tools\":", 26);
    memset(deep + 26, '[', DEEP - 26);
    expect_error(deep, K3_ERR_FORMAT, "too deep");
    free(deep);
}
END_TEST

static void refuse_option(k3_chat_options o, k3_status status, const char *part) {
    k3_error err = {0};
    int32_t *ids;
    size_t n;
    ck_assert_int_eq(k3_chat_render(bytes, "[{\"role\":\"user\",\"content\":\"a\"}]", &o, &ids, &n, &err), status);
    ck_assert_msg(strstr(err.text, part), "%s", err.text);
}

START_TEST(refused_options) {
    k3_chat_options init;
    k3_chat_options_init(&init);
#define WITH(member, value)                                                                                            \
    ({                                                                                                                 \
        k3_chat_options o = init;                                                                                      \
        o.member = value;                                                                                              \
        o;                                                                                                             \
    })
    refuse_option(WITH(effort, "medium"), K3_ERR_ARGUMENT, "no medium");
    refuse_option(WITH(effort, ""), K3_ERR_ARGUMENT, "low, high or max");
    refuse_option(WITH(tool_choice, "search"), K3_ERR_ARGUMENT, "tool choice");
    refuse_option(WITH(tools, "{}"), K3_ERR_FORMAT, "tools: expected an array");
    refuse_option(WITH(tools, "[1"), K3_ERR_FORMAT, "tools: ends too early");
    refuse_option(WITH(response_format, "[]"), K3_ERR_FORMAT, "response_format: expected an object");
    refuse_option(WITH(response_format, "{\"type\":\"json_schema\"}"), K3_ERR_FORMAT, "with a schema");
}
END_TEST

/* ---- replies */

/* Everything a reply brought, in one line: R[..], C[..] for text, call(NAME:ARGUMENTS), end. */
struct seen {
    char text[4096];
    k3_reply_kind last;
};

static void add(struct seen *s, const k3_reply_event *e) {
    char *to = s->text + strlen(s->text);
    size_t room = (size_t)(s->text + sizeof s->text - to);
    bool goes_on = e->kind == s->last;
    if (e->kind == K3_REPLY_NOTHING || (e->kind == K3_REPLY_END && goes_on)) return;
    if (e->kind == K3_REPLY_REASONING || e->kind == K3_REPLY_CONTENT)
        snprintf(to, room, "%s%s", goes_on ? "" : e->kind == K3_REPLY_CONTENT ? "|C:" : "|R:", e->text);
    else if (e->kind == K3_REPLY_CALL)
        snprintf(to, room, "|call%zu:%s ", e->call, e->text);
    else if (e->kind == K3_REPLY_ARGUMENTS)
        snprintf(to, room, "%s", e->text);
    else
        snprintf(to, room, "%s%s", e->text, e->kind == K3_REPLY_CALL_END ? ";" : "|end");
    s->last = e->kind;
}

/* The reply's text, its special tokens spelled, fed id by id. */
static void expect_reply(bool thinking, const char *reply, const char *wanted) {
    k3_reply *r;
    k3_reply_event e;
    k3_error err = {0};
    int32_t *ids;
    size_t n;
    struct seen seen = {.text = ""};
    ck_assert_int_eq(k3_tokenizer_encode(bytes, reply, strlen(reply), K3_ENCODE_SPECIAL, &ids, &n, &err), K3_OK);
    ck_assert_int_eq(k3_reply_new(bytes, thinking, &r, &err), K3_OK);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(k3_reply_push(r, ids[i], &e, &err) == K3_OK, "%s", err.text);
        add(&seen, &e);
    }
    ck_assert_int_eq(k3_reply_finish(r, &e, &err), K3_OK);
    add(&seen, &e);
    ck_assert_str_eq(seen.text, wanted);
    for (size_t i = 0; i < k3_reply_calls(r); i++) { /* the parts of the arguments are the arguments */
        char whole[512];
        snprintf(whole, sizeof whole, "|call%zu:%s %s;", i, k3_reply_call_name(r, i), k3_reply_call_arguments(r, i));
        ck_assert_msg(strstr(wanted, whole), "%s: %s", wanted, whole);
    }
    k3_free(ids);
    k3_reply_free(r);
}

#define CLOSE(tag) "<|close|>" tag "<|sep|>"
#define OPEN(tag) "<|open|>" tag "<|sep|>"
#define END CLOSE("message") "<|end_of_msg|>"

START_TEST(replies) {
    expect_reply(true, "R" CLOSE("think") R("A") END, "|R:R|C:A|end");
    expect_reply(false, "A" CLOSE("response") END, "|C:A|end");
    expect_reply(true, "R" OPEN("response") "A" END, "|R:R|C:A|end");                /* think never closed */
    expect_reply(true, "R" CLOSE("think") OPEN("response") "A" END, "|R:R|C:A|end"); /* response never closed */
    expect_reply(true, "R", "|R:R");                                                 /* cut off */
    expect_reply(true, "R" CLOSE("think") "A", "|R:R|C:A");                          /* response never opened */
    expect_reply(true, "R<|close|>th", "|R:R");                                      /* a cut marker */
    expect_reply(true, "R<|open|>", "|R:R");
    expect_reply(true, "R" CLOSE("think") R("A") "junk" END "later", "|R:R|C:A|end");
    expect_reply(false, "A[EOS]B", "|C:A|end");
    expect_reply(false, "\xc3\xa9\xc3", "|C:\xc3\xa9\xef\xbf\xbd"); /* half a character at the end */
    expect_reply(false, "A\xc3" CLOSE("response") END, "|C:A\xef\xbf\xbd|end");
    expect_reply(false, "<|sep|>A<|open|><|close|><|sep|>B", "|C:AB"); /* markers around nothing */
}
END_TEST

START_TEST(reply_calls) {
    expect_reply(true,
                 "R" CLOSE("think")
                     TOOLS(C("f", "1", ARG("q", "string", "a\"\n<b>") ARG("n", "number", "1e2")) C("g", "2", "")) END,
                 "|R:R|call0:f {\"q\": \"a\\\"\\n<b>\", \"n\": 1e2};|call1:g {};|end");
    expect_reply(true, "R" OPEN("tools") C("f", "1", OPEN("json type=\"object\"") "{\"a\":1}" CLOSE("json")) END,
                 "|R:R|call0:f {\"a\":1};|end");
    expect_reply(false, TOOLS(C("f", "1", ARG("n", "number", "abc"))) END, "|call0:f {\"n\": \"abc\"};|end");
    expect_reply(false, TOOLS(C("f", "1", ARG("n", "object", "{\"a\": [1]}") ARG("n", "number", "2"))) END,
                 "|call0:f {\"n\": {\"a\": [1]}};|end"); /* the first of two alike */
    expect_reply(
        false,
        OPEN("tools") "<|open|>call tool=\"f&amp;&quot;\"<|sep|><|open|>argument key=\"k\" type=\"string\"<|sep|>v",
        "|call0:f&\" {\"k\": \"v\"};"); /* cut off within a value */
    expect_reply(false, OPEN("tools") OPEN("call") OPEN("argument") "v" END, "|call0: {\"\": \"v\"};|end");
    expect_reply(false, OPEN("argument key=\"k\"") "v" CLOSE("argument") "w" END, "|end"); /* outside a call */
}
END_TEST

/* A vocabulary without the format's tokens. */
START_TEST(unsupported) {
    k3_tokenizer *t;
    k3_reply *r;
    k3_error err = {0};
    char path[4096], *data;
    size_t n;
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/256/tiktoken.model", getenv("K3_SRCDIR"));
    ck_assert_int_eq(k3_file_read_text(path, &data, &n, &err), K3_OK);
    ck_assert_int_eq(k3_tokenizer_from_memory(data, n, NULL, 0, &t, &err), K3_OK);
    ck_assert_int_eq(k3_chat_supported(t, &err), K3_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "<|open|>"));
    ck_assert_int_eq(k3_reply_new(t, true, &r, &err), K3_ERR_UNSUPPORTED);
    k3_tokenizer_close(t);
    free(data);
}
END_TEST

int main(void) {
    Suite *s = suite_create("chat");
    TCase *t = tcase_create("chat");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, recorded_texts);
    tcase_add_test(t, messages);
    tcase_add_test(t, call_arguments);
    tcase_add_test(t, results);
    tcase_add_test(t, refused_messages);
    tcase_add_test(t, refused_options);
    tcase_add_test(t, replies);
    tcase_add_test(t, reply_calls);
    tcase_add_test(t, unsupported);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
