#include "windows.h"
#include "input.h"
#include "load.h"
#include "message.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HELD_BYTES ((size_t)64 << 20) /* logits that are held at once */
#define PIECE 512                     /* ids fed at once: what an interruption waits for */

void windows_start(struct windows *w, const int32_t *ids, size_t count, size_t window, size_t stride, uint32_t vocab) {
    size_t rows = HELD_BYTES / sizeof(float) / vocab;
    *w = (struct windows){.ids = ids, .count = count, .window = window, .stride = stride};
    w->most = rows < 1 ? 1 : rows > PIECE ? PIECE : rows;
}

static size_t window_end(const struct windows *w) {
    return w->count - w->start < w->window ? w->count : w->start + w->window;
}

bool windows_next(struct windows *w, struct windows_piece *piece) {
    /* The last id of a window is not fed: nothing of what follows it is scored here. */
    bool reset = w->number == 0;
    if (!reset && w->at + 1 >= window_end(w)) {
        if (window_end(w) == w->count) return false;
        w->start += w->stride;
        w->at = w->start;
        reset = true;
    }
    w->number += reset;
    size_t first = w->start ? w->start + w->window - w->stride - 1 : 0; /* the first whose logits are scored */
    size_t last = window_end(w) - 1, scored = w->at >= first;
    size_t left = (scored ? last : first) - w->at, most = scored ? w->most : PIECE;
    *piece = (struct windows_piece){.reset = reset, .scored = scored, .from = w->at, .n = left < most ? left : most};
    w->at += piece->n;
    return true;
}

double log_sum_exp(const float *logits, size_t n) {
    float top = logits[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++) top = logits[i] > top ? logits[i] : top;
    for (size_t i = 0; i < n; i++) sum += exp((double)logits[i] - top);
    return top + log(sum);
}

void mean_add(struct mean *m, double x) {
    double was = m->mean;
    m->count++;
    m->sum += x;
    m->mean += (x - was) / m->count;
    m->squares += (x - was) * (x - m->mean);
}

double mean_error(const struct mean *m) {
    return m->count > 1 ? sqrt(m->squares / (m->count - 1) / m->count) : 0;
}

static int read_ids(struct windowed_text *t) {
    size_t n = strlen(t->file) + 2;
    char *list = malloc(n);
    if (!list) return fail("out of memory");
    list[0] = '@';
    memcpy(list + 1, t->file, n - 1);
    int code = input_ids(t->file, list, &t->ids, &t->count);
    free(list);
    return code;
}

static int read_text(struct windowed_text *t, const char *model) {
    k3_error err;
    k3_tokenizer *tokenizer = NULL;
    char *text = NULL;
    size_t length;
    int code = load_tokenizer(model, "without it only --ids can be used", &tokenizer);
    if (!code) code = input_file(t->file, &text, &length);
    if (!code && k3_tokenizer_encode(tokenizer, text, length, t->encode_flags, &t->ids, &t->count, &err))
        code = fail_library(&err);
    free(text);
    k3_tokenizer_close(tokenizer);
    return code;
}

int windowed_text_read(struct windowed_text *t, const char *model) {
    uint32_t vocab;
    if (!t->stride) t->stride = (t->window + 1) / 2;
    if (t->stride >= t->window)
        return fail_usage("--stride: it must be below the window, for an id needs another one before it");
    int code = load_vocab_size(model, &vocab);
    if (!code) code = t->as_ids ? read_ids(t) : read_text(t, model);
    if (!code && t->count < 2) code = fail("%s: at least two tokens are needed", t->file);
    return code ? code : input_check_ids(t->as_ids ? t->file : NULL, t->ids, t->count, vocab);
}
