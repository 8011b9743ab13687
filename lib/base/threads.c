#include "base/threads.h"

#include "base/barrier.h"
#include "base/topology.h"

#ifdef _OPENMP

#include <limits.h>
#include <omp.h>
#include <stdio.h>

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

void k3_team_run(int threads, void (*fn)(struct k3_team *team, void *arg), void *arg) {
    struct k3_barrier barrier = k3_barrier_for(threads, omp_get_num_procs());
#pragma omp parallel num_threads(threads)
    {
        struct k3_team team = {omp_get_thread_num(), omp_get_num_threads(), &barrier};
        fn(&team, arg);
        k3_team_barrier(&team); /* OpenMP's own, at the end of the region, then finds all there */
    }
}

void k3_team_barrier(struct k3_team *team) {
    k3_barrier_wait(team->barrier, team->size);
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
