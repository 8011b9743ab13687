#include "base/barrier.h"

#ifdef __linux__
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sched.h>
#endif

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps while the generation is `seen`; may return early.  The last thread sees that we sleep or we see
 * its generation: both sides write, then read, in one order for all. */
static void sleep_on(struct k3_barrier *b, unsigned seen) {
    atomic_fetch_add(&b->sleepers, 1);
#ifdef __linux__
    syscall(SYS_futex, &b->generation, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
    (void)seen;
    sched_yield();
#endif
    atomic_fetch_sub(&b->sleepers, 1);
}

static void release(struct k3_barrier *b, unsigned seen) {
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed); /* none comes again before the generation changes */
    atomic_store(&b->generation, seen + 1);
#ifdef __linux__
    if (atomic_load(&b->sleepers)) syscall(SYS_futex, &b->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#endif
}

void k3_barrier_wait(struct k3_barrier *b, int size) {
    if (size <= 1) return;
    unsigned seen = atomic_load_explicit(&b->generation, memory_order_relaxed); /* it waits for us */
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == (unsigned)size) {
        release(b, seen);
        return;
    }
    for (int i = 0; i < b->spins; i++) {
        if (atomic_load_explicit(&b->generation, memory_order_acquire) != seen) return;
        pause_cpu();
    }
    while (atomic_load(&b->generation) == seen) sleep_on(b, seen);
}
