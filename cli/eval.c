/* k3 eval: puts the tasks of a file to a model and judges the answers. */
#include "eval.h"
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
#include "progress.h"
#include "sampling.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: k3 eval MODEL TASKS [OPTION]...\n"
    "\n"
    "Puts each task of the file TASKS (JSON, one a line; - for standard input) to the model, judges the\n"
    "answers and prints success rates with their intervals, tokens and times.\n"
    "\n"
    "  --group NAME      only the tasks of this group\n"
    "  --limit N         only the first N tasks\n"
    "  --repeat N        run each task N times, with seeds S, S + 1, ... (default 1)\n"
    "  --out FILE        write every answer and all that a repetition needs, as JSON, one a line\n"
    "  --price X         what an hour of this machine costs: adds the cost of a task and of a success\n"
    "  -n, --tokens N    tokens to make at the most, where a task does not say (default 256)\n"
    "  --temperature X   0 takes the likeliest token (default 0)\n"
    "  --top-k N         pick from the N likeliest only (default 0: all)\n"
    "  --top-p X         pick from the likeliest that together reach X (default 0.95)\n"
    "  --min-p X         drop tokens below X times the likeliest (default 0)\n"
    "  --seed N          S (default 1)\n"
    HELP_THREADS HELP_MODEL HELP_JSON HELP_QUIET HELP_HELP;

enum { OPTION_GROUP = OPTION_OWN, OPTION_LIMIT, OPTION_REPEAT, OPTION_OUT, OPTION_PRICE };

static const struct option option_list[] = {
    {"group", required_argument, NULL, OPTION_GROUP},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"out", required_argument, NULL, OPTION_OUT},
    {"price", required_argument, NULL, OPTION_PRICE},
    {"tokens", required_argument, NULL, 'n'},
    OPTION_LIST_SAMPLING,
    OPTION_LIST_THREADS,
    OPTION_LIST_MODEL,
    OPTION_LIST_JSON,
    OPTION_LIST_HELP,
    {0},
};

struct eval {
    struct common_options common;
    struct sampling sampling;
    const char *file, *group, *out_path;
    uint64_t limit, repeats, tokens;
    double price;

    struct tasks tasks;
    struct outcomes outcomes;
    k3_tokenizer *tokenizer;
    k3_model *model;
    k3_session *session;
    struct output_file out;
};

static int take(struct eval *e, int option) {
    int code = CLI_OK;
    switch (option) {
    case OPTION_GROUP: e->group = optarg; return CLI_OK;
    case OPTION_OUT: e->out_path = optarg; return CLI_OK;
    case OPTION_LIMIT: return number_uint("--limit", optarg, 1, INT32_MAX, &e->limit);
    case OPTION_REPEAT: return number_uint("--repeat", optarg, 1, 1000000, &e->repeats);
    case OPTION_PRICE: return number_real("--price", optarg, 0, 1e9, &e->price);
    case 'n': return number_uint("-n", optarg, 1, INT32_MAX, &e->tokens);
    default: sampling_option(&e->sampling, option, &code); return code;
    }
}

