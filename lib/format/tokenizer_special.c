/* The 256 special slots behind the base tokens. */
#include "format/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static k3_status name_slot(struct k3_specials *s, unsigned slot, k3_error *err) {
    char spelling[40];
    snprintf(spelling, sizeof spelling, "<|reserved_token_%u|>", s->first + slot);
    if (!s->name[slot]) {
        s->name[slot] = strdup(spelling);
        if (!s->name[slot]) return k3_fail(err, K3_ERR_MEMORY, "no memory for special tokens");
    }
    s->length[slot] = (uint32_t)strlen(s->name[slot]);
    s->reserved[slot] = strcmp(s->name[slot], spelling) == 0 || strcmp(s->name[slot], "[PAD]") == 0;
    return K3_OK;
}

k3_status k3_specials_index(struct k3_specials *s, k3_error *err) {
    for (unsigned slot = 0; slot < K3_SPECIAL_SLOTS; slot++) {
        k3_status status = name_slot(s, slot, err);
        if (status != K3_OK) return status;
        unsigned at = slot; /* insertion sort: 256 of them, and qsort has no room for a context */
        for (; at && strcmp(s->name[s->sorted[at - 1]], s->name[slot]) > 0; at--) s->sorted[at] = s->sorted[at - 1];
        s->sorted[at] = (uint16_t)slot;
        if (at && strcmp(s->name[s->sorted[at - 1]], s->name[slot]) == 0)
            return k3_fail(err, K3_ERR_FORMAT, "special tokens %u and %u have the same spelling \"%.100s\"",
                           s->first + s->sorted[at - 1], s->first + slot, s->name[slot]);
    }
    for (unsigned c = 0, i = 0; c <= 256; c++) {
        while (i < K3_SPECIAL_SLOTS && (unsigned char)s->name[s->sorted[i]][0] < c) i++;
        s->lead[c] = (uint16_t)i;
    }
    return K3_OK;
}

void k3_specials_clear(struct k3_specials *s) {
    for (unsigned slot = 0; slot < K3_SPECIAL_SLOTS; slot++) free(s->name[slot]);
    memset(s, 0, sizeof *s);
}

/* The first of sorted[low, high), which agree before byte `depth`, whose byte there is at least c. */
static unsigned first_from(const struct k3_specials *s, unsigned low, unsigned high, size_t depth, unsigned c) {
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if ((unsigned char)s->name[s->sorted[middle]][depth] < c) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Narrows the sorted spellings byte by byte: an adversary's text of half spellings stays cheap. */
int k3_specials_match(const struct k3_specials *s, const char *text, size_t n) {
    if (n == 0) return -1;
    unsigned c = (unsigned char)text[0], low = s->lead[c], high = s->lead[c + 1];
    int longest = -1;
    for (size_t depth = 1; low < high; depth++) {
        if (s->length[s->sorted[low]] == depth) longest = s->sorted[low++]; /* sorts before what it starts */
        if (depth == n) break;
        c = (unsigned char)text[depth];
        low = first_from(s, low, high, depth, c);
        high = first_from(s, low, high, depth, c + 1);
    }
    return longest;
}

int k3_specials_find(const struct k3_specials *s, const char *spelling, size_t n) {
    int slot = k3_specials_match(s, spelling, n);
    return slot >= 0 && s->length[slot] == n ? slot : -1;
}
