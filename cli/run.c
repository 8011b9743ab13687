/* k3 run: continues a text. */
#include "clock.h"
#include "command.h"
#include "generate.h"
#include "input.h"
#include "interrupt.h"
#include "json.h"
#include "message.h"
#include "numbers.h"
#include "options.h"
#include "output.h"
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char help[] =
    "usage: k3 run MODEL (-p TEXT | -f FILE | --ids LIST) [OPTION]...\n"
    "\n"
    "Continues a text and prints what follows it, as it is made.\n"
    "\n"
    "  -p, --prompt TEXT the text to continue\n"
    "  -f, --file FILE   the file with the text, - for standard input\n"
    "  --ids LIST        token ids instead, such as 1,2,3, or @FILE with them\n"
    "  -n, --tokens N    tokens to make at the most (default 256)\n"
    "  --special         a special token's spelling in the text becomes that token\n"
    "  --temperature X   0 takes the likeliest token (default 1)\n"
    "  --top-k N         pick from the N likeliest only (default 0: all)\n"
    "  --top-p X         pick from the likeliest that together reach X (default 0.95)\n"
    "  --min-p X         drop tokens below X times the likeliest (default 0)\n"
    "  --seed N          the same seed gives the same text (default: a new one)\n"
    HELP_THREADS HELP_MODEL HELP_JSON HELP_QUIET HELP_HELP
    "\n"
    "Stops at the model's end-of-text tokens or after N tokens.  An interrupt (^C) ends it with what\n"
    "was made so far, exit code 130; a second one at once.\n";

enum {
    OPTION_IDS = OPTION_OWN,
    OPTION_SPECIAL,
    OPTION_TEMPERATURE,
    OPTION_TOP_K,
    OPTION_TOP_P,
    OPTION_MIN_P,
    OPTION_SEED
};

static const struct option option_list[] = {
    {"prompt", required_argument, NULL, 'p'},
    {"file", required_argument, NULL, 'f'},
    {"ids", required_argument, NULL, OPTION_IDS},
    {"tokens", required_argument, NULL, 'n'},
    {"special", no_argument, NULL, OPTION_SPECIAL},
    {"temperature", required_argument, NULL, OPTION_TEMPERATURE},
    {"top-k", required_argument, NULL, OPTION_TOP_K},
    {"top-p", required_argument, NULL, OPTION_TOP_P},
    {"min-p", required_argument, NULL, OPTION_MIN_P},
    {"seed", required_argument, NULL, OPTION_SEED},
    OPTION_LIST_THREADS,
    OPTION_LIST_MODEL,
    OPTION_LIST_JSON,
    OPTION_LIST_HELP,
    {0},
};

struct run {
    struct common_options common;
    int source; /* 'p', 'f', OPTION_IDS; 0: none yet */
    const char *source_text;
    unsigned encode_flags;
    bool seed_given;
    uint64_t limit;
    k3_sampler_options sampling;

    k3_tokenizer *tokenizer; /* NULL: the checkpoint has none and ids were given */
    k3_model *model;
    k3_session *session;
    k3_sampler *sampler;
    k3_decoder *decoder;
    int32_t *prompt;      /* free(): --ids */
    int32_t *prompt_text; /* k3_free(): encoded */
    size_t prompt_count;
    double load_seconds;
};

static int set_source(struct run *r, int source) {
    if (r->source && r->source != source) return fail_usage("run: give one of -p, -f and --ids, not two");
    r->source = source;
    r->source_text = optarg;
    return CLI_OK;
}

static int set_sampling(struct run *r, int option) {
    double x = 0;
    uint64_t n = 0;
    int code;
    switch (option) {
    case OPTION_TEMPERATURE:
        code = number_real("--temperature", optarg, 0, 1000, &x);
        r->sampling.temperature = (float)x;
        return code;
    case OPTION_TOP_K:
        code = number_uint("--top-k", optarg, 0, UINT32_MAX, &n);
        r->sampling.top_k = (uint32_t)n;
        return code;
    case OPTION_TOP_P:
        code = number_real("--top-p", optarg, 0, 1, &x);
        if (!code && x == 0) code = fail_usage("--top-p: 0 leaves no token to pick");
        r->sampling.top_p = (float)x;
        return code;
    case OPTION_MIN_P:
        code = number_real("--min-p", optarg, 0, 1, &x);
        r->sampling.min_p = (float)x;
        return code;
    default: /* OPTION_SEED; JSON holds no more than INT64_MAX */
        r->seed_given = true;
        return number_uint("--seed", optarg, 0, INT64_MAX, &r->sampling.seed);
    }
}

