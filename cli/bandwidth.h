/* How fast this machine reads memory: the roof of decoding. */
#ifndef K3_CLI_BANDWIDTH_H
#define K3_CLI_BANDWIDTH_H

#include <stddef.h>

struct bandwidth {
    unsigned char *memory;
    size_t bytes;
};

/* Maps and touches a buffer far larger than the last cache: 1 GiB, or a quarter of the free memory where that is
 * less.  Returns an exit code. */
int bandwidth_open(struct bandwidth *b);
void bandwidth_close(struct bandwidth *b);

/* Reads the whole buffer with that many threads and 1, 2, 4 and 8 streams a thread; bytes a second of the best. */
double bandwidth_measure(const struct bandwidth *b, int threads);

#endif
