/* k3 run: continues a text or answers a message. */
#include "clock.h"
#include "command.h"
#include "generate.h"
#include "input.h"
#include "interrupt.h"
#include "json.h"
#include "load.h"
#include "message.h"
#include "numbers.h"
#include "output.h"
#include "prompt.h"
#include "reply.h"
#include "sampling.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: k3 run MODEL (-p TEXT | -f FILE | --ids LIST | --chat TEXT | --messages FILE) [OPTION]...\n"
    "\n"
    "Continues a text, or answers a message, and prints what follows as it is made.\n"
    "\n"
    "  -p, --prompt TEXT the text to continue\n"
    "  -f, --file FILE   the file with the text, - for standard input\n"
    "  --ids LIST        token ids instead, such as 1,2,3, or @FILE with them\n"
    "  --special         a special token's spelling in the text becomes that token\n"
    "  --chat TEXT       a message to answer, in K3's chat format\n"
    "  --messages FILE   a conversation to go on with: JSON in OpenAI's shape\n"
    "  --tools FILE      tools that the reply may call: JSON in OpenAI's shape\n"
    "  --thinking on|off whether the reply begins with reasoning (default on)\n"
    "  --effort NAME     how much to think: low, high, max (default) or none, to say nothing of it\n"
    "  -n, --tokens N    tokens to make at the most (default 256)\n"
    "  --temperature X   0 takes the likeliest token (default 1)\n"
    "  --top-k N         pick from the N likeliest only (default 0: all)\n"
    "  --top-p X         pick from the likeliest that together reach X (default 0.95)\n"
    "  --min-p X         drop tokens below X times the likeliest (default 0)\n"
    "  --seed N          the same seed gives the same text (default: a new one)\n"
    HELP_THREADS HELP_MODEL HELP_JSON HELP_QUIET HELP_HELP
    "\n"
    "Stops at the model's end-of-text tokens or after N tokens.  An interrupt (^C) ends it with what\n"
    "was made so far, exit code 130; a second one at once.\n";

static const struct option option_list[] = {
    OPTION_LIST_PROMPT,
    {"tokens", required_argument, NULL, 'n'},
    OPTION_LIST_SAMPLING,
    OPTION_LIST_THREADS,
    OPTION_LIST_MODEL,
    OPTION_LIST_JSON,
    OPTION_LIST_HELP,
    {0},
};

struct run {
    struct common_options common;
    struct prompt prompt;
    struct sampling sampling;
    uint64_t limit;

    k3_tokenizer *tokenizer; /* NULL: the checkpoint has none and ids were given */
    k3_model *model;
    k3_session *session;
    k3_sampler *sampler;
    k3_decoder *decoder;
    k3_reply *reply; /* of a chat */
    struct reply_view view;
    int32_t *eos; /* free() */
    size_t eos_count;
    double load_seconds;
};

