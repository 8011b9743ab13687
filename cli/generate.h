/* One continuation: a prompt goes in, ids and text come out one by one. */
#ifndef K3_CLI_GENERATE_H
#define K3_CLI_GENERATE_H

#include "reply.h"

#include <k3/k3.h>

enum stop { STOP_LENGTH, STOP_EOS, STOP_INTERRUPTED, STOP_ERROR };

struct generation {
    /* given */
    k3_session *session;
    k3_sampler *sampler;
    k3_decoder *decoder; /* NULL: no tokenizer, the ids themselves are the text */
    k3_reply *reply;     /* not NULL: a chat, the ids go there instead */
    struct reply_view *view;
    const int32_t *eos;
    size_t eos_count;
    uint32_t vocab;
    const int32_t *prompt;
    size_t prompt_count;
    uint64_t limit; /* ids to make at the most */
    bool stream;    /* text goes to stdout as it comes, else into `text` (a chat's stays in the reply) */
    bool quiet;

    /* made; free with generation_clear */
    int32_t *ids;
    size_t count, room;
    char *text;
    size_t text_length, text_room;
    int32_t stop_id; /* where stop is STOP_EOS: the id, which is not among `ids` */
    enum stop stop;
    bool output_failed; /* stdout would take no more; said already */
    k3_error err;       /* where stop is STOP_ERROR */
    size_t prompt_fed;
    uint64_t decode_steps; /* ids fed one by one after the prompt */
    double prompt_seconds, decode_seconds;
};

/* Runs until a stop; g->stop says which. */
void generate(struct generation *g);

void generation_clear(struct generation *g);

const char *stop_name(enum stop stop);

#endif