static int parse(struct run *r, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while (!code && (option = options_next(&r->common, argc, argv, ":p:f:n:", option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        if (option == 'p' || option == 'f' || option == OPTION_IDS)
            code = set_source(r, option);
        else if (option == 'n')
            code = number_uint("-n", optarg, 0, INT32_MAX, &r->limit);
        else if (option == OPTION_SPECIAL)
            r->encode_flags |= K3_ENCODE_SPECIAL;
        else
            code = set_sampling(r, option);
    }
    if (!code) code = options_model(&r->common, argc, argv);
    if (!code && !r->source) code = fail_usage("run: no prompt given: one of -p, -f and --ids is needed");
    return code;
}

/* A checkpoint without a vocabulary can still run on ids. */
static int open_tokenizer(struct run *r) {
    char path[4096];
    k3_error err;
    int n = snprintf(path, sizeof path, "%s/tiktoken.model", r->common.model);
    if (n < 0 || (size_t)n >= sizeof path) return fail("%s: the path is too long", r->common.model);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        if (r->source == OPTION_IDS) return CLI_OK;
        return fail("%s: missing: without it only --ids can be run", path);
    }
    return k3_tokenizer_open(r->common.model, &r->tokenizer, &err) ? fail_library(&err) : CLI_OK;
}

static int encode_prompt(struct run *r) {
    k3_error err;
    char *text = NULL;
    size_t length = 0;
    int code = CLI_OK;
    if (r->source == 'f') code = input_file(r->source_text, &text, &length);
    if (code) return code;
    if (r->source == 'p') length = strlen(r->source_text);
    if (k3_tokenizer_encode(r->tokenizer, text ? text : r->source_text, length, r->encode_flags, &r->prompt_text,
                            &r->prompt_count, &err))
        code = fail_library(&err);
    else if (!r->prompt_count)
        code = fail_usage("%s: the prompt is empty", r->source == 'p' ? "-p" : r->source_text);
    free(text);
    return code;
}

static const int32_t *prompt_ids(const struct run *r) {
    return r->prompt ? r->prompt : r->prompt_text;
}

/* All that can be wrong without the weights is said before they are read. */
static int check_first(struct run *r) {
    k3_error err;
    k3_checkpoint *checkpoint;
    k3_checkpoint_info info = {.size = sizeof info};
    bool given = r->source == OPTION_IDS;
    int code = given ? input_ids("--ids", r->source_text, &r->prompt, &r->prompt_count) : CLI_OK;
    if (code) return code;
    if (k3_checkpoint_open(r->common.model, &checkpoint, &err)) return fail_library(&err);
    k3_checkpoint_describe(checkpoint, &info);
    uint32_t vocab = info.vocab_size;
    k3_checkpoint_close(checkpoint);
    code = open_tokenizer(r);
    if (!code && !given) code = encode_prompt(r);
    if (!code) code = input_check_ids(given ? "--ids" : NULL, prompt_ids(r), r->prompt_count, vocab);
    if (!code && k3_sampler_new(&r->sampling, &r->sampler, &err)) code = fail_library(&err);
    return code;
}

static bool loading(void *user, uint64_t done, uint64_t total) {
    progress_update(user, done, total);
    return !interrupted();
}

static int load(struct run *r) {
    k3_error err;
    struct progress bar;
    double start = seconds();
    progress_start(&bar, "loading", true, r->common.quiet);
    r->common.options.progress = loading;
    r->common.options.progress_user = &bar;
    k3_status status = k3_model_open(r->common.model, &r->common.options, &r->model, &err);
    progress_end(&bar);
    r->load_seconds = seconds() - start;
    if (status == K3_ERR_CANCELLED && interrupted()) return CLI_SIGNAL + interrupted();
    if (!status) status = k3_session_new(r->model, &r->session, &err);
    if (!status && r->tokenizer) status = k3_decoder_new(r->tokenizer, &r->decoder, &err);
    return status ? fail_library(&err) : CLI_OK;
}

static bool contains(const int32_t *ids, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

/* Never picked, unless they end a text: ids that the tokenizer has no text for; and where the prompt is a text, reserved
 * ids and [PAD].  Who gives ids compares models, and gets what the model says. */
static int ban(struct run *r, const int32_t *eos, size_t eos_count) {
    if (!r->tokenizer) return CLI_OK;
    k3_error err;
    size_t n = 0;
    bool reserved = r->source != OPTION_IDS;
    uint32_t vocab = k3_model_vocab_size(r->model), known = k3_tokenizer_vocab_size(r->tokenizer);
    int32_t *ids = malloc((size_t)vocab * sizeof *ids);
    if (!ids) return fail("out of memory");
    for (uint32_t i = 0; i < vocab; i++) {
        int32_t id = (int32_t)i;
        bool useless = i >= known || (reserved && k3_tokenizer_is_reserved(r->tokenizer, id));
        if (useless && !contains(eos, eos_count, id)) ids[n++] = id;
    }
    k3_status status = k3_sampler_ban(r->sampler, ids, n, &err);
    free(ids);
    return status ? fail_library(&err) : CLI_OK;
}

static void print_speed(const struct run *r, const struct generation *g) {
    say("load %.2f s; prompt %zu tokens in %.2f s, %.2f tokens/s; decode %" PRIu64 " tokens in %.2f s, %.2f tokens/s",
        r->load_seconds, g->prompt_fed, g->prompt_seconds, rate((double)g->prompt_fed, g->prompt_seconds),
        g->decode_steps, g->decode_seconds, rate((double)g->decode_steps, g->decode_seconds));
}

static json_t *make_timings(const struct run *r, const struct generation *g) {
    return json_pack("{s:f, s:I, s:f, s:f, s:I, s:f, s:f}", "load_seconds", r->load_seconds, "prompt_tokens",
                     (json_int_t)g->prompt_fed, "prompt_seconds", g->prompt_seconds, "prompt_tokens_per_second",
                     rate((double)g->prompt_fed, g->prompt_seconds), "decode_tokens", (json_int_t)g->decode_steps,
                     "decode_seconds", g->decode_seconds, "decode_tokens_per_second",
                     rate((double)g->decode_steps, g->decode_seconds));
}

static json_t *make_json(const struct run *r, const struct generation *g) {
    json_t *text = g->decoder ? json_text(g->text ? g->text : "", g->text_length) : json_null();
    json_t *error = g->stop == STOP_ERROR ? json_text(g->err.text, strlen(g->err.text)) : json_null();
    json_t *stop_id = g->stop == STOP_EOS ? json_integer(g->stop_id) : json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:i, s:s, s:o}", "model",
                     json_text(r->common.model, strlen(r->common.model)), "prompt_ids",
                     json_ids(g->prompt, g->prompt_count), "ids", json_ids(g->ids, g->count), "text", text, "stop",
                     stop_name(g->stop), "stop_id", stop_id, "error", error, "seed", (json_int_t)r->sampling.seed,
                     "threads", k3_model_threads(r->model), "isa", k3_model_isa(r->model), "timings",
                     make_timings(r, g));
}

