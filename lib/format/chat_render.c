/* K3's chat format: messages to ids.  Each run of text between special tokens is encoded by itself, always as ordinary
 * text; of a tag its name, and of an attribute key, `="`, value and `"`, are encoded each by itself. */
#include "format/chat.h"

#include "base/error.h"
#include "format/json_respell.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char effort_body[] =
    "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
    "supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort=";
static const char tools_head[] = "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n";
static const char more_tools_head[] = "## New Tools Available\n"
                                      "The system dynamically extends the toolset via lazy-loading.\n"
                                      "You have access to all existing and extended tools.\n"
                                      "Here are the specs for the extended tools.\n\n```json\n";
static const char json_tail[] = "\n```";
static const char choice_required[] =
    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.";
static const char choice_none[] =
    "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.";
#define RAW_JSON                                                                                                       \
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
static const char format_object[] = "The system is invoked with `response_format=json_object`.\n" RAW_JSON;
static const char format_schema[] = "The system is invoked with `response_format=json_schema`.\n" RAW_JSON
                                    "\nThe JSON data must match the following schema:\n```json\n";

struct page {
    const k3_tokenizer *t;
    int32_t open, close, sep, end;
    int32_t *ids;
    size_t count, room;
    k3_status status; /* the first failure; nothing is added after it */
    k3_error *err;
};

struct attribute {
    const char *key; /* with its leading blank */
    struct k3_name value;
};

static struct k3_name name_of(const char *s) { return (struct k3_name){s, strlen(s)}; }

static void add_ids(struct page *p, const int32_t *ids, size_t n) {
    if (p->status) return;
    if (n > p->room - p->count) {
        size_t room = 2 * (p->count + n) + 64; /* below SIZE_MAX: both are lengths of arrays */
        int32_t *grown = room <= SIZE_MAX / sizeof *grown ? realloc(p->ids, room * sizeof *grown) : NULL;
        if (!grown) {
            p->status = k3_fail(p->err, K3_ERR_MEMORY, "no memory for a prompt of %zu ids", p->count + n);
            return;
        }
        p->ids = grown;
        p->room = room;
    }
    if (n) memcpy(p->ids + p->count, ids, n * sizeof *ids);
    p->count += n;
}

static void add_text(struct page *p, const char *s, size_t length) {
    int32_t *ids = NULL;
    size_t n = 0;
    if (!p->status) p->status = k3_tokenizer_encode(p->t, s, length, K3_ENCODE_ORDINARY, &ids, &n, p->err);
    add_ids(p, ids, n);
    k3_free(ids);
}

static void add_name(struct page *p, struct k3_name s) {
    if (s.length) add_text(p, s.s, s.length);
}

static void add_word(struct page *p, const char *s) { add_text(p, s, strlen(s)); }

static void add_buffer(struct page *p, struct k3_text *t) {
    if (t->failed && !p->status) p->status = k3_fail(p->err, K3_ERR_MEMORY, "no memory for the prompt");
    add_text(p, t->s ? t->s : "", t->length);
    k3_text_clear(t);
}

/* Attribute values, and only they, are escaped. */
static void add_value(struct page *p, struct k3_name value) {
    struct k3_text t = {0};
    for (size_t i = 0; i < value.length; i++) {
        if (value.s[i] == '&')
            k3_text_put(&t, "&amp;");
        else if (value.s[i] == '"')
            k3_text_put(&t, "&quot;");
        else
            k3_text_add(&t, value.s + i, 1);
    }
    add_buffer(p, &t);
}

/* attributes: up to one without a key; those whose value is absent are left out. */
static void open_tag(struct page *p, const char *tag, const struct attribute *a) {
    add_ids(p, &p->open, 1);
    add_word(p, tag);
    for (; a && a->key; a++) {
        if (!a->value.s) continue;
        add_word(p, a->key);
        add_word(p, "=\"");
        add_value(p, a->value);
        add_word(p, "\"");
    }
    add_ids(p, &p->sep, 1);
}

static void close_tag(struct page *p, const char *tag) {
    add_ids(p, &p->close, 1);
    add_word(p, tag);
    add_ids(p, &p->sep, 1);
}

static void open_message(struct page *p, const char *role, const char *type, struct k3_name name) {
    struct attribute a[] = {{" role", name_of(role)}, {" type", {type, type ? strlen(type) : 0}}, {" name", name}, {0}};
    open_tag(p, "message", a);
}

static void end_message(struct page *p) {
    close_tag(p, "message");
    add_ids(p, &p->end, 1);
}

static void system_message(struct page *p, const char *type, struct k3_text *body) {
    open_message(p, "system", type, (struct k3_name){0});
    add_buffer(p, body);
    end_message(p);
}

