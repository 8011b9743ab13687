/* The options about how the next token is picked, and what is never picked. */
#ifndef K3_CLI_SAMPLING_H
#define K3_CLI_SAMPLING_H

#include "options.h"

#define OPTION_LIST_SAMPLING                                                                                           \
    {"temperature", required_argument, NULL, OPTION_TEMPERATURE}, {"top-k", required_argument, NULL, OPTION_TOP_K},    \
        {"top-p", required_argument, NULL, OPTION_TOP_P}, {"min-p", required_argument, NULL, OPTION_MIN_P},            \
        {"seed", required_argument, NULL, OPTION_SEED}

struct sampling {
    k3_sampler_options options;
    bool seed_given;
};

/* Temperature 1 and top_p 0.95, as is recommended for Kimi K3. */
void sampling_init(struct sampling *s);

/* Handles one of the options above; false: it is none of them. */
bool sampling_option(struct sampling *s, int option, int *code);

/* Without --seed: one from the system. */
int sampling_draw_seed(struct sampling *s);

/* Bans what is never picked, unless it ends a text: ids that the tokenizer has no text for and, if `reserved`,
 * reserved ids and [PAD]. */
int sampling_ban(k3_sampler *sampler, const k3_tokenizer *t, uint32_t vocab, bool reserved, const int32_t *eos,
                 size_t eos_count);

#endif
