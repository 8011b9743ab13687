/* A barrier for the threads of a team: a short spin, then sleep.
 *
 * OpenMP's own spins for up to milliseconds when the team is not larger than the machine, and so holds
 * a core that the last thread may be waiting for.  Decoded tokens/s beside other work that loads 2 cores
 * three- to fivefold: median (worst to best) of a 3 GB model and of one of 6 MB, which does little but wait:
 *
 *                            3 GB: 2 threads   8 threads    6 MB: 2 threads   8 threads
 *     libgomp                1.6 (1.4 to 2.0)     7.0       28 (10 to 711)       73
 *     this one               6.9 (4.1 to 7.7)     8.2       44 (27 to 144)       96
 *     ... with sched_yield   5.9 (4.4 to 7.1)               28 (13 to 90)        50
 *
 * Where nothing else runs, libgomp's is the faster one for tiny models: compare the best ones.
 */
#ifndef K3_BASE_BARRIER_H
#define K3_BASE_BARRIER_H

#include <stdatomic.h>

struct k3_barrier {
    _Alignas(64) _Atomic unsigned arrived;
    _Alignas(64) _Atomic unsigned generation; /* one more each time all have come */
    _Alignas(64) _Atomic unsigned sleepers;
    int spins; /* looks at the generation before sleeping */
};

/* For a team of `size` threads on `cpus` CPUs.  With fewer CPUs than threads, one that spins keeps
 * another from coming. */
static inline struct k3_barrier k3_barrier_for(int size, int cpus) {
    return (struct k3_barrier){.spins = size <= cpus ? 2000 : 0};
}

/* Waits until `size` threads have come.  What they wrote before is seen after. */
void k3_barrier_wait(struct k3_barrier *b, int size);

#endif
