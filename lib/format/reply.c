/* A reply in K3's chat format, taken apart id by id.
 *
 * Between a marker and its <|sep|> the ids spell a tag; all other text belongs to the channel that is open.  The model
 * does not always close what it opened, and leaves channels out: a tag that opens ends what was open. */
#include "format/chat.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define TAG_BYTES 65536 /* a tag that grows longer is none */

enum channel {
    CHANNEL_BETWEEN, /* behind a channel's end: a model that forgets to open the next one is answering */
    CHANNEL_THINK,
    CHANNEL_RESPONSE,
    CHANNEL_TOOLS, /* also within a call, between its arguments */
    CHANNEL_ARGUMENT,
    CHANNEL_JSON, /* all of a call's arguments at once */
    CHANNEL_OVER  /* the response or the message was closed: text is dropped */
};

struct call {
    char *name;
    struct k3_text arguments; /* JSON */
    struct k3_text keys;      /* of the arguments so far, as ,"a","b", : a repeated one is dropped */
    bool whole;               /* json: the text is the arguments */
};

struct k3_reply {
    const k3_tokenizer *t;
    k3_decoder *decoder;
    int32_t open, close, sep, end, eos, eot;
    enum channel channel;
    bool in_tag, closing, ended, skip; /* skip: an argument that is dropped */
    struct k3_text tag, reasoning, content;
    struct k3_text value; /* of the argument that is open */
    struct k3_text part;  /* what the last event handed out of a call */
    bool is_string;
    struct call *calls;
    size_t count;
    bool in_call;
};

k3_status k3_reply_new(const k3_tokenizer *t, bool thinking, k3_reply **out, k3_error *err) {
    k3_status status = k3_chat_supported(t, err);
    if (status) return status;
    k3_reply *r = calloc(1, sizeof *r);
    if (!r) return k3_fail(err, K3_ERR_MEMORY, "no memory for a reply");
    status = k3_decoder_new(t, &r->decoder, err);
    if (status) {
        free(r);
        return status;
    }
    r->t = t;
    r->open = k3_tokenizer_special(t, K3_CHAT_OPEN);
    r->close = k3_tokenizer_special(t, K3_CHAT_CLOSE);
    r->sep = k3_tokenizer_special(t, K3_CHAT_SEP);
    r->end = k3_tokenizer_special(t, K3_CHAT_END);
    r->eos = k3_tokenizer_special(t, "[EOS]");
    r->eot = k3_tokenizer_special(t, "[EOT]");
    r->channel = thinking ? CHANNEL_THINK : CHANNEL_RESPONSE;
    *out = r;
    return K3_OK;
}

void k3_reply_free(k3_reply *r) {
    if (!r) return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->calls[i].name);
        k3_text_clear(&r->calls[i].arguments);
        k3_text_clear(&r->calls[i].keys);
    }
    free(r->calls);
    k3_text_clear(&r->tag);
    k3_text_clear(&r->reasoning);
    k3_text_clear(&r->content);
    k3_text_clear(&r->value);
    k3_text_clear(&r->part);
    k3_decoder_free(r->decoder);
    free(r);
}

static void empty(struct k3_text *t) {
    t->length = 0;
    if (t->s) t->s[0] = 0;
}

static bool blank(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", s[i])) return false;
    return true;
}

static struct call *current(k3_reply *r) { return &r->calls[r->count - 1]; }

static void hand_out(k3_reply_event *event, k3_reply_kind kind, const char *text, size_t length) {
    event->kind = kind;
    event->text = text ? text : "";
    event->length = length;
}

/* Adds to the arguments of the open call, and to what this event hands out. */
static void add_arguments(k3_reply *r, const char *s, size_t n) {
    k3_text_add(&current(r)->arguments, s, n);
    k3_text_add(&r->part, s, n);
}

static void hand_out_part(k3_reply *r, k3_reply_event *event) {
    if (r->part.length) hand_out(event, K3_REPLY_ARGUMENTS, r->part.s, r->part.length);
    event->call = r->count - 1;
}

/* ---- text of the open channel */

static void escaped_argument(k3_reply *r, const char *s, size_t n) {
    struct k3_text t = {0};
    k3_text_add_escaped(&t, s, n);
    r->part.failed |= t.failed;
    if (t.length) add_arguments(r, t.s, t.length);
    k3_text_clear(&t);
}

