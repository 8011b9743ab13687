/* A barrier for the threads of a team: a short spin, then sleep.
 *
 * OpenMP's own barrier spins for milliseconds where it believes that it has the cores for itself;
 * beside other work that turns every phase of a step into a lost time slice. */
#ifndef K3_BASE_BARRIER_H
#define K3_BASE_BARRIER_H

#include <stdatomic.h>

struct k3_barrier {
    _Atomic unsigned arrived, generation, sleepers;
    int spins; /* looks at the generation before sleeping */
};

/* Waits until `size` threads have come.  What they wrote before is seen after. */
void k3_barrier_wait(struct k3_barrier *b, int size);

#endif
