#include "generate.h"
#include "clock.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ids of the prompt that are fed at once: an interruption waits for the end of a piece. */
#define PIECE 512

const char *stop_name(enum stop stop) {
    static const char *const names[] = {"length", "eos", "interrupted", "error"};
    return names[stop];
}

static void stop_with(struct generation *g, enum stop stop) {
    g->stop = stop;
}

static void stop_without_memory(struct generation *g) {
    g->err.status = K3_ERR_MEMORY;
    snprintf(g->err.text, sizeof g->err.text, "out of memory for the generated text");
    stop_with(g, STOP_ERROR);
}

/* Makes room for `more` elements behind the `used` first ones of *array. */
static bool reserve(void **array, size_t *room, size_t used, size_t more, size_t element) {
    if (more <= *room - used) return true;
    size_t wanted = (used + more) * 2 + 64, bytes;
    if (__builtin_mul_overflow(wanted, element, &bytes)) return false;
    void *grown = realloc(*array, bytes);
    if (!grown) return false;
    *array = grown;
    *room = wanted;
    return true;
}

/* Hands text on; false: stop is set. */
static bool emit(struct generation *g, const char *text, size_t length) {
    if (length == 0) return true;
    if (g->stream) {
        if (output_text(text, length) == 0 && output_flush() == 0) return true;
        g->output_failed = true;
        stop_with(g, STOP_ERROR);
        return false;
    }
    void *room = g->text;
    if (!reserve(&room, &g->text_room, g->text_length, length, 1)) {
        stop_without_memory(g);
        return false;
    }
    g->text = room;
    memcpy(g->text + g->text_length, text, length);
    g->text_length += length;
    return true;
}

static bool emit_event(struct generation *g, k3_status status, const k3_reply_event *event) {
    if (!status && !(g->stream && reply_show(g->view, g->reply, event))) return true;
    g->output_failed = !status;
    stop_with(g, STOP_ERROR);
    return false;
}

static bool emit_id(struct generation *g, int32_t id) {
    const char *text;
    size_t length;
    k3_reply_event event;
    if (g->reply) return emit_event(g, k3_reply_push(g->reply, id, &event, &g->err), &event);
    if (g->decoder) {
        if (k3_decoder_push(g->decoder, id, &text, &length, &g->err)) {
            stop_with(g, STOP_ERROR);
            return false;
        }
        return emit(g, text, length);
    }
    char number[16];
    if (!g->stream) return true;
    int n = snprintf(number, sizeof number, "%s%" PRId32, g->count > 1 ? " " : "", id);
    return emit(g, number, (size_t)n);
}

/* What the decoder still holds back; a list of ids ends its line. */
static void emit_rest(struct generation *g) {
    const char *text;
    size_t length;
    k3_reply_event event;
    if (g->output_failed) return;
    if (g->reply) {
        if (!emit_event(g, k3_reply_finish(g->reply, &event, &g->err), &event) || !g->stream) return;
        g->output_failed = reply_show_end(g->view);
    } else if (g->decoder) {
        if (k3_decoder_finish(g->decoder, &text, &length, NULL) == K3_OK) emit(g, text, length);
    } else if (g->stream && g->count) {
        emit(g, "\n", 1);
    }
}

static bool feed_prompt(struct generation *g) {
    struct progress bar;
    double start = seconds();
    progress_start(&bar, "prompt", "tokens", g->quiet || g->prompt_count <= PIECE);
    bool ok = true;
    while (ok && g->prompt_fed < g->prompt_count) {
        size_t left = g->prompt_count - g->prompt_fed, n = left < PIECE ? left : PIECE;
        progress_update(&bar, g->prompt_fed, g->prompt_count);
        if (interrupted()) {
            stop_with(g, STOP_INTERRUPTED);
            ok = false;
        } else if (k3_session_feed(g->session, g->prompt + g->prompt_fed, n, NULL, &g->err)) {
            stop_with(g, STOP_ERROR);
            ok = false;
        } else {
            g->prompt_fed += n;
        }
    }
    progress_end(&bar);
    g->prompt_seconds = seconds() - start;
    return ok;
}

static bool is_eos(const struct generation *g, int32_t id) {
    for (size_t i = 0; i < g->eos_count; i++)
        if (g->eos[i] == id) return true;
    return false;
}

/* Picks an id from the session's logits and hands it on; false: stop is set. */
static bool pick(struct generation *g, int32_t *id) {
    if (k3_sampler_pick(g->sampler, k3_session_logits(g->session), g->vocab, id, &g->err)) {
        stop_with(g, STOP_ERROR);
        return false;
    }
    if (is_eos(g, *id)) {
        g->stop_id = *id;
        stop_with(g, STOP_EOS);
        return false;
    }
    void *room = g->ids;
    if (!reserve(&room, &g->room, g->count, 1, sizeof *g->ids)) {
        stop_without_memory(g);
        return false;
    }
    g->ids = room;
    g->ids[g->count++] = *id;
    return emit_id(g, *id);
}

/* The last id is not fed: nothing would be read from its logits. */
static void decode(struct generation *g) {
    int32_t id;
    double start = seconds();
    while (g->count < g->limit) {
        if (interrupted()) {
            stop_with(g, STOP_INTERRUPTED);
            break;
        }
        if (!pick(g, &id) || g->count == g->limit) break;
        if (k3_session_feed(g->session, &id, 1, NULL, &g->err)) {
            stop_with(g, STOP_ERROR);
            break;
        }
        g->decode_steps++;
    }
    g->decode_seconds = seconds() - start;
}

void generate(struct generation *g) {
    stop_with(g, STOP_LENGTH);
    if (!feed_prompt(g)) return;
    decode(g);
    emit_rest(g);
}

void generation_clear(struct generation *g) {
    free(g->ids);
    free(g->text);
    g->ids = NULL;
    g->text = NULL;
}