static int parse(struct run *r, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    const char *letters = ":" PROMPT_LETTERS "n:";
    while (!code && (option = options_next(&r->common, argc, argv, letters, option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        if (option == 'n') code = number_uint("-n", optarg, 0, INT32_MAX, &r->limit);
        else if (!prompt_option(&r->prompt, "run", option, &code)) sampling_option(&r->sampling, option, &code);
    }
    if (!code) code = options_model(&r->common, argc, argv);
    return code ? code : prompt_check(&r->prompt, "run");
}

/* All that can be wrong without the weights is said before they are read. */
static int check_first(struct run *r) {
    k3_error err;
    uint32_t vocab;
    bool given = r->prompt.source == PROMPT_IDS;
    int code = given ? prompt_encode(&r->prompt, NULL) : CLI_OK;
    if (!code) code = load_vocab_size(r->common.model, &vocab);
    if (!code) code = load_tokenizer(r->common.model, given ? NULL : "without it only --ids can be run", &r->tokenizer);
    if (!code && !given) code = prompt_encode(&r->prompt, r->tokenizer);
    if (!code) code = input_check_ids(given ? "--ids" : NULL, r->prompt.ids, r->prompt.count, vocab);
    if (!code && k3_sampler_new(&r->sampling.options, &r->sampler, &err)) code = fail_library(&err);
    return code;
}

static int load(struct run *r) {
    k3_error err;
    k3_status status = K3_OK;
    int code = load_model(&r->common, &r->model, &r->load_seconds);
    if (code) return code;
    status = k3_session_new(r->model, &r->session, &err);
    if (!status && r->tokenizer) status = k3_decoder_new(r->tokenizer, &r->decoder, &err);
    if (!status && prompt_is_chat(&r->prompt))
        status = k3_reply_new(r->tokenizer, r->prompt.chat.thinking, &r->reply, &err);
    if (status) return fail_library(&err);
    code = load_eos(r->model, prompt_is_chat(&r->prompt) ? r->tokenizer : NULL, &r->eos, &r->eos_count);
    if (code || !r->tokenizer) return code;
    /* Who gives ids compares models, and gets what the model says. */
    return sampling_ban(r->sampler, r->tokenizer, k3_model_vocab_size(r->model), r->prompt.source != PROMPT_IDS, r->eos,
                        r->eos_count);
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

static json_t *make_text(const char *text, size_t length) {
    return text ? json_text(text, length) : json_null();
}

static const char *finish_reason(const struct run *r, const struct generation *g) {
    if (g->stop != STOP_EOS) return stop_name(g->stop);
    return k3_reply_calls(r->reply) ? "tool_calls" : "stop";
}

/* What a chat adds. */
static int add_chat(const struct run *r, const struct generation *g, json_t *object) {
    size_t n, m;
    const char *content = k3_reply_content(r->reply, &n), *reasoning = k3_reply_reasoning(r->reply, &m);
    return json_object_set_new(object, "content", json_text(content, n)) ||
           json_object_set_new(object, "reasoning", json_text(reasoning, m)) ||
           json_object_set_new(object, "tool_calls", reply_calls_json(r->reply)) ||
           json_object_set_new(object, "finish_reason", json_string(finish_reason(r, g)));
}

static json_t *make_json(const struct run *r, const struct generation *g) {
    json_t *text = r->reply ? json_null() : make_text(g->decoder && !g->text ? "" : g->text, g->text_length);
    json_t *error = g->stop == STOP_ERROR ? json_text(g->err.text, strlen(g->err.text)) : json_null();
    json_t *stop_id = g->stop == STOP_EOS ? json_integer(g->stop_id) : json_null();
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:i, s:s, s:o}", "model",
        json_text(r->common.model, strlen(r->common.model)), "prompt_ids", json_ids(g->prompt, g->prompt_count), "ids",
        json_ids(g->ids, g->count), "text", text, "stop", stop_name(g->stop), "stop_id", stop_id, "error", error,
        "seed", (json_int_t)r->sampling.options.seed, "threads", k3_model_threads(r->model), "isa",
        k3_model_isa(r->model), "timings", make_timings(r, g));
    if (!object || !r->reply || !add_chat(r, g, object)) return object;
    json_decref(object);
    return NULL;
}

/* A text ends its line on a terminal; elsewhere it is handed on as it is. */
static bool needs_newline(const struct run *r, const struct generation *g) {
    return g->decoder && !r->reply && g->count && !g->output_failed && isatty(STDOUT_FILENO);
}

static int report(const struct run *r, const struct generation *g) {
    int code = CLI_OK;
    if (r->common.json) code = json_print(make_json(r, g));
    else if (needs_newline(r, g)) code = output_text("\n", 1);
    if (!code) code = output_flush();
    if (g->output_failed || code) return CLI_FAILED;
    if (g->stop == STOP_ERROR) return fail_library(&g->err);
    if (!r->common.json && !r->common.quiet) print_speed(r, g);
    return g->stop == STOP_INTERRUPTED ? CLI_SIGNAL + interrupted() : CLI_OK;
}

static int run(struct run *r) {
    int code = check_first(r);
    if (code) return code;
    interrupt_watch();
    code = load(r);
    if (code) return code;
    reply_view_init(&r->view, r->common.quiet);
    struct generation g = {
        .limit = r->limit, .stream = !r->common.json, .quiet = r->common.quiet,
        .session = r->session, .sampler = r->sampler, .decoder = r->decoder, .reply = r->reply, .view = &r->view,
        .vocab = k3_model_vocab_size(r->model), .eos = r->eos, .eos_count = r->eos_count,
        .prompt = r->prompt.ids, .prompt_count = r->prompt.count,
    };
    generate(&g);
    code = report(r, &g);
    generation_clear(&g);
    return code;
}

static void clear(struct run *r) {
    k3_reply_free(r->reply);
    k3_decoder_free(r->decoder);
    k3_sampler_free(r->sampler);
    k3_session_free(r->session);
    k3_model_close(r->model);
    k3_tokenizer_close(r->tokenizer);
    prompt_clear(&r->prompt);
    free(r->eos);
}

int command_run(int argc, char **argv) {
    struct run r = {.limit = 256};
    bool stop = false;
    options_init(&r.common, "run", help);
    prompt_init(&r.prompt);
    sampling_init(&r.sampling);
    int code = parse(&r, argc, argv, &stop);
    if (!code && !stop) code = sampling_draw_seed(&r.sampling);
    if (!code && !stop) code = run(&r);
    clear(&r);
    return code;
}
