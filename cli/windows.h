/* A text too long for one look, in windows that overlap.
 *
 * Window k holds the ids from k * stride on, `window` of them.  Of the first one every id but its first is scored; of
 * the others only what no window before has scored, so that each id counts once and sees at least window - stride
 * ids before it. */
#ifndef K3_CLI_WINDOWS_H
#define K3_CLI_WINDOWS_H

#include <k3/k3.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct windows {
    const int32_t *ids;
    size_t count, window, stride; /* stride < window */
    size_t most;                  /* scored ids of a piece: their logits are held at once */
    size_t start, at, number;     /* of the window at hand: its first id, the next id to feed; windows begun */
};

/* The next ids to feed. */
struct windows_piece {
    bool reset;  /* a new window: the session forgets first */
    bool scored; /* the logits of id from + i speak of id from + i + 1; else they are not needed */
    size_t from, n;
};

void windows_start(struct windows *w, const int32_t *ids, size_t count, size_t window, size_t stride, uint32_t vocab);
bool windows_next(struct windows *w, struct windows_piece *piece);

/* The log of the sum of exp(logits[i]); natural. */
double log_sum_exp(const float *logits, size_t n);

/* Adds up numbers: mean and standard error. */
struct mean {
    double count, sum, squares; /* squares of what differs from the mean so far (Welford) */
    double mean;
};
void mean_add(struct mean *m, double x);
double mean_error(const struct mean *m);

/* ---- the options and the text that `k3 perplexity` and `k3 compare` share */

struct windowed_text {
    uint64_t window, stride; /* stride 0: half the window */
    bool as_ids;             /* the file holds ids */
    unsigned encode_flags;
    const char *file;
    int32_t *ids; /* k3_free() */
    size_t count;
};

#define HELP_WINDOWS                                                                                                   \
    "  --window N        ids that are looked at together (default 2048)\n"                                             \
    "  --stride N        ids from one window's start to the next (default half a window)\n"                            \
    "  --ids             the file holds token ids, not text\n"                                                         \
    "  --special         a special token's spelling in the text becomes that token\n"

/* Reads the text and makes its ids; at least two. */
int windowed_text_read(struct windowed_text *t, const char *model);

#endif
