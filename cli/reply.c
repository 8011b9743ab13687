#include "reply.h"
#include "message.h"
#include "output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void reply_view_init(struct reply_view *v, bool quiet) {
    *v = (struct reply_view){.quiet = quiet, .terminal = isatty(STDOUT_FILENO)};
}

static int put(const char *text) {
    return output_text(text, strlen(text));
}

/* What ends the thing that was shown last, before another kind of thing. */
static int leave(struct reply_view *v) {
    k3_reply_kind left = v->at;
    v->at = K3_REPLY_NOTHING;
    if (left == K3_REPLY_CONTENT) return put("\n");
    if (left != K3_REPLY_REASONING) return CLI_OK;
    if (v->terminal) return put("\033[0m\n\n");
    if (!v->quiet) fputs("\n", stderr);
    return CLI_OK;
}

static int reasoning(struct reply_view *v, const k3_reply_event *event) {
    if (v->terminal) return output_text(event->text, event->length);
    if (!v->quiet) fwrite(event->text, 1, event->length, stderr);
    return CLI_OK;
}

static json_t *call_json(const k3_reply *r, size_t i) {
    const char *name = k3_reply_call_name(r, i), *arguments = k3_reply_call_arguments(r, i);
    return json_pack("{s:o, s:o}", "name", json_text(name, strlen(name)), "arguments",
                     json_text(arguments, strlen(arguments)));
}

json_t *reply_calls_json(const k3_reply *r) {
    char id[32];
    json_t *calls = json_array();
    for (size_t i = 0; calls && i < k3_reply_calls(r); i++) {
        snprintf(id, sizeof id, "call_%zu", i + 1);
        json_t *call = json_pack("{s:s, s:s, s:o}", "id", id, "type", "function", "function", call_json(r, i));
        if (!call || json_array_append_new(calls, call)) {
            json_decref(calls);
            return NULL;
        }
    }
    return calls;
}

int reply_show(struct reply_view *v, const k3_reply *r, const k3_reply_event *event) {
    bool text = event->kind == K3_REPLY_REASONING || event->kind == K3_REPLY_CONTENT;
    int code = CLI_OK;
    if (text && event->kind != v->at) {
        code = leave(v);
        v->at = event->kind;
        if (!code && v->terminal && event->kind == K3_REPLY_REASONING) code = put("\033[2m");
    }
    if (code) return code;
    if (event->kind == K3_REPLY_CONTENT) code = output_text(event->text, event->length);
    else if (event->kind == K3_REPLY_REASONING) code = reasoning(v, event);
    else if (event->kind == K3_REPLY_CALL_END) {
        code = leave(v);
        if (!code) code = json_print(call_json(r, event->call));
    }
    return code ? code : output_flush();
}

int reply_show_end(struct reply_view *v) {
    int code = leave(v);
    return code ? code : output_flush();
}
