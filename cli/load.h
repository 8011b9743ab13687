/* Opening a model, with progress, and its tokenizer. */
#ifndef K3_CLI_LOAD_H
#define K3_CLI_LOAD_H

#include "options.h"

/* Loads the weights of o->model.  An interruption ends it: call interrupt_watch first. */
int load_model(struct common_options *o, k3_model **model, double *seconds);

/* *out stays NULL where the checkpoint has no tiktoken.model; needed: says then what needs it. */
int load_tokenizer(const char *model, const char *needed, k3_tokenizer **out);

/* The model's ids that end a text and, if `chat` is not NULL, what ends a message of K3's format there.
 * *ids: free(). */
int load_eos(const k3_model *model, const k3_tokenizer *chat, int32_t **ids, size_t *n);

/* The vocabulary's size, without reading weights. */
int load_vocab_size(const char *model, uint32_t *vocab);

#endif
