/* How the reply of a chat is shown. */
#ifndef K3_CLI_REPLY_H
#define K3_CLI_REPLY_H

#include "json.h"

#include <k3/k3.h>

#include <stdbool.h>

/* Content goes to stdout, each tool call as a line of JSON behind it.  Reasoning is shown apart: dim and in front of
 * the content where stdout is a terminal; on stderr where it is not. */
struct reply_view {
    bool quiet;       /* reasoning is not shown on stderr */
    bool terminal;    /* stdout is one */
    k3_reply_kind at; /* what was shown last */
};

void reply_view_init(struct reply_view *v, bool quiet);

/* Returns an exit code. */
int reply_show(struct reply_view *v, const k3_reply *r, const k3_reply_event *event);

/* The end of a line that was begun. */
int reply_show_end(struct reply_view *v);

/* [{"id", "type", "function": {"name", "arguments"}}], as OpenAI's API has it; NULL without memory. */
json_t *reply_calls_json(const k3_reply *r);

#endif
