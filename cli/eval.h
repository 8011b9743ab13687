/* What `k3 eval` measured, and how it is summed up. */
#ifndef K3_CLI_EVAL_H
#define K3_CLI_EVAL_H

#include "tasks.h"

#include <stdbool.h>
#include <stddef.h>

/* One run of one task. */
struct outcome {
    bool right;
    size_t prompt_tokens, tokens;
    double seconds;
};

struct outcomes {
    const struct tasks *tasks;
    size_t repeats;
    struct outcome *of; /* [tasks][repeats] */
    size_t done;        /* runs, in the order of tasks, then repeats */
    double price;       /* of an hour; below 0: not given */
};

/* Prints a table, or one JSON object, of all groups and of all tasks together. */
int eval_report(const struct outcomes *o, bool json, const char *model);

#endif
