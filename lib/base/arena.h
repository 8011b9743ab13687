/* Memory handed out piece by piece and given back all at once.
 *
 * Large tables are filled once and live together: in few big mappings, whose huge pages cost one
 * page fault where small ones cost five hundred. */
#ifndef K3_BASE_ARENA_H
#define K3_BASE_ARENA_H

#include <stddef.h>

struct k3_arena {
    struct k3_arena_chunk *chunks; /* NULL: nothing yet; the newest first */
};

/* Zeroed memory, aligned to 16 bytes; NULL when there is none. */
void *k3_arena_take(struct k3_arena *a, size_t bytes);

/* Moves all of `from` into `to`; `from` is empty then. */
void k3_arena_join(struct k3_arena *to, struct k3_arena *from);

void k3_arena_clear(struct k3_arena *a);

#endif
