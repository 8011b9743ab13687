/* k3 bench: how fast this machine runs a checkpoint, beside what its memory allows. */
#include "bandwidth.h"
#include "clock.h"
#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "message.h"
#include "numbers.h"
#include "options.h"
#include "output.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: k3 bench MODEL [OPTION]...\n"
    "\n"
    "Measures loading, prompt and decode speed, beside the speed at which the same threads read memory in\n"
    "the same run, and the share of it that decoding reaches.\n"
    "\n"
    "  --prompt N        tokens of the prompt (default 512)\n"
    "  --decode N        tokens decoded one by one after it (default 64)\n"
    "  --repeat N        repetitions; the table has medians, lowest and highest (default 5)\n"
    "  --threads LIST    numbers of threads, such as 1,2,4; the model is opened for each\n"
    HELP_MODEL HELP_JSON HELP_QUIET HELP_HELP;

enum { OPTION_PROMPT = OPTION_OWN, OPTION_DECODE, OPTION_REPEAT, OPTION_THREAD_LIST };

static const struct option option_list[] = {
    {"prompt", required_argument, NULL, OPTION_PROMPT},
    {"decode", required_argument, NULL, OPTION_DECODE},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"threads", required_argument, NULL, OPTION_THREAD_LIST},
    OPTION_LIST_MODEL,
    OPTION_LIST_JSON,
    OPTION_LIST_HELP,
    {0},
};

struct spread {
    double median, least, most;
};

/* What was measured with one number of threads. */
struct row {
    int threads;
    double load_seconds;
    struct spread prompt, decode; /* tokens a second */
    struct spread read;           /* bytes a second */
    double share;                 /* of the read bandwidth that decoding reaches */
};

struct bench {
    struct common_options common;
    uint64_t prompt, decode, repeat;
    uint64_t *threads; /* [rows]; NULL: one row with the default */
    size_t rows;
    struct row *row;
    int32_t *ids;     /* [prompt + decode] */
    double *measured; /* [3, repeat]: prompt, decode, read */
    struct bandwidth bandwidth;
    uint64_t token_bytes;
    char isa[32];
};

static int parse(struct bench *b, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while (!code && (option = options_next(&b->common, argc, argv, ":", option_list, &code)) != -1) {
        switch (option) {
        case OPTION_STOP: *stop = true; return code;
        case OPTION_PROMPT: code = number_uint("--prompt", optarg, 1, 10000000, &b->prompt); break;
        case OPTION_DECODE: code = number_uint("--decode", optarg, 1, 10000000, &b->decode); break;
        case OPTION_REPEAT: code = number_uint("--repeat", optarg, 1, 10000, &b->repeat); break;
        case OPTION_THREAD_LIST:
            free(b->threads);
            b->threads = NULL;
            code = number_list("--threads", optarg, 1, 4096, &b->threads, &b->rows);
            break;
        }
    }
    return code ? code : options_model(&b->common, argc, argv);
}

/* Ids of no meaning, spread over the vocabulary, the same in every run: a generator of Knuth's. */
static void make_ids(int32_t *ids, size_t n, uint32_t vocab) {
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((state >> 33) % vocab);
    }
}

/* Looks at the checkpoint before anything long starts. */
static int prepare(struct bench *b) {
    k3_error err;
    k3_checkpoint *checkpoint;
    k3_checkpoint_info info = {.size = sizeof info};
    if (k3_checkpoint_open(b->common.model, &checkpoint, &err)) return fail_library(&err);
    k3_checkpoint_describe(checkpoint, &info);
    k3_checkpoint_close(checkpoint);
    b->token_bytes = info.token_bytes;
    if (!b->threads) b->rows = 1;
    b->row = calloc(b->rows, sizeof *b->row);
    b->ids = calloc(b->prompt + b->decode, sizeof *b->ids);
    b->measured = calloc(3 * b->repeat, sizeof *b->measured);
    if (!b->row || !b->ids || !b->measured) return fail("out of memory");
    make_ids(b->ids, b->prompt + b->decode, info.vocab_size);
    return bandwidth_open(&b->bandwidth);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_size);
    double median = n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
    return (struct spread){.median = median, .least = values[0], .most = values[n - 1]};
}

static bool loading(void *user, uint64_t done, uint64_t total) {
    progress_update(user, done, total);
    return !interrupted();
}

static int load(struct bench *b, int threads, k3_model **model, double *load_seconds) {
    k3_error err;
    struct progress bar;
    k3_model_options options = b->common.options;
    double start = seconds();
    progress_start(&bar, "loading", NULL, b->common.quiet);
    options.threads = threads;
    options.progress = loading;
    options.progress_user = &bar;
    k3_status status = k3_model_open(b->common.model, &options, model, &err);
    progress_end(&bar);
    *load_seconds = seconds() - start;
    if (status == K3_ERR_CANCELLED && interrupted()) return CLI_SIGNAL + interrupted();
    return status ? fail_library(&err) : CLI_OK;
}

