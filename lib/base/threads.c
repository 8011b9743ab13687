#include "base/threads.h"

#include "base/barrier.h"
#include "base/topology.h"

#ifdef _OPENMP

#include <limits.h>
#include <linux/futex.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CPUs that the process's cgroup pays for. */
static int quota(void) {
    char self[8192];
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return INT_MAX;
    size_t n = fread(self, 1, sizeof self - 1, f);
    fclose(f);
    self[n] = 0;
    return k3_cgroup_cpus("", self);
}

int k3_threads_default(void) {
    int n = k3_cores_allowed(), most = quota(), asked = omp_get_max_threads(); /* OMP_NUM_THREADS, or all CPUs */
    if (most < n) n = most;
    return asked < n ? asked : n;
}

/* A barrier of our own, because OpenMP's spin for up to milliseconds when the team is not larger than
 * the machine, and so hold a core that the last thread may be waiting for.  Mean microseconds of 4,000
 * additions shared out and a barrier, on 2 cores that other processes load threefold (best in brackets):
 *
 *     threads     2            4           8
 *     libgomp     2051 (6)     88 (72)     172 (124)
 *     libomp       110 (37)    53 (32)     157 (97)
 *     this one     103 (59)    85 (74)     224 (141)
 *
 * A short spin catches threads that run in step, yielding gives the core to the one that is late,
 * and the futex ends the wait for one that will take long. */
struct k3_meeting {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint round; /* the futex: one more each time all have arrived */
    _Alignas(64) atomic_int asleep;
    int yields;
};

enum { SPINS = 200, YIELDS = 100 };

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void wait_for_round_after(struct k3_meeting *m, unsigned round) {
    for (int i = 0; i < SPINS + m->yields; i++) {
        if (atomic_load_explicit(&m->round, memory_order_acquire) != round) return;
        if (i < SPINS) pause_cpu();
        else sched_yield();
    }
    /* Either the last thread sees that we sleep, or we see its round: both sides write, then read. */
    atomic_fetch_add(&m->asleep, 1);
    while (atomic_load(&m->round) == round) syscall(SYS_futex, &m->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
    atomic_fetch_sub(&m->asleep, 1);
}

void k3_team_barrier(struct k3_team *team) {
    if (team->size == 1) return;
    struct k3_meeting *m = team->meeting;
    unsigned round = atomic_load_explicit(&m->round, memory_order_relaxed); /* it waits for us to arrive */
    if (atomic_fetch_add_explicit(&m->arrived, 1, memory_order_acq_rel) + 1 < team->size) {
        wait_for_round_after(m, round);
        return;
    }
    atomic_store_explicit(&m->arrived, 0, memory_order_relaxed);
    atomic_store(&m->round, round + 1);
    if (atomic_load(&m->asleep)) syscall(SYS_futex, &m->round, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void k3_team_run(int threads, void (*fn)(struct k3_team *team, void *arg), void *arg) {
    struct k3_meeting meeting = {.yields = threads <= omp_get_num_procs() ? YIELDS : 0};
#pragma omp parallel num_threads(threads)
    {
        struct k3_team team = {omp_get_thread_num(), omp_get_num_threads(), &meeting};
        fn(&team, arg);
        k3_team_barrier(&team); /* OpenMP's own, at the end of the region, then finds all there */
    }
}

#else

int k3_threads_default(void) {
    return 1;
}

void k3_team_run(int threads, void (*fn)(struct k3_team *team, void *arg), void *arg) {
    (void)threads;
    struct k3_team team = {0, 1, NULL};
    fn(&team, arg);
}

void k3_team_barrier(struct k3_team *team) {
    (void)team;
}

#endif
