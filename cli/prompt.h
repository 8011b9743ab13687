/* What a model is given: a text, ids, or a conversation in K3's chat format. */
#ifndef K3_CLI_PROMPT_H
#define K3_CLI_PROMPT_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum prompt_source { PROMPT_NONE, PROMPT_TEXT, PROMPT_FILE, PROMPT_IDS, PROMPT_CHAT, PROMPT_MESSAGES };

enum {
    OPTION_IDS = OPTION_OWN,
    OPTION_SPECIAL,
    OPTION_CHAT,
    OPTION_MESSAGES,
    OPTION_TOOLS,
    OPTION_THINKING,
    OPTION_EFFORT
};

#define PROMPT_LETTERS "p:f:"
#define OPTION_LIST_PROMPT                                                                                             \
    {"prompt", required_argument, NULL, 'p'}, {"file", required_argument, NULL, 'f'},                                  \
        {"ids", required_argument, NULL, OPTION_IDS}, {"special", no_argument, NULL, OPTION_SPECIAL},                  \
        {"chat", required_argument, NULL, OPTION_CHAT}, {"messages", required_argument, NULL, OPTION_MESSAGES},        \
        {"tools", required_argument, NULL, OPTION_TOOLS}, {"thinking", required_argument, NULL, OPTION_THINKING},      \
        {"effort", required_argument, NULL, OPTION_EFFORT}

struct prompt {
    enum prompt_source source;
    const char *text; /* what the option said */
    unsigned encode_flags;
    const char *tools_file;
    bool chat_option; /* --tools, --thinking or --effort was given */
    k3_chat_options chat;

    int32_t *ids; /* k3_free() */
    size_t count;
};

void prompt_init(struct prompt *p);

/* Handles one of the options above; false: it is none of them. */
bool prompt_option(struct prompt *p, const char *command, int option, int *code);

/* After the last option: one source, and the others fit it. */
int prompt_check(const struct prompt *p, const char *command);

static inline bool prompt_is_chat(const struct prompt *p) { return p->source >= PROMPT_CHAT; }

/* Makes the ids.  t may be NULL for PROMPT_IDS. */
int prompt_encode(struct prompt *p, const k3_tokenizer *t);

void prompt_clear(struct prompt *p);

#endif