static void system_text(struct page *p, const char *type, const char *body) {
    struct k3_text t = {0};
    k3_text_put(&t, body);
    system_message(p, type, &t);
}

static void declare_tools(struct page *p, const char *head, const struct k3_text *json) {
    struct k3_text body = {0};
    k3_text_put(&body, head);
    k3_text_add(&body, json->s, json->length);
    k3_text_put(&body, json_tail);
    system_message(p, "tool-declare", &body);
}

/* ---- calls */

static const char *json_type(char first) {
    switch (first) {
    case '"':
        return "string";
    case '{':
        return "object";
    case '[':
        return "array";
    case 't':
    case 'f':
        return "boolean";
    case 'n':
        return "null";
    default:
        return "number";
    }
}

static bool blank(struct k3_name s) {
    for (size_t i = 0; i < s.length; i++)
        if (!strchr(" \t\r\n\v\f", s.s[i])) return false;
    return true;
}

/* The members of an object, each as an argument: strings raw, all else as JSON. */
static bool arguments(struct page *p, struct k3_json *j) {
    struct k3_name key, s;
    bool first = true;
    k3_json_enter(j, '{');
    while (!p->status && k3_json_more(j, '}', &first)) {
        if (!k3_json_key(j, &key)) return false;
        const char *type = json_type(k3_json_peek(j));
        struct attribute a[] = {{" key", key}, {" type", name_of(type)}, {0}};
        struct k3_text text = {0};
        bool ok = *type == 's' ? k3_json_string(j, &s) : k3_json_respell(j, K3_JSON_SPACED, &text);
        if (ok && *type == 's') k3_text_add(&text, s.s, s.length); /* "string" */
        if (!ok) return k3_text_clear(&text), false;
        open_tag(p, "argument", a);
        add_buffer(p, &text);
        close_tag(p, "argument");
    }
    return !j->error && k3_json_finish(j);
}

static void call_body(struct page *p, const struct k3_chat_call *call, size_t number) {
    if (blank(call->arguments)) return;
    char *text = strndup(call->arguments.s, call->arguments.length);
    char *checked = text ? strndup(text, call->arguments.length) : NULL;
    if (!checked) {
        if (!p->status) p->status = k3_fail(p->err, K3_ERR_MEMORY, "no memory for a call's arguments");
    } else {
        struct k3_json check = k3_json_of(checked, call->arguments.length),
                       j = k3_json_of(text, call->arguments.length);
        if (!k3_json_skip(&check) || !k3_json_finish(&check)) {
            struct attribute a[] = {{" type", name_of("object")}, {0}};
            open_tag(p, "json", a);
            add_name(p, call->arguments);
            close_tag(p, "json");
        } else if (k3_json_peek(&j) != '{') {
            if (!p->status)
                p->status = k3_fail(p->err, K3_ERR_FORMAT, "call %zu of %.*s: arguments: JSON that is no object",
                                    number, (int)(call->name.length < 64 ? call->name.length : 64), call->name.s);
        } else if (!arguments(p, &j) && !p->status) {
            p->status = k3_fail(p->err, K3_ERR_MEMORY, "no memory for a call's arguments");
        }
    }
    free(checked);
    free(text);
}

static struct k3_name decimal(char room[24], size_t n) {
    int length = snprintf(room, 24, "%zu", n);
    return (struct k3_name){room, (size_t)length};
}

static void add_calls(struct page *p, const struct k3_chat_message *m) {
    char room[24];
    open_tag(p, "tools", NULL);
    for (size_t i = 0; i < m->call_count; i++) {
        struct attribute a[] = {{" tool", m->calls[i].name}, {" index", decimal(room, i + 1)}, {0}};
        open_tag(p, "call", a);
        call_body(p, &m->calls[i], i + 1);
        close_tag(p, "call");
    }
    close_tag(p, "tools");
}

static void assistant(struct page *p, const struct k3_chat_message *m, bool thinking) {
    open_message(p, "assistant", NULL, m->name);
    if (thinking) {
        open_tag(p, "think", NULL);
        if (!blank(m->reasoning)) add_name(p, m->reasoning);
        close_tag(p, "think");
    }
    open_tag(p, "response", NULL);
    add_name(p, m->content);
    close_tag(p, "response");
    if (m->call_count) add_calls(p, m);
    end_message(p);
}

/* ---- results */

/* The call that a result answers, or NULL. */
static const struct k3_chat_call *call_of(const struct k3_chat_message *caller, const struct k3_chat_message *result) {
    for (size_t i = 0; caller && result->call_id.s && i < caller->call_count; i++) {
        const struct k3_chat_call *c = &caller->calls[i];
        if (c->id.s && c->id.length == result->call_id.length && !memcmp(c->id.s, result->call_id.s, c->id.length))
            return c;
    }
    return NULL;
}

