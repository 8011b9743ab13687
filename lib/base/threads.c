#include "base/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif

int k3_threads_default(void) {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

void k3_team_run(int threads, void (*fn)(struct k3_team *team, void *arg), void *arg) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
    {
        struct k3_team team = {omp_get_thread_num(), omp_get_num_threads()};
        fn(&team, arg);
    }
#else
    (void)threads;
    struct k3_team team = {0, 1};
    fn(&team, arg);
#endif
}

void k3_team_barrier(struct k3_team *team) {
    (void)team;
#ifdef _OPENMP
#pragma omp barrier
#endif
}
