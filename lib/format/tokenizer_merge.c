/* Byte pair encoding by rank.
 *
 * The rank of a pair is the rank of its joined bytes, so merging asks for the ranks of many overlapping
 * substrings.  The table's hash is a polynomial of the bytes: with the hashes of all prefixes of a piece,
 * that of any substring costs one multiplication, however long it is. */
#include "format/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct k3_slot {
    uint32_t tag;  /* upper half of the mixed hash */
    uint32_t rank; /* K3_NO_TOKEN: empty */
};

#define HASH_BASE UINT64_C(0x9e3779b97f4a7c15) /* any odd number whose powers do not repeat soon */

/* Pieces up to here are merged by looking at all pairs every time: no heap is quicker for so few. */
#define SCAN_BYTES 64

static uint64_t hash_byte(uint64_t hash, char c) {
    return hash * HASH_BASE + (unsigned char)c + 1;
}

static uint64_t hash_bytes(const char *s, size_t n) {
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) hash = hash_byte(hash, s[i]);
    return hash;
}

/* The low bits of a polynomial modulo 2^64 depend on the low bits of the bytes alone: stir. */
static uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* The slot that holds the string, or the empty one where it would go. */
static struct k3_slot *find_slot(const struct k3_vocab *v, const char *s, size_t n, uint64_t hash) {
    uint64_t mixed = mix(hash);
    uint32_t tag = (uint32_t)(mixed >> 32);
    for (uint32_t i = (uint32_t)mixed & v->slot_mask;; i = (i + 1) & v->slot_mask) {
        struct k3_slot *slot = &v->slots[i];
        if (slot->rank == K3_NO_TOKEN) return slot;
        if (slot->tag != tag) continue;
        const struct k3_token *token = &v->tokens[slot->rank];
        if (token->length == n && memcmp(v->bytes + token->start, s, n) == 0) return slot;
    }
}

uint32_t k3_vocab_find(const struct k3_vocab *v, const char *s, size_t n) {
    if (n == 0 || n > v->longest) return K3_NO_TOKEN;
    return find_slot(v, s, n, hash_bytes(s, n))->rank;
}

static k3_status insert_all(struct k3_vocab *v, uint32_t *culprit, k3_error *err) {
    for (uint32_t rank = 0; rank < v->count; rank++) {
        const struct k3_token *token = &v->tokens[rank];
        const char *s = v->bytes + token->start;
        uint64_t hash = hash_bytes(s, token->length);
        struct k3_slot *slot = find_slot(v, s, token->length, hash);
        if (slot->rank != K3_NO_TOKEN) {
            *culprit = rank;
            return k3_fail(err, K3_ERR_FORMAT, "rank %u has the bytes of rank %u", rank, slot->rank);
        }
        *slot = (struct k3_slot){(uint32_t)(mix(hash) >> 32), rank};
        if (token->length == 1) v->byte_rank[(unsigned char)s[0]] = rank;
        if (token->length == 2) v->pair_rank[(unsigned)(unsigned char)s[0] << 8 | (unsigned char)s[1]] = rank;
    }
    return K3_OK;
}

k3_status k3_vocab_index(struct k3_vocab *v, uint32_t *culprit, k3_error *err) {
    *culprit = K3_NO_TOKEN;
    size_t slots = 512;
    while (slots < (size_t)v->count * 2) slots *= 2;
    v->longest = 0;
    for (uint32_t rank = 0; rank < v->count; rank++)
        if (v->tokens[rank].length > v->longest) v->longest = v->tokens[rank].length;
    v->slot_mask = (uint32_t)(slots - 1);
    v->slots = malloc(slots * sizeof *v->slots);
    v->pair_rank = malloc(65536 * sizeof *v->pair_rank);
    v->power = k3_array((size_t)v->longest + 1, sizeof *v->power);
    if (!v->slots || !v->pair_rank || !v->power) return k3_fail(err, K3_ERR_MEMORY, "no memory for the vocabulary");
    memset(v->slots, 0xff, slots * sizeof *v->slots);
    memset(v->pair_rank, 0xff, 65536 * sizeof *v->pair_rank);
    memset(v->byte_rank, 0xff, sizeof v->byte_rank);
    v->power[0] = 1;
    for (uint32_t i = 1; i <= v->longest; i++) v->power[i] = v->power[i - 1] * HASH_BASE;

    k3_status status = insert_all(v, culprit, err);
    for (unsigned byte = 0; status == K3_OK && byte < 256; byte++)
        if (v->byte_rank[byte] == K3_NO_TOKEN)
            status = k3_fail(err, K3_ERR_FORMAT, "no token for the single byte 0x%02x", byte);
    return status;
}

