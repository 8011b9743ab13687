/* SIGINT and SIGTERM ask the work to stop; a second one of its kind ends the program at once. */
#ifndef K3_CLI_INTERRUPT_H
#define K3_CLI_INTERRUPT_H

void interrupt_watch(void);

/* The signal that came, or 0. */
int interrupted(void);

#endif