static void result(struct page *p, const struct k3_chat_message *m, struct k3_name tool, size_t index) {
    char room[24];
    struct attribute a[] = {{" role", name_of("tool")}, {" tool", tool}, {" index", decimal(room, index)}, {0}};
    open_tag(p, "message", a);
    add_name(p, m->content);
    end_message(p);
}

/* A run of n results.  If each answers a call of the latest assistant message they come in the calls' order, with the
 * calls' names; else as they are.  *index counts results since that message. */
static void results(struct page *p, const struct k3_chat_message *m, size_t n, const struct k3_chat_message *caller,
                    size_t *index) {
    bool known = true;
    for (size_t i = 0; i < n; i++) known = known && call_of(caller, &m[i]);
    for (size_t c = 0; known && c < caller->call_count; c++)
        for (size_t i = 0; i < n; i++)
            if (call_of(caller, &m[i]) == &caller->calls[c]) result(p, &m[i], caller->calls[c].name, ++*index);
    for (size_t i = 0; !known && i < n; i++) result(p, &m[i], m[i].tool.s ? m[i].tool : m[i].name, ++*index);
}

static void conversation(struct page *p, const struct k3_chat *chat, bool thinking) {
    const struct k3_chat_message *m = chat->messages, *end = m + chat->count, *caller = NULL;
    size_t index = 0;
    while (m < end && !p->status) {
        size_t run = 1;
        if (m->role == K3_ROLE_ASSISTANT) {
            assistant(p, m, thinking);
            caller = m;
            index = 0;
        } else if (m->role == K3_ROLE_TOOL) {
            while (m + run < end && m[run].role == K3_ROLE_TOOL) run++;
            results(p, m, run, caller, &index);
        } else if (m->tools.length) {
            declare_tools(p, more_tools_head, &m->tools);
        } else {
            open_message(p, m->role == K3_ROLE_SYSTEM ? "system" : "user", NULL, m->name);
            add_name(p, m->content);
            end_message(p);
        }
        m += run;
    }
}

/* ---- options */

static k3_status respelled(const char *what, const char *json, char bracket, struct k3_text *out, k3_error *err) {
    char *text = strdup(json);
    k3_status status = K3_OK;
    if (!text) return k3_fail(err, K3_ERR_MEMORY, "no memory for %s", what);
    struct k3_json j = k3_json_of(text, strlen(text));
    if (k3_json_peek(&j) != bracket)
        status = k3_fail(err, K3_ERR_FORMAT, "%s: expected %s", what, bracket == '[' ? "an array" : "an object");
    else if (!k3_json_respell(&j, K3_JSON_SORTED, out) || !k3_json_finish(&j))
        status =
            k3_fail(err, j.error ? K3_ERR_FORMAT : K3_ERR_MEMORY, "%s: %s", what, j.error ? j.error : "out of memory");
    free(text);
    if (status) k3_text_clear(out);
    return status;
}

static void tools_before(struct page *p, const char *json) {
    struct k3_text t = {0};
    if (!json || p->status) return;
    p->status = respelled("tools", json, '[', &t, p->err);
    if (!p->status && t.length > 2) declare_tools(p, tools_head, &t);
    k3_text_clear(&t);
}

static void effort_before(struct page *p, const char *effort) {
    struct k3_text t = {0};
    k3_text_put(&t, effort_body);
    k3_text_put(&t, effort);
    k3_text_put(&t, "`.");
    system_message(p, "thinking-effort", &t);
}

static void choice_after(struct page *p, const char *choice) {
    if (!choice || !strcmp(choice, "auto")) return;
    system_text(p, "tool-choice", strcmp(choice, "none") ? choice_required : choice_none);
}

/* {"type": T, "json_schema": {"schema": S}}; the schema comes back sorted and compact. */
static bool read_format(struct k3_json *j, struct k3_name *type, struct k3_text *schema) {
    struct k3_name key;
    bool first = true, inner = true;
    if (!k3_json_enter(j, '{')) return false;
    while (k3_json_more(j, '}', &first)) {
        if (!k3_json_key(j, &key)) return false;
        if (k3_name_is(key, "type")) {
            if (!k3_json_string(j, type)) return false;
        } else if (k3_name_is(key, "json_schema")) {
            if (!k3_json_enter(j, '{')) return false;
            for (inner = true; k3_json_more(j, '}', &inner);) {
                if (!k3_json_key(j, &key)) return false;
                bool wanted = k3_name_is(key, "schema");
                if (wanted) k3_text_clear(schema);
                if (!(wanted ? k3_json_respell(j, K3_JSON_SORTED, schema) : k3_json_skip(j))) return false;
            }
        } else if (!k3_json_skip(j)) {
            return false;
        }
    }
    return !j->error && k3_json_finish(j);
}