void k3_vocab_clear(struct k3_vocab *v) {
    free(v->bytes);
    free(v->tokens);
    free(v->pair_rank);
    free(v->slots);
    free(v->power);
    memset(v, 0, sizeof *v);
}

/* A piece and the hashes of its prefixes. */
struct piece {
    const struct k3_vocab *vocab;
    const char *s;
    const uint64_t *prefix; /* [n + 1] */
};

static uint32_t rank_of(const struct piece *p, size_t begin, size_t end) {
    const struct k3_vocab *v = p->vocab;
    size_t n = end - begin;
    if (n > v->longest) return K3_NO_TOKEN;
    if (n == 2) return v->pair_rank[(unsigned)(unsigned char)p->s[begin] << 8 | (unsigned char)p->s[begin + 1]];
    uint64_t hash = p->prefix[end] - p->prefix[begin] * v->power[n];
    return find_slot(v, p->s + begin, n, hash)->rank;
}

static size_t merge_by_scan(const struct piece *p, size_t n, int32_t *ids) {
    uint32_t pair[SCAN_BYTES];    /* rank of part i joined with part i + 1 */
    uint8_t start[SCAN_BYTES + 1];
    size_t parts = n;
    for (size_t i = 0; i < n; i++) {
        start[i] = (uint8_t)i;
        ids[i] = (int32_t)p->vocab->byte_rank[(unsigned char)p->s[i]];
        pair[i] = i + 1 < n ? rank_of(p, i, i + 2) : K3_NO_TOKEN;
    }
    start[n] = (uint8_t)n;
    while (parts > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < parts; i++)
            if (pair[i] < pair[best]) best = i;
        if (pair[best] == K3_NO_TOKEN) break;
        ids[best] = (int32_t)pair[best];
        parts--;
        size_t behind = parts - (best + 1); /* parts after the merged one */
        memmove(&start[best + 1], &start[best + 2], (behind + 1) * sizeof *start);
        memmove(&ids[best + 1], &ids[best + 2], behind * sizeof *ids);
        memmove(&pair[best + 1], &pair[best + 2], behind * sizeof *pair);
        pair[best] = behind ? rank_of(p, start[best], start[best + 2]) : K3_NO_TOKEN;
        if (best) pair[best - 1] = rank_of(p, start[best - 1], start[best + 1]);
    }
    return parts;
}

/* Long pieces: parts in a linked list, their pairs in a heap.  An entry is rank << 32 | start, so that the
 * lowest rank comes first and the leftmost among equals; it is stale, and skipped, once the pair that
 * starts there has another rank. */
struct list {
    struct piece piece;
    uint32_t n;
    uint32_t *next, *previous; /* by start of a part; next of the last is n */
    uint32_t *pair, *rank;     /* rank of the part joined with its next one; of the part itself */
    uint64_t *heap;
    size_t heap_size;
};

static void sift_down(uint64_t *heap, size_t size, size_t i) {
    uint64_t moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= moving) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

