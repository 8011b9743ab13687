/* How many threads to use, and the team that runs one step.
 *
 * A step is one OpenMP parallel region: every thread of the team runs the same function and takes
 * its share of each operation.  Results never depend on the size of the team: shares are whole
 * outputs, never parts of a sum. */
#ifndef K3_BASE_THREADS_H
#define K3_BASE_THREADS_H

#include <stddef.h>

struct k3_barrier;

struct k3_team {
    int rank, size;
    struct k3_barrier *barrier; /* not used by a team of one */
};

/* Physical cores that this process may use: limited by its affinity mask, by the CPU quota of its
 * cgroup (v1 or v2, rounded down, at least 1) and by OMP_NUM_THREADS, which can lower the number but
 * not raise it: whoever wants more threads than cores asks for them by number. */
int k3_threads_default(void);

/* Runs fn on `threads` threads (1 without OpenMP or inside another parallel region) and returns
 * when all are done. */
void k3_team_run(int threads, void (*fn)(struct k3_team *team, void *arg), void *arg);

/* Waits for all threads of the team; what they wrote before is seen after. */
void k3_team_barrier(struct k3_team *team);

/* This thread's share [*begin, *end) of n items, in multiples of `grain`. */
static inline void k3_team_share(const struct k3_team *team, size_t n, size_t grain, size_t *begin, size_t *end) {
    size_t units = (n + grain - 1) / grain, size = (size_t)team->size, rank = (size_t)team->rank;
    size_t b = units / size * rank + (units % size < rank ? units % size : rank);
    size_t e = b + units / size + (rank < units % size);
    *begin = b * grain < n ? b * grain : n;
    *end = e * grain < n ? e * grain : n;
}

#endif