static void channel_text(k3_reply *r, const char *s, size_t n, k3_reply_event *event) {
    switch (r->channel) {
    case CHANNEL_THINK:
        k3_text_add(&r->reasoning, s, n);
        hand_out(event, K3_REPLY_REASONING, s, n);
        break;
    case CHANNEL_BETWEEN:
        if (blank(s, n)) break;
        r->channel = CHANNEL_RESPONSE;
        /* fall through */
    case CHANNEL_RESPONSE:
        k3_text_add(&r->content, s, n);
        hand_out(event, K3_REPLY_CONTENT, s, n);
        break;
    case CHANNEL_ARGUMENT:
        if (r->skip) break;
        if (r->is_string)
            escaped_argument(r, s, n);
        else
            k3_text_add(&r->value, s, n);
        hand_out_part(r, event);
        break;
    case CHANNEL_JSON:
        add_arguments(r, s, n);
        hand_out_part(r, event);
        break;
    case CHANNEL_TOOLS:
    case CHANNEL_OVER:
        break;
    }
}

/* ---- tags */

/* The value of an attribute in `tool="NAME" index="1"`, unescaped; free(); NULL if it is not there. */
static char *attribute(const char *tag, const char *key) {
    size_t n = strlen(key);
    const char *at = tag;
    while ((at = strstr(at, key)) && !(at > tag && at[-1] == ' ' && at[n] == '=' && at[n + 1] == '"')) at += n;
    if (!at) return NULL;
    at += n + 2;
    const char *end = strchr(at, '"');
    char *value = strndup(at, end ? (size_t)(end - at) : strlen(at)), *to = value;
    if (!value) return NULL;
    for (const char *p = value; *p; to++) {
        bool amp = !strncmp(p, "&amp;", 5), quote = !strncmp(p, "&quot;", 6);
        *to = quote ? '"' : *p;
        p += amp ? 5 : quote ? 6 : 1;
    }
    *to = 0;
    return value;
}

static bool is_tag(const struct k3_text *tag, const char *name) {
    size_t n = strlen(name);
    return tag->length >= n && !memcmp(tag->s, name, n) && (tag->s[n] == 0 || tag->s[n] == ' ');
}

/* Whether a value is JSON; what is not becomes a string. */
static bool is_json(const struct k3_text *value) {
    char *copy = value->length ? malloc(value->length) : NULL;
    if (!copy) return false;
    memcpy(copy, value->s, value->length);
    struct k3_json j = k3_json_of(copy, value->length);
    bool ok = k3_json_skip(&j) && k3_json_finish(&j);
    free(copy);
    return ok;
}

static void end_argument(k3_reply *r, k3_reply_event *event) {
    if (r->channel == CHANNEL_ARGUMENT && !r->skip) {
        if (r->is_string) {
            add_arguments(r, "\"", 1);
        } else if (is_json(&r->value)) {
            add_arguments(r, r->value.s, r->value.length);
        } else {
            add_arguments(r, "\"", 1);
            escaped_argument(r, r->value.s ? r->value.s : "", r->value.length);
            add_arguments(r, "\"", 1);
        }
        empty(&r->value);
        hand_out_part(r, event);
    }
    r->channel = CHANNEL_TOOLS;
}

static void end_call(k3_reply *r, k3_reply_event *event) {
    if (!r->in_call) return;
    end_argument(r, event);
    struct call *c = current(r);
    if (!c->whole && c->keys.length)
        add_arguments(r, "}", 1);
    else if (c->arguments.length == 0)
        add_arguments(r, "{}", 2);
    r->in_call = false;
    hand_out(event, K3_REPLY_CALL_END, r->part.s, r->part.length);
    event->call = r->count - 1;
}

static void begin_call(k3_reply *r, k3_reply_event *event) {
    char *name = attribute(r->tag.s, "tool");
    struct call *grown = realloc(r->calls, (r->count + 1) * sizeof *grown);
    if (grown) r->calls = grown;
    if (!grown || !name) name = name ? (free(name), NULL) : grown ? strdup("") : NULL;
    if (!name) {
        r->part.failed = true;
        return;
    }
    r->calls[r->count++] = (struct call){.name = name};
    r->in_call = true;
    r->channel = CHANNEL_TOOLS;
    hand_out(event, K3_REPLY_CALL, name, strlen(name));
    event->call = r->count - 1;
}

static void begin_argument(k3_reply *r, k3_reply_event *event) {
    char *key = attribute(r->tag.s, "key"), *type = attribute(r->tag.s, "type");
    struct call *c = current(r);
    struct k3_text quoted = {0};
    const char *name = key ? key : "";
    k3_text_put(&quoted, ",");
    k3_text_add_json_string(&quoted, name, strlen(name));
    k3_text_put(&quoted, ",");
    r->channel = CHANNEL_ARGUMENT;
    r->skip = quoted.failed || c->whole || (c->keys.s && strstr(c->keys.s, quoted.s));
    r->is_string = !type || !strcmp(type, "string");
    if (!r->skip) {
        bool later = c->keys.length > 0;
        add_arguments(r, later ? ", " : "{", later ? 2 : 1);
        k3_text_add(&c->keys, quoted.s + later, quoted.length - later);
        add_arguments(r, quoted.s + 1, quoted.length - 2);
        add_arguments(r, ": \"", r->is_string ? 3 : 2);
        hand_out_part(r, event);
    }
    r->part.failed |= quoted.failed | c->keys.failed;
    k3_text_clear(&quoted);
    free(key);
    free(type);
}

