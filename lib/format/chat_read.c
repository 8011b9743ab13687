/* A conversation's JSON to messages. */
#include "format/chat.h"

#include "base/error.h"
#include "format/json_respell.h"

#include <stdlib.h>
#include <string.h>

/* A string, or null, which leaves *out absent. */
static bool text_or_null(struct k3_json *j, struct k3_name *out) { return k3_json_null(j) || k3_json_string(j, out); }

/* One element of content: a text, or {"type": "text", "text": ...}. */
static bool part(struct k3_json *j, struct k3_name *out) {
    struct k3_name key, type = {"text", 4};
    bool first = true;
    if (k3_json_peek(j) == '"') return k3_json_string(j, out);
    if (!k3_json_enter(j, '{')) return false;
    while (k3_json_more(j, '}', &first)) {
        if (!k3_json_key(j, &key)) return false;
        if (!(k3_name_is(key, "text")   ? k3_json_string(j, out)
              : k3_name_is(key, "type") ? k3_json_string(j, &type)
                                        : k3_json_skip(j)))
            return false;
    }
    if (!j->error && !k3_name_is(type, "text")) return k3_json_fail(j, "a part that is not of type text");
    return !j->error && (out->s || k3_json_fail(j, "a part without text"));
}

/* The parts lie one behind the other in the text: they are moved together. */
static bool content(struct k3_json *j, struct k3_name *out) {
    bool first = true;
    if (k3_json_peek(j) != '[') return text_or_null(j, out);
    k3_json_enter(j, '[');
    *out = (struct k3_name){"", 0};
    while (k3_json_more(j, ']', &first)) {
        struct k3_name next = {0};
        if (!part(j, &next)) return false;
        if (out->length == 0) {
            *out = next;
        } else {
            memmove((char *)out->s + out->length, next.s, next.length);
            out->length += next.length;
        }
    }
    return !j->error;
}

static bool function(struct k3_json *j, struct k3_chat_call *call) {
    struct k3_name key;
    bool first = true;
    if (!k3_json_enter(j, '{')) return false;
    while (k3_json_more(j, '}', &first)) {
        if (!k3_json_key(j, &key)) return false;
        if (!(k3_name_is(key, "name")        ? k3_json_string(j, &call->name)
              : k3_name_is(key, "arguments") ? text_or_null(j, &call->arguments)
                                             : k3_json_skip(j)))
            return false;
    }
    return !j->error;
}

static bool one_call(struct k3_json *j, struct k3_chat_call *call) {
    struct k3_name key;
    bool first = true;
    if (!k3_json_enter(j, '{')) return false;
    while (k3_json_more(j, '}', &first)) {
        if (!k3_json_key(j, &key)) return false;
        if (!(k3_name_is(key, "id")         ? text_or_null(j, &call->id)
              : k3_name_is(key, "function") ? function(j, call)
                                            : k3_json_skip(j)))
            return false;
    }
    return !j->error && (call->name.s || k3_json_fail(j, "a call without a function's name"));
}

/* Makes room for one more element of `size` bytes in an array of n, zeroed; NULL without memory. */
static void *grow(void *array, size_t n, size_t size) {
    if (n & (n - 1)) return array; /* the room is the power of two that n needs */
    size_t room = n ? 2 * n : 1, bytes;
    if (__builtin_mul_overflow(room, size, &bytes)) return NULL;
    char *grown = realloc(array, bytes);
    if (grown) memset(grown + n * size, 0, bytes - n * size);
    return grown;
}

static bool calls(struct k3_json *j, struct k3_chat_message *m) {
    bool first = true;
    if (k3_json_null(j)) return true;
    if (!k3_json_enter(j, '[')) return false;
    while (k3_json_more(j, ']', &first)) {
        struct k3_chat_call *grown = grow(m->calls, m->call_count, sizeof *grown);
        if (!grown) return k3_json_fail(j, "out of memory");
        m->calls = grown;
        m->call_count++;
        if (!one_call(j, &m->calls[m->call_count - 1])) return false;
    }
    return !j->error;
}

static bool role(struct k3_json *j, enum k3_chat_role *out) {
    static const struct {
        const char *name;
        enum k3_chat_role role;
    } known[] = {
        {"system", K3_ROLE_SYSTEM}, {"user", K3_ROLE_USER}, {"assistant", K3_ROLE_ASSISTANT}, {"tool", K3_ROLE_TOOL}};
    struct k3_name s;
    if (!k3_json_string(j, &s)) return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!k3_name_is(s, known[i].name)) continue;
        *out = known[i].role;
        return true;
    }
    return k3_json_fail(j, "not system, user, assistant or tool");
}

