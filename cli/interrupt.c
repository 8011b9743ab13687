#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void remember(int signal_number) {
    caught = signal_number;
}

void interrupt_watch(void) {
    struct sigaction action = {.sa_handler = remember, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int interrupted(void) {
    return caught;
}
