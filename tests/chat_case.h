/* A recorded conversation of tests/data/tokenizer/chat.json, as k3_chat_render takes it. */
#ifndef K3_TESTS_CHAT_CASE_H
#define K3_TESTS_CHAT_CASE_H

#include <jansson.h>
#include <k3/k3.h>
#include <stdlib.h>

struct chat_case {
    const char *name;
    char *messages, *tools, *format;
    k3_chat_options options;
};

static char *chat_case_json(const json_t *of, const char *name) {
    json_t *v = json_object_get(of, name);
    return v && !json_is_null(v) ? json_dumps(v, JSON_COMPACT) : NULL;
}

static void chat_case_read(const json_t *c, struct chat_case *out) {
    json_t *options = json_object_get(c, "options"), *v;
    k3_chat_options *o = &out->options;
    k3_chat_options_init(o);
    out->name = json_string_value(json_object_get(c, "name"));
    out->messages = chat_case_json(c, "messages");
    o->tools = out->tools = chat_case_json(options, "tools");
    o->response_format = out->format = chat_case_json(options, "response_format");
    if ((v = json_object_get(options, "thinking"))) o->thinking = json_is_true(v);
    if ((v = json_object_get(options, "thinking_effort"))) o->effort = json_string_value(v);
    if ((v = json_object_get(options, "tool_choice"))) o->tool_choice = json_string_value(v);
    if ((v = json_object_get(options, "add_generation_prompt"))) o->generation_prompt = json_is_true(v);
}

static void chat_case_clear(struct chat_case *c) {
    free(c->messages);
    free(c->tools);
    free(c->format);
}

#endif
