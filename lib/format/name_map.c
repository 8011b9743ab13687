#include "format/name_map.h"

#include "base/memory.h"

#include <string.h>

struct k3_name_slot {
    uint32_t hash, item; /* item: its number + 1; 0: free */
};

/* Two chains of multiplications, 16 bytes a round, so that they overlap. */
uint64_t k3_name_hash(struct k3_name name) {
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15) ^ name.length, b = UINT64_C(0xc2b2ae3d27d4eb4f), x, y;
    const char *s = name.s;
    size_t n = name.length;
    for (; n >= 16; s += 16, n -= 16) {
        memcpy(&x, s, 8);
        memcpy(&y, s + 8, 8);
        a = (a ^ x) * UINT64_C(0xff51afd7ed558ccd);
        b = (b ^ y) * UINT64_C(0xc4ceb9fe1a85ec53);
        a ^= a >> 32;
        b ^= b >> 32;
    }
    char rest[16] = {0};
    if (n) memcpy(rest, s, n);
    memcpy(&x, rest, 8);
    memcpy(&y, rest + 8, 8);
    a = (a ^ x) * UINT64_C(0xff51afd7ed558ccd);
    b = (b ^ y) * UINT64_C(0xc4ceb9fe1a85ec53);
    a ^= b ^ b >> 32 ^ a >> 29;
    a *= UINT64_C(0x9e3779b97f4a7c15);
    return a ^ a >> 32;
}

static void unmap(struct k3_name_map *m) {
    if (m->slots) k3_unmap(m->slots, ((size_t)m->mask + 1) * sizeof *m->slots);
}

bool k3_name_map_reserve(struct k3_name_map *m, size_t n) {
    size_t size = 16;
    if (n > (size_t)1 << 30) return false;
    while (size < 2 * n) size *= 2; /* at most half full */
    if (m->slots && size <= (size_t)m->mask + 1) return true;
    struct k3_name_slot *slots = k3_map(size * sizeof *slots);
    if (!slots) return false;
    uint32_t mask = (uint32_t)(size - 1);
    for (uint32_t i = 0; m->slots && i <= m->mask; i++) {
        if (!m->slots[i].item) continue;
        uint32_t at = m->slots[i].hash & mask;
        while (slots[at].item) at = (at + 1) & mask;
        slots[at] = m->slots[i];
    }
    unmap(m);
    m->slots = slots;
    m->mask = mask;
    return true;
}

void k3_name_map_clear(struct k3_name_map *m) {
    unmap(m);
    m->slots = NULL;
    m->mask = 0;
}

/* The slot that holds the name, or the free one where it belongs. */
static struct k3_name_slot *slot_of(const struct k3_name_map *m, const void *items, struct k3_name name,
                                    uint64_t hash) {
    for (uint32_t at = (uint32_t)hash & m->mask;; at = (at + 1) & m->mask) {
        struct k3_name_slot *slot = &m->slots[at];
        if (!slot->item) return slot;
        if (slot->hash != (uint32_t)hash) continue;
        struct k3_name other = m->name_of(items, slot->item - 1);
        if (other.length == name.length && memcmp(other.s, name.s, name.length) == 0) return slot;
    }
}

uint32_t k3_name_map_find(const struct k3_name_map *m, const void *items, struct k3_name name, uint64_t hash) {
    return m->slots ? slot_of(m, items, name, hash)->item - 1 : K3_NAME_NONE;
}

uint32_t k3_name_map_find_hash(const struct k3_name_map *m, const void *items, uint64_t hash,
                               uint64_t (*hash_of)(const void *items, uint32_t i)) {
    for (uint32_t at = (uint32_t)hash & m->mask; m->slots; at = (at + 1) & m->mask) {
        const struct k3_name_slot *slot = &m->slots[at];
        if (!slot->item) break;
        if (slot->hash == (uint32_t)hash && hash_of(items, slot->item - 1) == hash) return slot->item - 1;
    }
    return K3_NAME_NONE;
}

uint32_t k3_name_map_add(struct k3_name_map *m, const void *items, uint32_t i, uint64_t hash) {
    struct k3_name_slot *slot = slot_of(m, items, m->name_of(items, i), hash);
    if (!slot->item) *slot = (struct k3_name_slot){(uint32_t)hash, i + 1};
    return slot->item - 1;
}

void k3_name_map_prefetch(const struct k3_name_map *m, uint64_t hash) {
    __builtin_prefetch(&m->slots[(uint32_t)hash & m->mask]);
}
