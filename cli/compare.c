/* k3 compare: how far one way to run a model, or one checkpoint, is from another. */
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
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: k3 compare MODEL FILE [--a OPTIONS] [--b OPTIONS] [--b-model DIR] [OPTION]...\n"
    "\n"
    "Runs the text in FILE (- for standard input) through the model twice, as a and as b, and says how far\n"
    "b's predictions of the next token are from a's: Kullback-Leibler divergence KL(a || b) in nats, how\n"
    "often both hold the same token for the likeliest, and the perplexity of each.\n"
    "\n"
    "  --a OPTIONS       options of a in one word, such as \"--isa scalar --threads 1\"\n"
    "  --b OPTIONS       options of b: --threads, --memory, --isa and --precision\n"
    "  --b-model DIR     b is this checkpoint, which must have a vocabulary of the same size\n"
    HELP_WINDOWS
    HELP_JSON HELP_QUIET HELP_HELP;

enum { OPTION_A = OPTION_OWN, OPTION_B, OPTION_B_MODEL, OPTION_WINDOW, OPTION_STRIDE, OPTION_IDS, OPTION_SPECIAL };

static const struct option option_list[] = {
    {"a", required_argument, NULL, OPTION_A},
    {"b", required_argument, NULL, OPTION_B},
    {"b-model", required_argument, NULL, OPTION_B_MODEL},
    {"window", required_argument, NULL, OPTION_WINDOW},
    {"stride", required_argument, NULL, OPTION_STRIDE},
    {"ids", no_argument, NULL, OPTION_IDS},
    {"special", no_argument, NULL, OPTION_SPECIAL},
    OPTION_LIST_JSON,
    {"quiet", no_argument, NULL, OPTION_QUIET},
    OPTION_LIST_HELP,
    {0},
};

static const struct option side_options[] = {OPTION_LIST_THREADS, OPTION_LIST_MODEL, {0}};

/* a or b. */
struct side {
    const char *options; /* as given */
    char **words;        /* free() */
    struct common_options common;
    k3_model *model;
    k3_session *session;
    float *logits;
    struct mean nll;
};

struct compare {
    struct common_options common;
    struct windowed_text text;
    const char *b_model;
    struct side side[2];
    float *kl; /* one for each scored token */
    size_t scored, same_top;
    double seconds;
};

static int take(struct compare *c, int option) {
    switch (option) {
    case OPTION_A: c->side[0].options = optarg; return CLI_OK;
    case OPTION_B: c->side[1].options = optarg; return CLI_OK;
    case OPTION_B_MODEL: c->b_model = optarg; return CLI_OK;
    case OPTION_WINDOW: return number_uint("--window", optarg, 2, INT32_MAX, &c->text.window);
    case OPTION_STRIDE: return number_uint("--stride", optarg, 1, INT32_MAX, &c->text.stride);
    case OPTION_IDS: c->text.as_ids = true; return CLI_OK;
    default: c->text.encode_flags |= K3_ENCODE_SPECIAL; return CLI_OK;
    }
}

/* The options of one side; words[0] stands for the command. */
static int parse_side(struct side *s, const char *name, const char *model, bool quiet) {
    int n = 0, option, code = CLI_OK;
    char text[4096];
    int length = snprintf(text, sizeof text, "%s %s", name, s->options ? s->options : "");
    if (length < 0 || (size_t)length >= sizeof text) return fail_usage("%s: too long", name);
    code = words_split(name, text, &s->words, &n);
    if (code) return code;
    options_init(&s->common, name, help);
    while (!code && (option = options_next(&s->common, n, s->words, ":", side_options, &code)) != -1)
        if (option == OPTION_STOP) return code ? code : fail_usage("%s: --help is no option of a side", name);
    if (!code && optind < n) code = fail_usage("%s: \"%s\" is not an option", name, s->words[optind]);
    s->common.model = model;
    s->common.quiet |= quiet;
    return code;
}

