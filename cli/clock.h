#ifndef K3_CLI_CLOCK_H
#define K3_CLI_CLOCK_H

#include <time.h>

/* Seconds of a clock that never jumps. */
static inline double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Work per second; 0 where no time was measured. */
static inline double rate(double work, double time) {
    return time > 0 ? work / time : 0;
}

#endif
