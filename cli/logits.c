/* k3 logits: raw logits of given ids, for comparison with other implementations. */
#include "command.h"
#include "input.h"
#include "load.h"
#include "message.h"
#include "numbers.h"
#include "output.h"
#include "progress.h"

#include <inttypes.h>
#include <stdlib.h>

static const char help[] =
    "usage: k3 logits MODEL --ids LIST --out FILE [OPTION]...\n"
    "\n"
    "Writes the logits after each id as float32 [tokens, vocabulary], row by row, little-endian, without a\n"
    "header.  FILE appears when it is whole.\n"
    "\n"
    "  --ids LIST        token ids such as 1,2,3, or @FILE with them\n"
    "  --split LIST      feed the ids in pieces of these lengths (default: all at once); the logits of\n"
    "                    a piece are held in memory\n"
    "  --out FILE        the file to write\n"
    HELP_THREADS HELP_MODEL HELP_QUIET HELP_HELP;

enum { OPTION_IDS = OPTION_OWN, OPTION_SPLIT, OPTION_OUT };

static const struct option option_list[] = {
    {"ids", required_argument, NULL, OPTION_IDS},
    {"split", required_argument, NULL, OPTION_SPLIT},
    {"out", required_argument, NULL, OPTION_OUT},
    OPTION_LIST_THREADS,
    OPTION_LIST_MODEL,
    OPTION_LIST_HELP,
    {0},
};

struct logits {
    struct common_options common;
    const char *ids_text, *split_text, *out_path;
    int32_t *ids;
    size_t count;
    uint64_t *split; /* [pieces], adds up to count */
    size_t pieces;
    struct output_file out;
    k3_model *model;
    k3_session *session;
    float *rows; /* of the largest piece */
};

static int parse(struct logits *l, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while ((option = options_next(&l->common, argc, argv, ":", option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        if (option == OPTION_IDS) l->ids_text = optarg;
        if (option == OPTION_SPLIT) l->split_text = optarg;
        if (option == OPTION_OUT) l->out_path = optarg;
    }
    code = options_model(&l->common, argc, argv);
    if (!code && !l->ids_text) code = fail_usage("logits: --ids is missing");
    if (!code && !l->out_path) code = fail_usage("logits: --out is missing");
    return code;
}

static int read_split(struct logits *l) {
    if (!l->split_text) {
        l->split = malloc(sizeof *l->split);
        if (!l->split) return fail("out of memory");
        *l->split = l->count;
        l->pieces = 1;
        return CLI_OK;
    }
    uint64_t sum = 0;
    int code = number_list("--split", l->split_text, 1, INT32_MAX, &l->split, &l->pieces);
    if (code) return code;
    for (size_t i = 0; i < l->pieces; i++) sum += l->split[i]; /* at most SIZE_MAX/8 numbers below 2^31 */
    if (sum != l->count)
        return fail_usage("--split: its lengths add up to %" PRIu64 ", and there are %zu ids", sum, l->count);
    return CLI_OK;
}

static int load(struct logits *l) {
    k3_error err;
    int code = load_model(&l->common, &l->model, NULL);
    if (!code && k3_session_new(l->model, &l->session, &err)) code = fail_library(&err);
    return code;
}

static int make_room(struct logits *l) {
    uint64_t longest = 0, bytes;
    char need[16], left[16];
    for (size_t i = 0; i < l->pieces; i++)
        if (l->split[i] > longest) longest = l->split[i];
    uint64_t row = (uint64_t)k3_model_vocab_size(l->model) * sizeof(float);
    uint64_t used = k3_model_memory_used(l->model), budget = k3_model_memory_budget(l->model);
    uint64_t free_bytes = used < budget ? budget - used : 0;
    if (__builtin_mul_overflow(longest, row, &bytes)) bytes = UINT64_MAX;
    if (bytes <= free_bytes) l->rows = malloc((size_t)bytes);
    if (l->rows) return CLI_OK;
    return fail("the logits of a piece of %" PRIu64
                " ids need %s of memory and %s are left: feed less at once with --split",
                longest, number_human(bytes, need), number_human(free_bytes, left));
}

/* The file is little-endian whatever the machine is. */
static void to_little_endian(float *values, size_t n) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint32_t *bits = (uint32_t *)(void *)values;
    for (size_t i = 0; i < n; i++) bits[i] = __builtin_bswap32(bits[i]);
#else
    (void)values;
    (void)n;
#endif
}

static int feed_all(struct logits *l) {
    k3_error err;
    struct progress bar;
    size_t vocab = k3_model_vocab_size(l->model), fed = 0;
    int code = CLI_OK;
    progress_start(&bar, "feeding", "tokens", l->common.quiet || l->pieces == 1);
    for (size_t i = 0; !code && i < l->pieces; i++) {
        size_t n = (size_t)l->split[i];
        progress_update(&bar, fed, l->count);
        k3_status status = k3_session_feed(l->session, l->ids + fed, n, l->rows, &err);
        if (status) {
            progress_end(&bar);
            return fail_library(&err);
        }
        to_little_endian(l->rows, n * vocab);
        code = output_file_write(&l->out, l->rows, n * vocab * sizeof *l->rows);
        fed += n;
    }
    progress_end(&bar);
    return code;
}

static int run(struct logits *l) {
    uint32_t vocab = 0;
    int code = input_ids("--ids", l->ids_text, &l->ids, &l->count);
    if (!code) code = read_split(l);
    if (!code) code = load_vocab_size(l->common.model, &vocab); /* before any weight is read */
    if (!code) code = input_check_ids("--ids", l->ids, l->count, vocab);
    if (!code) code = output_file_open(&l->out, l->out_path); /* before the long work: it may not be writable */
    if (!code) code = load(l);
    if (!code) code = make_room(l);
    if (!code) code = feed_all(l);
    return code ? code : output_file_finish(&l->out);
}

static void clear(struct logits *l) {
    output_file_drop(&l->out);
    free(l->rows);
    k3_session_free(l->session);
    k3_model_close(l->model);
    free(l->split);
    free(l->ids);
}

int command_logits(int argc, char **argv) {
    struct logits l = {.out.fd = -1};
    bool stop = false;
    options_init(&l.common, "logits", help);
    int code = parse(&l, argc, argv, &stop);
    if (!code && !stop) code = run(&l);
    clear(&l);
    return code;
}