static int parse(struct compare *c, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while (!code && (option = options_next(&c->common, argc, argv, ":", option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        code = take(c, option);
    }
    if (!code) code = options_model_file(&c->common, argc, argv, "FILE", &c->text.file);
    const char *model = c->common.model;
    if (!code) code = parse_side(&c->side[0], "--a", model, c->common.quiet);
    if (!code) code = parse_side(&c->side[1], "--b", c->b_model ? c->b_model : model, c->common.quiet);
    return code;
}

static int same_vocabulary(const struct compare *c) {
    uint32_t a, b;
    int code = load_vocab_size(c->common.model, &a);
    if (!code && c->b_model) {
        code = load_vocab_size(c->b_model, &b);
        if (!code && a != b)
            code = fail("%s: a vocabulary of %u, and %s has %u: only like ones can be compared", c->b_model, b,
                        c->common.model, a);
    }
    return code;
}

static int open_side(struct side *s, size_t rows) {
    k3_error err;
    int code = load_model(&s->common, &s->model, NULL);
    if (code) return code;
    if (k3_session_new(s->model, &s->session, &err)) return fail_library(&err);
    s->logits = malloc(rows * k3_model_vocab_size(s->model) * sizeof *s->logits);
    return s->logits ? CLI_OK : fail("out of memory for logits");
}

static int feed(struct side *s, const struct windows *w, const struct windows_piece *piece) {
    k3_error err;
    if (piece->reset) k3_session_reset(s->session);
    k3_status status =
        k3_session_feed(s->session, w->ids + piece->from, piece->n, piece->scored ? s->logits : NULL, &err);
    return status ? fail_library(&err) : CLI_OK;
}

static size_t top(const float *row, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* One token's predictions of the next, a and b [vocab]. */
static void score(struct compare *c, const float *a, const float *b, size_t vocab, int32_t next) {
    double la = log_sum_exp(a, vocab), lb = log_sum_exp(b, vocab), kl = 0;
    for (size_t i = 0; i < vocab; i++) {
        double p = (double)a[i] - la;
        kl += exp(p) * (p - ((double)b[i] - lb));
    }
    c->kl[c->scored++] = kl > 0 ? (float)kl : 0; /* below zero by rounding only */
    c->same_top += top(a, vocab) == top(b, vocab);
    mean_add(&c->side[0].nll, la - a[next]);
    mean_add(&c->side[1].nll, lb - b[next]);
}

static int feed_all(struct compare *c, struct windows *w) {
    struct windows_piece piece;
    struct progress bar;
    int code = CLI_OK;
    size_t vocab = k3_model_vocab_size(c->side[0].model);
    progress_start(&bar, "comparing", "tokens", c->common.quiet);
    while (!code && windows_next(w, &piece)) {
        progress_update(&bar, piece.from, w->count);
        for (int s = 0; !code && s < 2; s++) code = feed(&c->side[s], w, &piece);
        for (size_t i = 0; !code && piece.scored && i < piece.n; i++)
            score(c, c->side[0].logits + i * vocab, c->side[1].logits + i * vocab, vocab, w->ids[piece.from + i + 1]);
        if (!code && interrupted()) code = CLI_SIGNAL + interrupted();
    }
    progress_end(&bar);
    return code;
}

static int ascending(const void *a, const void *b) {
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct result {
    double kl_mean, kl_error, kl_99, kl_max, same_top, nll[2];
};

static struct result sum_up(struct compare *c) {
    struct mean kl = {0};
    for (size_t i = 0; i < c->scored; i++) mean_add(&kl, c->kl[i]);
    qsort(c->kl, c->scored, sizeof *c->kl, ascending);
    return (struct result){.kl_mean = kl.mean,
                           .kl_error = mean_error(&kl),
                           .kl_99 = c->kl[(size_t)((double)(c->scored - 1) * 0.99)],
                           .kl_max = c->kl[c->scored - 1],
                           .same_top = (double)c->same_top / (double)c->scored,
                           .nll = {c->side[0].nll.mean, c->side[1].nll.mean}};
}

static json_t *side_json(const struct side *s, double nll) {
    const char *model = s->common.model, *options = s->options ? s->options : "";
    return json_pack("{s:o, s:o, s:f, s:f}", "model", json_text(model, strlen(model)), "options",
                     json_text(options, strlen(options)), "nll", nll, "perplexity", exp(nll));
}

static int report(struct compare *c) {
    struct result r = sum_up(c);
    char text[512];
    if (c->common.json)
        return json_print(json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:f}", "scored", (json_int_t)c->scored,
                                    "kl_mean", r.kl_mean, "kl_error", r.kl_error, "kl_99", r.kl_99, "kl_max", r.kl_max,
                                    "same_top", r.same_top, "a", side_json(&c->side[0], r.nll[0]), "b",
                                    side_json(&c->side[1], r.nll[1]), "seconds", c->seconds));
    int n = snprintf(text, sizeof text,
                     "%zu tokens\n"
                     "KL(a || b)    mean %.3g +- %.2g, 99 %% %.3g, max %.3g nats\n"
                     "same likeliest token %.3f %%\n"
                     "perplexity    a %.4f, b %.4f (%+.4f %%)\n",
                     c->scored, r.kl_mean, r.kl_error, r.kl_99, r.kl_max, 100 * r.same_top, exp(r.nll[0]),
                     exp(r.nll[1]), 100 * expm1(r.nll[1] - r.nll[0]));
    return output_text(text, (size_t)n);
}

static int run(struct compare *c) {
    struct windows w;
    uint32_t vocab;
    int code = windowed_text_read(&c->text, c->common.model);
    if (!code) code = same_vocabulary(c);
    if (!code) code = load_vocab_size(c->common.model, &vocab);
    if (code) return code;
    interrupt_watch();
    windows_start(&w, c->text.ids, c->text.count, c->text.window, c->text.stride, vocab);
    c->kl = malloc(c->text.count * sizeof *c->kl);
    if (!c->kl) return fail("out of memory");
    for (int s = 0; !code && s < 2; s++) code = open_side(&c->side[s], w.most);
    double start = seconds();
    if (!code) code = feed_all(c, &w);
    c->seconds = seconds() - start;
    return code ? code : report(c);
}

static void clear(struct compare *c) {
    for (int s = 0; s < 2; s++) {
        free(c->side[s].logits);
        k3_session_free(c->side[s].session);
        k3_model_close(c->side[s].model);
        free(c->side[s].words);
    }
    free(c->kl);
    k3_free(c->text.ids);
}

int command_compare(int argc, char **argv) {
    struct compare c = {.text.window = 2048};
    bool stop = false;
    options_init(&c.common, "compare", help);
    int code = parse(&c, argc, argv, &stop);
    if (!code && !stop) code = run(&c);
    clear(&c);
    return code;
}
