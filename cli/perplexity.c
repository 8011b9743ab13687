/* k3 perplexity: how well a model predicts a text. */
#include "clock.h"
#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "load.h"
#include "message.h"
#include "numbers.h"
#include "output.h"
#include "progress.h"
#include "windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: k3 perplexity MODEL FILE [OPTION]...\n"
    "\n"
    "Says how well the model predicts the text in FILE (- for standard input): the mean negative\n"
    "log-likelihood of a token in nats, and the perplexity, which is its exponential.\n"
    "\n"
    HELP_WINDOWS
    HELP_THREADS HELP_MODEL HELP_JSON HELP_QUIET HELP_HELP
    "\n"
    "Each token but the first is scored once; it sees at least window - stride tokens before it, as far\n"
    "as there are so many.\n";

enum { OPTION_WINDOW = OPTION_OWN, OPTION_STRIDE, OPTION_IDS, OPTION_SPECIAL };

static const struct option option_list[] = {
    {"window", required_argument, NULL, OPTION_WINDOW},
    {"stride", required_argument, NULL, OPTION_STRIDE},
    {"ids", no_argument, NULL, OPTION_IDS},
    {"special", no_argument, NULL, OPTION_SPECIAL},
    OPTION_LIST_THREADS,
    OPTION_LIST_MODEL,
    OPTION_LIST_JSON,
    OPTION_LIST_HELP,
    {0},
};

struct perplexity {
    struct common_options common;
    struct windowed_text text;
    k3_model *model;
    k3_session *session;
    float *logits;
    struct mean nll;
    size_t windows;
    double seconds;
};

static int parse(struct perplexity *p, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while (!code && (option = options_next(&p->common, argc, argv, ":", option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        if (option == OPTION_WINDOW) code = number_uint("--window", optarg, 2, INT32_MAX, &p->text.window);
        if (option == OPTION_STRIDE) code = number_uint("--stride", optarg, 1, INT32_MAX, &p->text.stride);
        if (option == OPTION_IDS) p->text.as_ids = true;
        if (option == OPTION_SPECIAL) p->text.encode_flags |= K3_ENCODE_SPECIAL;
    }
    return code ? code : options_model_file(&p->common, argc, argv, "FILE", &p->text.file);
}

static void score(struct perplexity *p, const struct windows_piece *piece, size_t vocab) {
    for (size_t i = 0; i < piece->n; i++) {
        const float *row = p->logits + i * vocab;
        mean_add(&p->nll, log_sum_exp(row, vocab) - row[p->text.ids[piece->from + i + 1]]);
    }
}

static int feed_all(struct perplexity *p) {
    k3_error err;
    struct windows w;
    struct windows_piece piece;
    struct progress bar;
    int code = CLI_OK;
    uint32_t vocab = k3_model_vocab_size(p->model);
    windows_start(&w, p->text.ids, p->text.count, p->text.window, p->text.stride, vocab);
    p->logits = malloc(w.most * vocab * sizeof *p->logits);
    if (!p->logits) return fail("out of memory for logits");
    progress_start(&bar, "scoring", "tokens", p->common.quiet);
    while (!code && windows_next(&w, &piece)) {
        progress_update(&bar, piece.from, p->text.count);
        if (piece.reset) k3_session_reset(p->session);
        if (k3_session_feed(p->session, p->text.ids + piece.from, piece.n, piece.scored ? p->logits : NULL, &err))
            code = fail_library(&err);
        else if (piece.scored) score(p, &piece, vocab);
        if (!code && interrupted()) code = CLI_SIGNAL + interrupted();
    }
    progress_end(&bar);
    p->windows = w.number;
    return code;
}

static json_t *make_json(const struct perplexity *p) {
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s, s:i, s:f}", "model",
                     json_text(p->common.model, strlen(p->common.model)), "file",
                     json_text(p->text.file, strlen(p->text.file)), "tokens", (json_int_t)p->text.count, "scored",
                     (json_int_t)p->nll.count, "windows", (json_int_t)p->windows, "window", (json_int_t)p->text.window,
                     "stride", (json_int_t)p->text.stride, "nll", p->nll.mean, "nll_error", mean_error(&p->nll),
                     "perplexity", exp(p->nll.mean), "isa", k3_model_isa(p->model), "threads",
                     k3_model_threads(p->model), "seconds", p->seconds);
}

static int report(const struct perplexity *p) {
    char line[256];
    if (p->common.json) return json_print(make_json(p));
    double low = exp(p->nll.mean - mean_error(&p->nll)), high = exp(p->nll.mean + mean_error(&p->nll));
    int n = snprintf(line, sizeof line,
                     "%.0f tokens in %zu windows\n"
                     "nll        %.5f +- %.5f nats a token\n"
                     "perplexity %.4f (%.4f to %.4f)\n",
                     p->nll.count, p->windows, p->nll.mean, mean_error(&p->nll), exp(p->nll.mean), low, high);
    return output_text(line, (size_t)n);
}

static int run(struct perplexity *p) {
    k3_error err;
    int code = windowed_text_read(&p->text, p->common.model);
    if (code) return code;
    interrupt_watch();
    code = load_model(&p->common, &p->model, NULL);
    if (!code && k3_session_new(p->model, &p->session, &err)) code = fail_library(&err);
    double start = seconds();
    if (!code) code = feed_all(p);
    p->seconds = seconds() - start;
    return code ? code : report(p);
}

int command_perplexity(int argc, char **argv) {
    struct perplexity p = {.text.window = 2048};
    bool stop = false;
    options_init(&p.common, "perplexity", help);
    int code = parse(&p, argc, argv, &stop);
    if (!code && !stop) code = run(&p);
    free(p.logits);
    k3_free(p.text.ids);
    k3_session_free(p.session);
    k3_model_close(p.model);
    return code;
}