/* The prompt at once, then the other ids one by one; speeds in tokens a second. */
static int run_once(const struct bench *b, k3_session *session, double *prompt, double *decode) {
    k3_error err;
    k3_session_reset(session);
    double start = seconds();
    k3_status status = k3_session_feed(session, b->ids, b->prompt, NULL, &err);
    double middle = seconds();
    for (uint64_t i = 0; !status && i < b->decode; i++) {
        if (interrupted()) return CLI_SIGNAL + interrupted();
        status = k3_session_feed(session, b->ids + b->prompt + i, 1, NULL, &err);
    }
    if (status) return fail_library(&err);
    *prompt = rate((double)b->prompt, middle - start);
    *decode = rate((double)b->decode, seconds() - middle);
    return CLI_OK;
}

/* The machine changes its speed from minute to minute: its bandwidth is measured beside every repetition. */
static int measure(struct bench *b, k3_session *session, struct row *row) {
    double *prompt = b->measured, *decode = prompt + b->repeat, *read = decode + b->repeat, warm_prompt, warm_decode;
    int code = run_once(b, session, &warm_prompt, &warm_decode);
    for (uint64_t i = 0; !code && i < b->repeat; i++) {
        read[i] = bandwidth_measure(&b->bandwidth, row->threads);
        code = run_once(b, session, &prompt[i], &decode[i]);
    }
    if (code) return code;
    row->prompt = spread_of(prompt, b->repeat);
    row->decode = spread_of(decode, b->repeat);
    row->read = spread_of(read, b->repeat);
    row->share = row->decode.median * (double)b->token_bytes / row->read.median;
    return CLI_OK;
}

static int run_row(struct bench *b, int threads, struct row *row) {
    k3_error err;
    k3_model *model = NULL;
    k3_session *session = NULL;
    int code = load(b, threads, &model, &row->load_seconds);
    if (code) return code;
    row->threads = k3_model_threads(model);
    snprintf(b->isa, sizeof b->isa, "%s", k3_model_isa(model));
    if (k3_session_new(model, &session, &err)) code = fail_library(&err);
    if (!code) code = measure(b, session, row);
    k3_session_free(session);
    k3_model_close(model);
    return code;
}

/* "13.30 (12.90 - 13.50)" */
static const char *cell(const struct spread *s, double unit, char room[48]) {
    snprintf(room, 48, "%.2f (%.2f - %.2f)", s->median / unit, s->least / unit, s->most / unit);
    return room;
}

static int print_row(const struct bench *b, const struct row *r) {
    char line[256], prompt[48], decode[48], read[48];
    int n = snprintf(line, sizeof line, "%7d %8.2f  %25s  %25s  %25s  %11.2f  %5.1f %%\n", r->threads, r->load_seconds,
                     cell(&r->prompt, 1, prompt), cell(&r->decode, 1, decode), cell(&r->read, 1e9, read),
                     r->decode.median * (double)b->token_bytes / 1e9, 100 * r->share);
    return output_text(line, (size_t)n);
}

static int print_table(const struct bench *b) {
    char line[512], human[16];
    int n = snprintf(line, sizeof line,
                     "%s kernels; prompt of %" PRIu64 " tokens, then %" PRIu64 " decoded; a token reads %s of weights\n"
                     "median (lowest - highest) of %" PRIu64 "\n"
                     "threads   load s  %25s  %25s  %25s  decode GB/s    share\n",
                     b->isa, b->prompt, b->decode, number_human(b->token_bytes, human), b->repeat, "prompt tokens/s",
                     "decode tokens/s", "memory read GB/s");
    int code = output_text(line, (size_t)n);
    for (size_t i = 0; !code && i < b->rows; i++) code = print_row(b, &b->row[i]);
    return code;
}

static json_t *spread_json(const struct spread *s) {
    return json_spread(s->median, s->least, s->most);
}

static json_t *make_json(const struct bench *b) {
    json_t *rows = json_array();
    for (size_t i = 0; rows && i < b->rows; i++) {
        const struct row *r = &b->row[i];
        json_t *row = json_pack("{s:i, s:f, s:o, s:o, s:o, s:f, s:f}", "threads", r->threads, "load_seconds",
                                r->load_seconds, "prompt_tokens_per_second", spread_json(&r->prompt),
                                "decode_tokens_per_second", spread_json(&r->decode), "read_bytes_per_second",
                                spread_json(&r->read), "decode_bytes_per_second",
                                r->decode.median * (double)b->token_bytes, "share", r->share);
        json_array_append_new(rows, row);
    }
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:o}", "model",
                     json_text(b->common.model, strlen(b->common.model)), "isa", b->isa, "prompt_tokens",
                     (json_int_t)b->prompt, "decode_tokens", (json_int_t)b->decode, "repeat", (json_int_t)b->repeat,
                     "token_bytes", (json_int_t)b->token_bytes, "rows", rows);
}

static int run(struct bench *b) {
    int code = prepare(b);
    interrupt_watch();
    for (size_t i = 0; !code && i < b->rows; i++) {
        int threads = b->threads ? (int)b->threads[i] : 0;
        code = run_row(b, threads, &b->row[i]);
    }
    if (code) return code;
    return b->common.json ? json_print(make_json(b)) : print_table(b);
}

int command_bench(int argc, char **argv) {
    struct bench b = {.prompt = 512, .decode = 64, .repeat = 5};
    bool stop = false;
    options_init(&b.common, "bench", help);
    int code = parse(&b, argc, argv, &stop);
    if (!code && !stop) code = run(&b);
    bandwidth_close(&b.bandwidth);
    free(b.measured);
    free(b.ids);
    free(b.row);
    free(b.threads);
    return code;
}
