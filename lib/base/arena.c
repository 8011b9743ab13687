#include "base/arena.h"

#include "base/memory.h"

#define FIRST ((size_t)128 << 10)
#define LARGEST ((size_t)16 << 20)

struct k3_arena_chunk {
    struct k3_arena_chunk *next;
    size_t size, used; /* both with this head */
    size_t pad;        /* keeps what follows aligned to 16 bytes */
};

static struct k3_arena_chunk *add_chunk(struct k3_arena *a, size_t bytes) {
    size_t size = a->chunks ? 2 * a->chunks->size : FIRST;
    if (size > LARGEST) size = LARGEST;
    if (size < bytes) size = bytes;
    struct k3_arena_chunk *c = k3_map(size);
    if (!c) return NULL;
    *c = (struct k3_arena_chunk){.next = a->chunks, .size = size, .used = sizeof *c};
    a->chunks = c;
    return c;
}

void *k3_arena_take(struct k3_arena *a, size_t bytes) {
    struct k3_arena_chunk *c = a->chunks;
    size_t with_head;
    if (!k3_add(bytes, sizeof *c + 15, &with_head)) return NULL;
    bytes = k3_round_up(bytes, 16);
    if (!c || bytes > c->size - c->used) c = add_chunk(a, with_head);
    if (!c) return NULL;
    void *p = (char *)c + c->used;
    c->used += bytes;
    return p;
}

void k3_arena_join(struct k3_arena *to, struct k3_arena *from) {
    struct k3_arena_chunk **last = &to->chunks;
    while (*last) last = &(*last)->next;
    *last = from->chunks;
    from->chunks = NULL;
}

void k3_arena_clear(struct k3_arena *a) {
    while (a->chunks) {
        struct k3_arena_chunk *c = a->chunks;
        a->chunks = c->next;
        k3_unmap(c, c->size);
    }
}