static int report(const struct run *r, const struct generation *g) {
    int code = CLI_OK;
    if (r->common.json) code = json_print(make_json(r, g));
    else if (g->decoder && g->count && !g->output_failed && isatty(STDOUT_FILENO)) code = output_text("\n", 1);
    if (!code) code = output_flush();
    if (g->output_failed || code) return CLI_FAILED;
    if (g->stop == STOP_ERROR) return fail_library(&g->err);
    if (!r->common.json && !r->common.quiet) print_speed(r, g);
    return g->stop == STOP_INTERRUPTED ? CLI_SIGNAL + interrupted() : CLI_OK;
}

static int run(struct run *r) {
    struct generation g = {.limit = r->limit, .stream = !r->common.json, .quiet = r->common.quiet};
    int code = check_first(r);
    if (code) return code;
    interrupt_watch();
    code = load(r);
    if (code) return code;
    g.eos_count = k3_model_eos_ids(r->model, &g.eos);
    code = ban(r, g.eos, g.eos_count);
    if (code) return code;
    g.session = r->session;
    g.sampler = r->sampler;
    g.decoder = r->decoder;
    g.vocab = k3_model_vocab_size(r->model);
    g.prompt = prompt_ids(r);
    g.prompt_count = r->prompt_count;
    generate(&g);
    code = report(r, &g);
    generation_clear(&g);
    return code;
}

static void clear(struct run *r) {
    k3_decoder_free(r->decoder);
    k3_sampler_free(r->sampler);
    k3_session_free(r->session);
    k3_model_close(r->model);
    k3_tokenizer_close(r->tokenizer);
    k3_free(r->prompt_text);
    free(r->prompt);
}

/* A seed from the system, small enough for every reader of JSON (53 bits). */
static int draw_seed(uint64_t *seed) {
    if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed)
        return fail("--seed: the system gives no random number: %s", strerror(errno));
    *seed &= ((uint64_t)1 << 53) - 1;
    return CLI_OK;
}

int command_run(int argc, char **argv) {
    struct run r = {.limit = 256};
    bool stop = false;
    options_init(&r.common, "run", help);
    k3_sampler_options_init(&r.sampling);
    r.sampling.top_p = 0.95f;
    int code = parse(&r, argc, argv, &stop);
    if (!code && !stop && !r.seed_given) code = draw_seed(&r.sampling.seed);
    if (!code && !stop) code = run(&r);
    clear(&r);
    return code;
}
