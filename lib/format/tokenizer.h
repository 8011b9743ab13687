/* The tokenizer's inside: the vocabulary, the cutting of text into pieces, the merging of a piece's
 * bytes, the special tokens.  Facts: spec/formats.md. */
#ifndef K3_FORMAT_TOKENIZER_H
#define K3_FORMAT_TOKENIZER_H

#include <k3/k3.h>

#define K3_SPECIAL_SLOTS 256     /* special ids follow the base tokens */
#define K3_NO_TOKEN UINT32_MAX
#define K3_TOKEN_MAX_BYTES 65535 /* of one base token; the released vocabulary's longest has 256 */

/* ---- vocabulary: byte strings and their ranks (tokenizer_merge.c) ---- */

struct k3_token {
    uint32_t start, length; /* in `bytes` */
};

struct k3_vocab {
    uint32_t count;          /* base tokens: ranks, and ids, are 0 .. count-1 */
    uint32_t longest;        /* bytes */
    char *bytes;             /* all tokens' bytes */
    struct k3_token *tokens; /* [count], by rank */
    uint32_t byte_rank[256]; /* of the single bytes */
    uint32_t *pair_rank;     /* [65536], of the two-byte strings, first byte high; K3_NO_TOKEN: none */
    struct k3_slot *slots;   /* hash table over the byte strings, open addressing */
    uint32_t slot_mask;
    uint64_t *power;         /* [longest + 1], of the hash's base */
};

/* Fills the tables from count, bytes and tokens.  Errors: K3_ERR_MEMORY; K3_ERR_FORMAT (a duplicate
 * string, whose rank *culprit then is, or a missing single byte; the text has no file name yet). */
k3_status k3_vocab_index(struct k3_vocab *v, uint32_t *culprit, k3_error *err);
void k3_vocab_clear(struct k3_vocab *v);

/* The rank of a byte string, or K3_NO_TOKEN. */
uint32_t k3_vocab_find(const struct k3_vocab *v, const char *s, size_t n);

/* What merging reuses from piece to piece. */
struct k3_merge_room {
    void *memory;
    size_t bytes;
};

/* Merges the bytes of one piece: always the adjacent pair whose joined bytes have the lowest rank, the
 * leftmost of equals; a piece that is a token is that token.  ids: room for n; returns how many were
 * written, SIZE_MAX without memory. */
size_t k3_vocab_merge(const struct k3_vocab *v, const char *s, size_t n, struct k3_merge_room *room, int32_t *ids);

/* ---- cutting (tokenizer_pieces.c) ---- */

/* The two caps of the original; they change the ids of extreme inputs and are part of the format. */
struct k3_caps {
    size_t slice; /* characters after which a text is cut */
    size_t run;   /* characters of one kind, blank or not, after which a slice is cut */
};
extern const struct k3_caps k3_caps_released;

/* The length in bytes of the part that starts at *at in valid UTF-8, and moves *at behind it; 0 at the
 * end.  *slice_left: characters left of the slice; start with 0. */
size_t k3_caps_next(const struct k3_caps *caps, const char *text, size_t length, size_t *at, size_t *slice_left);

/* The compiled pattern; may be used by several threads. */
struct k3_pattern;
k3_status k3_pattern_new(bool jit, struct k3_pattern **out, k3_error *err);
void k3_pattern_free(struct k3_pattern *p);
bool k3_pattern_jitted(const struct k3_pattern *p);

/* One thread's place for matches. */
struct k3_match;
struct k3_match *k3_match_new(const struct k3_pattern *p);
void k3_match_free(struct k3_match *m);

/* The length in bytes of the first piece of n > 0 bytes of valid UTF-8. */
k3_status k3_pattern_first(const struct k3_pattern *p, struct k3_match *m, const char *text, size_t n, size_t *piece,
                           k3_error *err);

/* ---- special tokens (tokenizer_special.c) ---- */

struct k3_specials {
    uint32_t first;                             /* id of slot 0 */
    char *name[K3_SPECIAL_SLOTS];               /* spellings, terminated */
    uint32_t length[K3_SPECIAL_SLOTS];          /* bytes */
    bool reserved[K3_SPECIAL_SLOTS];            /* nothing that a model should say */
    uint16_t sorted[K3_SPECIAL_SLOTS];          /* slots in the order of their spellings */
    uint16_t lead[257];                         /* where the spellings of a first byte start in `sorted` */
};

/* Gives the unnamed slots their spelling and sorts.  Errors: K3_ERR_MEMORY; K3_ERR_FORMAT (two alike). */
k3_status k3_specials_index(struct k3_specials *s, k3_error *err);
void k3_specials_clear(struct k3_specials *s);

/* The slot of the longest spelling that starts at text, or -1. */
int k3_specials_match(const struct k3_specials *s, const char *text, size_t n);

/* The slot of exactly this spelling, or -1. */
int k3_specials_find(const struct k3_specials *s, const char *spelling, size_t n);

/* ---- files (tokenizer_file.c) ---- */

/* `name` goes into messages.  On failure *v and *s are cleared. */
k3_status k3_vocab_parse(const char *name, const char *data, size_t n, struct k3_vocab *v, k3_error *err);
k3_status k3_specials_parse(const char *name, const char *json, size_t n, struct k3_specials *s, k3_error *err);

/* ---- the whole (tokenizer.c) ---- */

struct k3_tokenizer {
    struct k3_vocab vocab;
    struct k3_specials specials;
    struct k3_pattern *pattern;
};

/* A tokenizer from the bytes of its two files; config NULL: no names. */
k3_status k3_tokenizer_from_memory(const char *model, size_t model_bytes, const char *config, size_t config_bytes,
                                   k3_tokenizer **out, k3_error *err);

/* k3_tokenizer_encode with other caps. */
k3_status k3_tokenizer_encode_capped(const k3_tokenizer *t, const struct k3_caps *caps, const char *text, size_t length,
                                     unsigned flags, int32_t **ids, size_t *n, k3_error *err);

#endif