static bool tools(struct k3_json *j, struct k3_chat_message *m) {
    if (k3_json_null(j)) return true;
    if (k3_json_peek(j) != '[') return k3_json_fail(j, "expected an array");
    k3_text_clear(&m->tools);
    return k3_json_respell(j, K3_JSON_SORTED, &m->tools) || k3_json_fail(j, "out of memory");
}

static bool member(struct k3_json *j, const struct k3_name *key, struct k3_chat_message *m) {
    if (k3_name_is(*key, "role")) return role(j, &m->role);
    if (k3_name_is(*key, "content")) return content(j, &m->content);
    if (k3_name_is(*key, "reasoning_content")) return text_or_null(j, &m->reasoning);
    if (k3_name_is(*key, "name")) return text_or_null(j, &m->name);
    if (k3_name_is(*key, "tool")) return text_or_null(j, &m->tool);
    if (k3_name_is(*key, "tool_call_id")) return text_or_null(j, &m->call_id);
    if (k3_name_is(*key, "tool_calls")) return calls(j, m);
    if (k3_name_is(*key, "tools")) return tools(j, m);
    return k3_json_skip(j);
}

static k3_status bad(const struct k3_json *j, size_t number, const struct k3_name *key, k3_error *err) {
    k3_status status = strcmp(j->error, "out of memory") ? K3_ERR_FORMAT : K3_ERR_MEMORY;
    if (key->s)
        return k3_fail(err, status, "message %zu: %.*s: %s", number, (int)(key->length < 64 ? key->length : 64), key->s,
                       j->error);
    return k3_fail(err, status, "message %zu: %s", number, j->error);
}

/* What a message must not be without. */
static k3_status check(const struct k3_chat_message *m, size_t number, k3_error *err) {
    if (m->role == K3_ROLE_NONE) return k3_fail(err, K3_ERR_FORMAT, "message %zu: no role", number);
    bool spoken = m->call_count || m->tools.length || (m->role == K3_ROLE_ASSISTANT && m->reasoning.s);
    if (!m->content.s && !spoken) return k3_fail(err, K3_ERR_FORMAT, "message %zu: no content", number);
    if (m->call_count && m->role != K3_ROLE_ASSISTANT)
        return k3_fail(err, K3_ERR_FORMAT, "message %zu: tool_calls: only the assistant makes calls", number);
    if (m->tools.length && m->role != K3_ROLE_SYSTEM)
        return k3_fail(err, K3_ERR_FORMAT, "message %zu: tools: only a system message brings tools", number);
    if (m->tools.length && m->content.length)
        return k3_fail(err, K3_ERR_FORMAT, "message %zu: content beside tools: make it two messages", number);
    return K3_OK;
}

static k3_status message(struct k3_json *j, size_t number, struct k3_chat_message *m, k3_error *err) {
    struct k3_name key = {0};
    bool first = true;
    if (!k3_json_enter(j, '{')) return bad(j, number, &key, err);
    while (k3_json_more(j, '}', &first)) {
        if (!k3_json_key(j, &key) || !member(j, &key, m)) return bad(j, number, &key, err);
        key.s = NULL;
    }
    return j->error ? bad(j, number, &key, err) : check(m, number, err);
}

static k3_status messages(struct k3_json *j, struct k3_chat *chat, k3_error *err) {
    bool first = true;
    k3_status status = K3_OK;
    k3_json_enter(j, '[');
    while (!status && !j->error && k3_json_more(j, ']', &first)) {
        struct k3_chat_message *grown = grow(chat->messages, chat->count, sizeof *grown);
        if (!grown) return k3_fail(err, K3_ERR_MEMORY, "no memory for message %zu", chat->count + 1);
        chat->messages = grown;
        chat->count++;
        status = message(j, chat->count, &chat->messages[chat->count - 1], err);
    }
    if (!status && !j->error) k3_json_finish(j);
    if (!status && j->error) status = k3_fail(err, K3_ERR_FORMAT, "messages: %s", j->error);
    if (!status && !chat->count) status = k3_fail(err, K3_ERR_FORMAT, "messages: there are none");
    return status;
}

k3_status k3_chat_read(const char *json, struct k3_chat *chat, k3_error *err) {
    *chat = (struct k3_chat){.text = strdup(json)};
    if (!chat->text) return k3_fail(err, K3_ERR_MEMORY, "no memory for the messages");
    struct k3_json j = k3_json_of(chat->text, strlen(chat->text));
    k3_status status = messages(&j, chat, err);
    if (status) k3_chat_clear(chat);
    return status;
}

void k3_chat_clear(struct k3_chat *chat) {
    for (size_t i = 0; i < chat->count; i++) {
        k3_text_clear(&chat->messages[i].tools);
        free(chat->messages[i].calls);
    }
    free(chat->messages);
    free(chat->text);
    *chat = (struct k3_chat){0};
}