static int parse(struct eval *e, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while (!code && (option = options_next(&e->common, argc, argv, ":n:", option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        code = take(e, option);
    }
    return code ? code : options_model_file(&e->common, argc, argv, "TASKS", &e->file);
}

/* ---- results */

static int write_line(struct eval *e, json_t *object) {
    char *line = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!line) return fail("--out: out of memory");
    int code = output_file_write(&e->out, line, strlen(line));
    free(line);
    return code ? code : output_file_write(&e->out, "\n", 1);
}

/* All that is needed to run the same again. */
static json_t *header_json(const struct eval *e) {
    char hash[24];
    k3_checkpoint_info info = {.size = sizeof info};
    const k3_sampler_options *s = &e->sampling.options;
    k3_checkpoint_describe(k3_model_checkpoint(e->model), &info);
    snprintf(hash, sizeof hash, "%016" PRIx64, e->tasks.hash);
    return json_pack("{s:s, s:o, s:s, s:I, s:I, s:o, s:I, s:s, s:o, s:I, s:I, s:I, s:f, s:I, s:f, s:f, s:I, s:s, s:i}",
                     "k3", k3_version(), "model", json_text(e->common.model, strlen(e->common.model)), "architecture",
                     info.architecture, "checkpoint_tensors", (json_int_t)info.tensors, "checkpoint_bytes",
                     (json_int_t)info.total_bytes, "tasks", json_text(e->file, strlen(e->file)), "tasks_bytes",
                     (json_int_t)e->tasks.bytes, "tasks_fnv1a", hash, "group",
                     e->group ? json_text(e->group, strlen(e->group)) : json_null(), "limit", (json_int_t)e->limit,
                     "repeat", (json_int_t)e->repeats, "tokens", (json_int_t)e->tokens, "temperature",
                     (double)s->temperature, "top_k", (json_int_t)s->top_k, "top_p", (double)s->top_p, "min_p",
                     (double)s->min_p, "seed", (json_int_t)s->seed, "isa", k3_model_isa(e->model), "threads",
                     k3_model_threads(e->model));
}

/* The answer: a chat's content, or what continued a prompt. */
static const char *answer(const struct generation *g, size_t *length) {
    if (g->reply) return k3_reply_content(g->reply, length);
    *length = g->text_length;
    return g->text ? g->text : "";
}

static int write_result(struct eval *e, const struct task *t, uint64_t seed, const struct generation *g,
                        const struct outcome *o) {
    size_t n, m = 0;
    if (!e->out_path) return CLI_OK;
    const char *text = answer(g, &n), *reasoning = g->reply ? k3_reply_reasoning(g->reply, &m) : "";
    return write_line(
        e, json_pack("{s:s, s:s, s:I, s:b, s:o, s:o, s:o, s:s, s:I, s:o, s:f}", "id", t->id, "group", t->group, "seed",
                     (json_int_t)seed, "right", o->right, "answer", json_text(text, n), "reasoning",
                     json_text(reasoning, m), "tool_calls",
                     g->reply ? reply_calls_json(g->reply) : json_array(), "stop",
                     stop_name(g->stop), "prompt_tokens", (json_int_t)o->prompt_tokens, "ids",
                     json_ids(g->ids, g->count), "seconds", o->seconds));
}

/* ---- running */

static k3_status encode(const struct eval *e, const struct task *t, int32_t **ids, size_t *n, k3_error *err) {
    k3_chat_options chat;
    if (t->prompt)
        return k3_tokenizer_encode(e->tokenizer, t->prompt, strlen(t->prompt), K3_ENCODE_ORDINARY, ids, n, err);
    k3_chat_options_init(&chat);
    chat.thinking = t->thinking;
    chat.effort = t->effort;
    chat.tools = t->tools;
    return k3_chat_render(e->tokenizer, t->messages, &chat, ids, n, err);
}

/* All tasks, before anything runs. */
static int check_prompts(const struct eval *e) {
    k3_error err;
    for (size_t i = 0; i < e->tasks.count; i++) {
        int32_t *ids;
        size_t n;
        if (encode(e, &e->tasks.of[i], &ids, &n, &err))
            return fail("%s: task %s: %s", e->file, e->tasks.of[i].id, k3_error_text(&err));
        k3_free(ids);
        if (!n) return fail("%s: task %s: its prompt is empty", e->file, e->tasks.of[i].id);
    }
    return CLI_OK;
}

/* The handles of one run. */
struct one {
    k3_sampler *sampler;
    k3_decoder *decoder;
    k3_reply *reply;
    int32_t *eos, *prompt;
    size_t prompt_count;
};

static void one_clear(struct one *o) {
    k3_sampler_free(o->sampler);
    k3_decoder_free(o->decoder);
    k3_reply_free(o->reply);
    k3_free(o->prompt);
    free(o->eos);
}

static int one_open(const struct eval *e, const struct task *t, uint64_t seed, struct one *o, struct generation *g) {
    k3_error err;
    k3_sampler_options sampling = e->sampling.options;
    sampling.seed = seed;
    k3_status status = encode(e, t, &o->prompt, &o->prompt_count, &err);
    if (!status) status = k3_sampler_new(&sampling, &o->sampler, &err);
    if (!status && t->prompt) status = k3_decoder_new(e->tokenizer, &o->decoder, &err);
    if (!status && !t->prompt) status = k3_reply_new(e->tokenizer, t->thinking, &o->reply, &err);
    if (status) return fail_library(&err);
    uint32_t vocab = k3_model_vocab_size(e->model);
    int code = load_eos(e->model, t->prompt ? NULL : e->tokenizer, &o->eos, &g->eos_count);
    if (!code) code = sampling_ban(o->sampler, e->tokenizer, vocab, true, o->eos, g->eos_count);
    *g = (struct generation){.session = e->session, .sampler = o->sampler, .decoder = o->decoder, .reply = o->reply,
                             .eos = o->eos, .eos_count = g->eos_count, .vocab = vocab, .prompt = o->prompt,
                             .prompt_count = o->prompt_count, .quiet = true,
                             .limit = t->max_tokens ? t->max_tokens : e->tokens};
    return code ? code : input_check_ids(NULL, o->prompt, o->prompt_count, vocab);
}

static int run_task(struct eval *e, const struct task *t, uint64_t seed, struct outcome *out) {
    struct one o = {0};
    struct generation g = {0};
    size_t n;
    k3_session_reset(e->session);
    int code = one_open(e, t, seed, &o, &g);
    if (!code) {
        double start = seconds();
        generate(&g);
        *out = (struct outcome){.prompt_tokens = g.prompt_fed, .tokens = g.count, .seconds = seconds() - start};
        const char *text = answer(&g, &n);
        out->right = judge_answer(&t->judge, text, n, g.reply);
        if (g.stop == STOP_ERROR) code = fail("task %s: %s", t->id, k3_error_text(&g.err));
        if (g.stop == STOP_INTERRUPTED) code = CLI_SIGNAL + interrupted();
    }
    if (!code) code = write_result(e, t, seed, &g, out);
    generation_clear(&g);
    one_clear(&o);
    return code;
}

static int run_all(struct eval *e) {
    struct outcomes *o = &e->outcomes;
    struct progress bar;
    int code = CLI_OK;
    size_t runs = o->tasks->count * o->repeats;
    progress_start(&bar, "evaluating", "runs", e->common.quiet);
    for (; !code && o->done < runs; o->done += !code) {
        progress_update(&bar, o->done, runs);
        const struct task *t = &e->tasks.of[o->done / o->repeats];
        code = run_task(e, t, e->sampling.options.seed + o->done % o->repeats, &o->of[o->done]);
    }
    progress_end(&bar);
    return code;
}

static int prepare(struct eval *e) {
    int code = tasks_read(e->file, &e->tasks);
    if (code) return code;
    tasks_select(&e->tasks, e->group, e->limit);
    if (!e->tasks.count) return fail_usage("--group: no task of %s is in the group \"%s\"", e->file, e->group);
    code = load_tokenizer(e->common.model, "its text is needed for tasks", &e->tokenizer);
    if (!code) code = check_prompts(e);
    e->outcomes = (struct outcomes){.tasks = &e->tasks, .repeats = e->repeats, .price = e->price};
    e->outcomes.of = calloc(e->tasks.count, e->repeats * sizeof *e->outcomes.of);
    return code || e->outcomes.of ? code : fail("out of memory");
}

static int run(struct eval *e) {
    k3_error err;
    int code = prepare(e);
    if (code) return code;
    interrupt_watch();
    if (e->out_path) code = output_file_open(&e->out, e->out_path);
    if (!code) code = load_model(&e->common, &e->model, NULL);
    if (!code && k3_session_new(e->model, &e->session, &err)) code = fail_library(&err);
    if (!code && e->out_path) code = write_line(e, header_json(e));
    if (!code) code = run_all(e);
    if (!code && e->out_path) code = output_file_finish(&e->out);
    if (code && code < CLI_SIGNAL) return code;
    /* An interrupted run shows what it has. */
    int reported = eval_report(&e->outcomes, e->common.json, e->common.model);
    return code ? code : reported;
}

static void clear(struct eval *e) {
    output_file_drop(&e->out);
    free(e->outcomes.of);
    k3_session_free(e->session);
    k3_model_close(e->model);
    k3_tokenizer_close(e->tokenizer);
    tasks_clear(&e->tasks);
}

int command_eval(int argc, char **argv) {
    struct eval e = {.repeats = 1, .tokens = 256, .price = -1};
    bool stop = false;
    options_init(&e.common, "eval", help);
    sampling_init(&e.sampling);
    e.sampling.options.temperature = 0;
    e.sampling.options.seed = 1;
    int code = parse(&e, argc, argv, &stop);
    if (!code && !stop) code = run(&e);
    clear(&e);
    return code;
}
