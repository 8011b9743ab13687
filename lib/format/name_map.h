/* From names to numbers: an open-addressing hash table over items that hold their names themselves. */
#ifndef K3_FORMAT_NAME_MAP_H
#define K3_FORMAT_NAME_MAP_H

#include "format/json_scan.h"

#define K3_NAME_NONE UINT32_MAX

/* The name of item i. */
typedef struct k3_name k3_name_of(const void *items, uint32_t i);

struct k3_name_map {
    struct k3_name_slot *slots; /* [mask + 1], or NULL */
    uint32_t mask;
    k3_name_of *name_of;
};

uint64_t k3_name_hash(struct k3_name name);

/* Room for n items without growing; false without memory. */
bool k3_name_map_reserve(struct k3_name_map *m, size_t n);
void k3_name_map_clear(struct k3_name_map *m);

/* The item of that name, or K3_NAME_NONE. */
uint32_t k3_name_map_find(const struct k3_name_map *m, const void *items, struct k3_name name, uint64_t hash);

/* Adds item i under its name, for which room is reserved, unless there is one of that name: returns
 * that one, else i. */
uint32_t k3_name_map_add(struct k3_name_map *m, const void *items, uint32_t i, uint64_t hash);

/* Fetches the slot of a hash that will be added or looked for soon. */
void k3_name_map_prefetch(const struct k3_name_map *m, uint64_t hash);

/* An item of that hash, whatever its name, or K3_NAME_NONE.  hash_of: the hash of item i. */
uint32_t k3_name_map_find_hash(const struct k3_name_map *m, const void *items, uint64_t hash,
                               uint64_t (*hash_of)(const void *items, uint32_t i));

#endif
