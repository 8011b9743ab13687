/* A conversation as read, before it is rendered.  Facts: K3's chat format, see libk3(3). */
#ifndef K3_FORMAT_CHAT_H
#define K3_FORMAT_CHAT_H

#include "format/json_scan.h"
#include "format/text_buffer.h"

#include <k3/k3.h>

#define K3_CHAT_OPEN "<|open|>"
#define K3_CHAT_CLOSE "<|close|>"
#define K3_CHAT_SEP "<|sep|>"
#define K3_CHAT_END "<|end_of_msg|>"

enum k3_chat_role { K3_ROLE_NONE, K3_ROLE_SYSTEM, K3_ROLE_USER, K3_ROLE_ASSISTANT, K3_ROLE_TOOL };

struct k3_chat_call {
    struct k3_name id, name, arguments; /* arguments: JSON text, or what a model took for it */
};

/* Absent members have s == NULL. */
struct k3_chat_message {
    enum k3_chat_role role;
    struct k3_name content, reasoning, name, tool, call_id;
    struct k3_text tools;        /* of a system message: sorted, compact */
    struct k3_chat_call *calls;  /* free() */
    size_t call_count;
};

struct k3_chat {
    char *text; /* the JSON, where the names point into */
    struct k3_chat_message *messages;
    size_t count;
};

/* Reads a JSON array of messages.  Errors: K3_ERR_FORMAT, K3_ERR_MEMORY; *chat is then cleared. */
k3_status k3_chat_read(const char *json, struct k3_chat *chat, k3_error *err);
void k3_chat_clear(struct k3_chat *chat);

#endif
