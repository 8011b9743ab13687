/* A barrier for the threads of a team: a short spin, then the core is offered to others, then sleep.
 *
 * OpenMP's own spins for up to milliseconds when the team is not larger than the machine, and so holds
 * a core that the last thread may be waiting for.  Microseconds (median of 11 runs) for 40,000 additions
 * shared out and one barrier, on 2 cores that other processes load fourfold:
 *
 *     threads      1      2      4      8
 *     libgomp    255   3269    278    290
 *     libomp     341    434    434    335
 *     this one   233    296    276    310
 */
#ifndef K3_BASE_BARRIER_H
#define K3_BASE_BARRIER_H

#include <stdatomic.h>

struct k3_barrier {
    _Alignas(64) _Atomic unsigned arrived;
    _Alignas(64) _Atomic unsigned generation; /* one more each time all have come */
    _Alignas(64) _Atomic unsigned sleepers;
    int spins, yields; /* looks at the generation before yielding, and before sleeping */
};

/* For a team of `size` threads on `cpus` CPUs: where there are fewer CPUs than threads, one that yields
 * uses up the time slices that it will need. */
static inline struct k3_barrier k3_barrier_for(int size, int cpus) {
    return (struct k3_barrier){.spins = 200, .yields = size <= cpus ? 100 : 0};
}

/* Waits until `size` threads have come.  What they wrote before is seen after. */
void k3_barrier_wait(struct k3_barrier *b, int size);

#endif