static void add_format(struct page *p, struct k3_json *j, struct k3_text *schema) {
    struct k3_name type = {0};
    struct k3_text body = {0};
    if (!read_format(j, &type, schema)) {
        p->status = k3_fail(p->err, j->error ? K3_ERR_FORMAT : K3_ERR_MEMORY, "response_format: %s",
                            j->error ? j->error : "out of memory");
    } else if (k3_name_is(type, "json_object")) {
        system_text(p, "response-format", format_object);
    } else if (k3_name_is(type, "json_schema") && schema->length) {
        k3_text_put(&body, format_schema);
        k3_text_add(&body, schema->s, schema->length);
        k3_text_put(&body, json_tail);
        system_message(p, "response-format", &body);
    } else if (!k3_name_is(type, "text")) {
        p->status =
            k3_fail(p->err, K3_ERR_FORMAT, "response_format: neither text, json_object nor json_schema with a schema");
    }
}

static void format_after(struct page *p, const char *json) {
    if (!json || p->status) return;
    struct k3_text schema = {0};
    char *text = strdup(json);
    if (!text) {
        p->status = k3_fail(p->err, K3_ERR_MEMORY, "no memory for response_format");
        return;
    }
    struct k3_json j = k3_json_of(text, strlen(text));
    add_format(p, &j, &schema);
    k3_text_clear(&schema);
    free(text);
}

static k3_status check_options(const k3_chat_options *o, k3_error *err) {
    const char *e = o->effort, *c = o->tool_choice;
    if (e && strcmp(e, "low") && strcmp(e, "high") && strcmp(e, "max"))
        return k3_fail(err, K3_ERR_ARGUMENT, "thinking effort \"%s\": it is low, high or max%s", e,
                       strcmp(e, "medium") ? "" : " (the model's own encoder knows no medium)");
    if (c && strcmp(c, "auto") && strcmp(c, "required") && strcmp(c, "none"))
        return k3_fail(err, K3_ERR_ARGUMENT, "tool choice \"%s\": it is auto, required or none", c);
    return K3_OK;
}

/* ---- public */

void k3_chat_options_init(k3_chat_options *options) {
    *options = (k3_chat_options){.size = sizeof *options, .thinking = true, .effort = "max", .generation_prompt = true};
}

k3_status k3_chat_supported(const k3_tokenizer *t, k3_error *err) {
    static const char *const needed[] = {K3_CHAT_OPEN, K3_CHAT_CLOSE, K3_CHAT_SEP, K3_CHAT_END};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (k3_tokenizer_special(t, needed[i]) < 0)
            return k3_fail(
                err, K3_ERR_UNSUPPORTED,
                "tokenizer_config.json: no special token %s: this vocabulary is not made for K3's chat format",
                needed[i]);
    return K3_OK;
}

static void render(struct page *p, const struct k3_chat *chat, const k3_chat_options *o) {
    tools_before(p, o->tools);
    if (o->thinking && o->effort) effort_before(p, o->effort);
    conversation(p, chat, o->thinking);
    choice_after(p, o->tool_choice);
    format_after(p, o->response_format);
    if (!o->generation_prompt) return;
    open_message(p, "assistant", NULL, (struct k3_name){0});
    open_tag(p, o->thinking ? "think" : "response", NULL);
}

k3_status k3_chat_render(const k3_tokenizer *t, const char *messages, const k3_chat_options *options, int32_t **ids,
                         size_t *n, k3_error *err) {
    k3_chat_options defaults;
    struct k3_chat chat;
    k3_chat_options_init(&defaults);
    if (!options) options = &defaults;
    k3_status status = k3_chat_supported(t, err);
    if (!status) status = check_options(options, err);
    if (!status) status = k3_chat_read(messages, &chat, err);
    if (status) return status;
    struct page p = {.t = t,
                     .err = err,
                     .open = k3_tokenizer_special(t, K3_CHAT_OPEN),
                     .close = k3_tokenizer_special(t, K3_CHAT_CLOSE),
                     .sep = k3_tokenizer_special(t, K3_CHAT_SEP),
                     .end = k3_tokenizer_special(t, K3_CHAT_END)};
    render(&p, &chat, options);
    k3_chat_clear(&chat);
    if (p.status) {
        free(p.ids);
        return p.status;
    }
    *ids = p.ids;
    *n = p.count;
    return K3_OK;
}
