/* The tasks of `k3 eval`: a file of JSON, one task a line. */
#ifndef K3_CLI_TASKS_H
#define K3_CLI_TASKS_H

#include "judge.h"

#include <jansson.h>
#include <k3/k3.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task {
    json_t *object; /* owns the strings */
    const char *id, *group;
    const char *prompt; /* a text to continue; NULL: messages */
    char *messages, *tools; /* JSON; free() */
    bool thinking;
    const char *effort;
    uint64_t max_tokens; /* 0: the command's */
    struct judge judge;
};

struct tasks {
    struct task *of;
    size_t count;
    uint64_t bytes, hash; /* of the file: its length, and FNV-1a of 64 bits */
};

/* Reads all lines; a bad one is refused with its number.  Returns an exit code and has printed its line. */
int tasks_read(const char *path, struct tasks *tasks);
void tasks_clear(struct tasks *tasks);

/* Leaves only the tasks of a group (NULL: all), and of those the first `limit` (0: all). */
void tasks_select(struct tasks *tasks, const char *group, uint64_t limit);

#endif
