/* How far a long piece of work is: a bar on a terminal, now and then a line elsewhere. */
#ifndef K3_CLI_PROGRESS_H
#define K3_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* "loading" */
    const char *unit; /* what is counted, such as "tokens"; NULL: bytes */
    bool quiet, terminal, drawn;
    double start, last; /* seconds */
};

void progress_start(struct progress *p, const char *what, const char *unit, bool quiet);
void progress_update(struct progress *p, uint64_t done, uint64_t total);

/* Takes the bar away. */
void progress_end(struct progress *p);

#endif
