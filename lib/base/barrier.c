#include "base/barrier.h"

#include <sched.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps while the generation is `seen`; may return early. */
static void sleep_on(struct k3_barrier *b, unsigned seen) {
    atomic_fetch_add(&b->sleepers, 1); /* before the kernel compares: the last thread wakes us or we see its change */
#ifdef __linux__
    syscall(SYS_futex, &b->generation, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
    (void)seen;
    sched_yield();
#endif
    atomic_fetch_sub(&b->sleepers, 1);
}

static void release(struct k3_barrier *b) {
    atomic_store(&b->arrived, 0);
    atomic_fetch_add(&b->generation, 1);
#ifdef __linux__
    if (atomic_load(&b->sleepers)) syscall(SYS_futex, &b->generation, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
#endif
}

void k3_barrier_wait(struct k3_barrier *b, int size) {
    unsigned seen = atomic_load(&b->generation);
    if (size <= 1) return;
    if (atomic_fetch_add(&b->arrived, 1) + 1 == (unsigned)size) {
        release(b);
        return;
    }
    for (int i = 0; i < b->spins; i++) {
        if (atomic_load_explicit(&b->generation, memory_order_acquire) != seen) return;
        pause_cpu();
    }
    while (atomic_load(&b->generation) == seen) sleep_on(b, seen);
}