static void push(struct list *l, uint64_t entry) {
    size_t i = l->heap_size++;
    for (; i && l->heap[(i - 1) / 2] > entry; i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = entry;
}

static void update_pair(struct list *l, uint32_t start) {
    uint32_t middle = l->next[start];
    l->pair[start] = middle == l->n ? K3_NO_TOKEN : rank_of(&l->piece, start, l->next[middle]);
    if (l->pair[start] != K3_NO_TOKEN) push(l, (uint64_t)l->pair[start] << 32 | start);
}

static void list_init(struct list *l) {
    for (uint32_t i = 0; i < l->n; i++) {
        l->next[i] = i + 1;
        l->previous[i] = i - 1; /* of 0: never read */
        l->rank[i] = l->piece.vocab->byte_rank[(unsigned char)l->piece.s[i]];
        l->pair[i] = i + 1 < l->n ? rank_of(&l->piece, i, i + 2) : K3_NO_TOKEN;
        if (l->pair[i] != K3_NO_TOKEN) l->heap[l->heap_size++] = (uint64_t)l->pair[i] << 32 | i;
    }
    for (size_t i = l->heap_size / 2; i-- > 0;) sift_down(l->heap, l->heap_size, i);
}

static size_t merge_by_heap(struct list *l, int32_t *ids) {
    list_init(l);
    while (l->heap_size) {
        uint32_t start = (uint32_t)l->heap[0], rank = (uint32_t)(l->heap[0] >> 32);
        l->heap[0] = l->heap[--l->heap_size];
        if (l->heap_size) sift_down(l->heap, l->heap_size, 0);
        if (l->pair[start] != rank) continue;
        uint32_t gone = l->next[start], after = l->next[gone];
        l->rank[start] = rank;
        l->next[start] = after;
        l->pair[gone] = K3_NO_TOKEN;
        if (after < l->n) l->previous[after] = start;
        update_pair(l, start);
        if (start) update_pair(l, l->previous[start]);
    }
    size_t parts = 0;
    for (uint32_t at = 0; at < l->n; at = l->next[at]) ids[parts++] = (int32_t)l->rank[at];
    return parts;
}

static bool grow_room(struct k3_merge_room *room, size_t bytes) {
    if (bytes <= room->bytes) return true;
    size_t target = bytes + bytes / 2;
    void *memory = malloc(target);
    if (!memory) return false;
    free(room->memory);
    room->memory = memory;
    room->bytes = target;
    return true;
}

static size_t merge_long(const struct k3_vocab *v, const char *s, size_t n, struct k3_merge_room *room, int32_t *ids) {
    /* A merge takes one entry from the heap and adds two at the most, and there are fewer than n merges. */
    const size_t per_byte = 3 * sizeof(uint64_t) + 4 * sizeof(uint32_t);
    if (n >= UINT32_MAX / per_byte || !grow_room(room, (n + 1) * per_byte)) return SIZE_MAX;
    uint64_t *prefix = room->memory, *heap = prefix + n + 1;
    uint32_t *words = (uint32_t *)(heap + 2 * n);
    prefix[0] = 0;
    for (size_t i = 0; i < n; i++) prefix[i + 1] = hash_byte(prefix[i], s[i]);
    if (n <= v->longest) {
        uint32_t whole = find_slot(v, s, n, prefix[n])->rank;
        ids[0] = (int32_t)whole;
        if (whole != K3_NO_TOKEN) return 1;
    }
    struct list list = {.piece = {v, s, prefix}, .n = (uint32_t)n, .next = words, .previous = words + n,
                        .pair = words + 2 * n, .rank = words + 3 * n, .heap = heap};
    return merge_by_heap(&list, ids);
}

size_t k3_vocab_merge(const struct k3_vocab *v, const char *s, size_t n, struct k3_merge_room *room, int32_t *ids) {
    if (n == 0) return 0;
    if (n == 1) {
        ids[0] = (int32_t)v->byte_rank[(unsigned char)s[0]];
        return 1;
    }
    if (n > SCAN_BYTES) return merge_long(v, s, n, room, ids);
    uint64_t prefix[SCAN_BYTES + 1];
    prefix[0] = 0;
    for (size_t i = 0; i < n; i++) prefix[i + 1] = hash_byte(prefix[i], s[i]);
    struct piece piece = {v, s, prefix};
    uint32_t whole = rank_of(&piece, 0, n);
    if (whole != K3_NO_TOKEN) {
        ids[0] = (int32_t)whole;
        return 1;
    }
    return merge_by_scan(&piece, n, ids);
}