static void opened(k3_reply *r, k3_reply_event *event) {
    if (is_tag(&r->tag, "argument") && r->in_call) {
        end_argument(r, event);
        begin_argument(r, event);
    } else if (is_tag(&r->tag, "json") && r->in_call) {
        end_argument(r, event);
        current(r)->whole = current(r)->keys.length == 0;
        r->channel = current(r)->whole ? CHANNEL_JSON : CHANNEL_TOOLS;
    } else {
        end_call(r, event);
        if (is_tag(&r->tag, "think"))
            r->channel = CHANNEL_THINK;
        else if (is_tag(&r->tag, "response"))
            r->channel = CHANNEL_RESPONSE;
        else if (is_tag(&r->tag, "call"))
            begin_call(r, event);
        else
            r->channel = CHANNEL_TOOLS; /* tools; of anything else the text is not for the user */
    }
}

static void closed(k3_reply *r, k3_reply_event *event) {
    if (is_tag(&r->tag, "argument") || is_tag(&r->tag, "json")) {
        if (r->in_call) end_argument(r, event);
        return;
    }
    bool think = is_tag(&r->tag, "think"), call = is_tag(&r->tag, "call");
    end_call(r, event);
    r->channel = think ? CHANNEL_BETWEEN : call ? CHANNEL_TOOLS : CHANNEL_OVER;
}

/* A special id: what the decoder holds back ends here, in the channel it belongs to. */
static void marker(k3_reply *r, int32_t id, k3_reply_event *event) {
    if (id == r->sep) {
        if (r->in_tag && r->tag.length) (r->closing ? closed : opened)(r, event);
        r->in_tag = false;
        return;
    }
    r->in_tag = id == r->open || id == r->close;
    r->closing = id == r->close;
    empty(&r->tag);
    if (r->in_tag) return;
    end_call(r, event);
    r->ended = true;
    if (event->kind == K3_REPLY_NOTHING) event->kind = K3_REPLY_END;
}

static k3_status memory(const k3_reply *r, k3_error *err) {
    bool failed = r->reasoning.failed || r->content.failed || r->value.failed || r->part.failed || r->tag.failed;
    for (size_t i = 0; i < r->count; i++) failed = failed || r->calls[i].arguments.failed;
    return failed ? k3_fail(err, K3_ERR_MEMORY, "no memory for a reply") : K3_OK;
}

static void take_text(k3_reply *r, const char *s, size_t n, k3_reply_event *event) {
    if (!n) return;
    if (!r->in_tag)
        channel_text(r, s, n, event);
    else if (r->tag.length + n <= TAG_BYTES)
        k3_text_add(&r->tag, s, n);
}

k3_status k3_reply_push(k3_reply *r, int32_t id, k3_reply_event *event, k3_error *err) {
    const char *s;
    size_t n;
    *event = (k3_reply_event){.text = "", .kind = r->ended ? K3_REPLY_END : K3_REPLY_NOTHING};
    if (r->ended) return K3_OK;
    empty(&r->part);
    bool ends = id == r->end || id == r->eos || id == r->eot;
    bool special = id >= 0 && (ends || id == r->open || id == r->close || id == r->sep);
    k3_status status =
        special ? k3_decoder_finish(r->decoder, &s, &n, err) : k3_decoder_push(r->decoder, id, &s, &n, err);
    if (status) return status;
    take_text(r, s, n, event);
    if (special) marker(r, id, event);
    return memory(r, err);
}

k3_status k3_reply_finish(k3_reply *r, k3_reply_event *event, k3_error *err) {
    const char *s;
    size_t n;
    *event = (k3_reply_event){.text = ""};
    if (r->ended) return K3_OK;
    empty(&r->part);
    k3_status status = k3_decoder_finish(r->decoder, &s, &n, err);
    if (status) return status;
    take_text(r, s, n, event);
    end_call(r, event);
    r->ended = true;
    return memory(r, err);
}

const char *k3_reply_reasoning(const k3_reply *r, size_t *length) {
    if (length) *length = r->reasoning.length;
    return r->reasoning.s ? r->reasoning.s : "";
}

const char *k3_reply_content(const k3_reply *r, size_t *length) {
    if (length) *length = r->content.length;
    return r->content.s ? r->content.s : "";
}

size_t k3_reply_calls(const k3_reply *r) { return r->count; }

const char *k3_reply_call_name(const k3_reply *r, size_t i) { return i < r->count ? r->calls[i].name : ""; }

const char *k3_reply_call_arguments(const k3_reply *r, size_t i) {
    return i < r->count && r->calls[i].arguments.s ? r->calls[i].arguments.s : "";
}
