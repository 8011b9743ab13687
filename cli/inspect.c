/* k3 inspect: what a checkpoint holds, from its headers alone. */
#include "command.h"
#include "json.h"
#include "message.h"
#include "numbers.h"
#include "options.h"
#include "output.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: k3 inspect MODEL [--tensors [PATTERN]] [--json]\n"
    "\n"
    "Checks a checkpoint and says what it holds; reads no weights.\n"
    "\n"
    "  --tensors [PATTERN]  list the tensors too, only those whose name has PATTERN in it or, where it\n"
    "                       has * or ? or [ in it, matches it as a whole\n"
    "  --json               print one JSON object\n"
    "  --help               print this\n";

enum { OPTION_TENSORS = OPTION_OWN };

static const struct option option_list[] = {
    {"tensors", optional_argument, NULL, OPTION_TENSORS},
    OPTION_LIST_JSON,
    OPTION_LIST_HELP,
    {0},
};

struct inspect {
    struct common_options common;
    bool tensors;
    const char *pattern; /* NULL: all */
    k3_checkpoint *checkpoint;
    k3_checkpoint_info info;
};

/* A family of weights with its names for people and for programs. */
struct family {
    const char *name, *key;
    uint64_t bytes;
};

#define FAMILIES 11

static void list_families(const k3_bytes *b, struct family out[FAMILIES]) {
    const struct family all[FAMILIES] = {
        {"KDA attention", "kda", b->kda},
        {"MLA attention", "mla", b->mla},
        {"dense MLPs", "dense", b->dense},
        {"shared experts", "shared", b->shared},
        {"latent projections", "latent", b->latent},
        {"routers", "router", b->router},
        {"norms, AttnRes", "norms", b->norms},
        {"routed experts", "experts", b->experts},
        {"output head", "head", b->head},
        {"embedding", "embedding", b->embedding},
        {"ignored", "ignored", b->ignored},
    };
    memcpy(out, all, sizeof all);
}

static int parse(struct inspect *p, int argc, char **argv, bool *stop) {
    int option, code = CLI_OK;
    while ((option = options_next(&p->common, argc, argv, ":", option_list, &code)) != -1) {
        if (option == OPTION_STOP) {
            *stop = true;
            return code;
        }
        p->tensors = true;
        if (optarg) p->pattern = optarg;
    }
    /* getopt leaves "--tensors PATTERN" as two arguments. */
    if (p->tensors && !p->pattern && argc - optind == 2) p->pattern = argv[--argc];
    return options_model(&p->common, argc, argv);
}

static bool matches(const char *pattern, const char *name) {
    if (!pattern) return true;
    return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0 : strstr(name, pattern) != NULL;
}

static int print_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int print_text(const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return output_text(line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

/* "[96, 128]" */
static void format_shape(const k3_tensor_info *t, char *room, size_t size) {
    size_t used = (size_t)snprintf(room, size, "[");
    for (uint32_t i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(room + used, size - used, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    if (used < size) snprintf(room + used, size - used, "]");
}

static int print_tensor(const k3_tensor_info *t, const char *name) {
    char shape[192];
    format_shape(t, shape, sizeof shape);
    return print_text("%s  %s %s  %" PRIu64 " bytes at %" PRIu64 " in %s\n", name, t->dtype, shape, t->bytes, t->offset,
                      t->file);
}

static int print_tensor_json(const k3_tensor_info *t, bool first) {
    json_t *shape = json_array();
    for (uint32_t i = 0; shape && i < t->rank; i++) json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    json_t *o = json_pack("{s:o, s:s, s:o, s:o, s:I, s:I}", "name", json_text(t->name, t->name_length), "dtype",
                          t->dtype, "shape", shape, "file", json_text(t->file, strlen(t->file)), "offset",
                          (json_int_t)t->offset, "bytes", (json_int_t)t->bytes);
    int code = first ? CLI_OK : output_text(", ", 2);
    return code ? code : json_print_part(o, 0);
}

/* Walks the tensors that match. */
static int each_tensor(const struct inspect *p) {
    bool first = true;
    int code = CLI_OK;
    k3_error err;
    for (uint64_t i = 0; !code && i < p->info.tensors; i++) {
        k3_tensor_info t = {.size = sizeof t};
        if (k3_checkpoint_tensor(p->checkpoint, i, &t, &err)) return fail_library(&err);
        char *name = strndup(t.name, t.name_length);
        if (!name) return fail("out of memory");
        if (matches(p->pattern, name)) {
            code = p->common.json ? print_tensor_json(&t, first) : print_tensor(&t, name);
            first = false;
        }
        free(name);
    }
    return code;
}

static int print_sizes(const k3_checkpoint_info *c) {
    struct family family[FAMILIES];
    char human[16], exact[32];
    int code = print_text("\n%-20s %12s %22s\n", "weights", "size", "bytes");
    list_families(&c->bytes, family);
    for (size_t i = 0; !code && i < FAMILIES; i++)
        if (family[i].bytes)
            code = print_text("%-20s %12s %22s\n", family[i].name, number_human(family[i].bytes, human),
                              number_grouped(family[i].bytes, exact));
    if (!code)
        code = print_text("%-20s %12s %22s\n", "all", number_human(c->total_bytes, human),
                          number_grouped(c->total_bytes, exact));
    if (!code)
        code = print_text("%-20s %12s %22s\n", "read for a token", number_human(c->token_bytes, human),
                          number_grouped(c->token_bytes, exact));
    return code;
}

static int print_summary(const k3_checkpoint_info *c) {
    char tensors[32];
    int code = print_text("%s: %" PRIu32 " layers (%" PRIu32 " KDA, %" PRIu32 " MLA; %" PRIu32 " MoE, %" PRIu32
                          " dense), hidden size %" PRIu32 ", vocabulary %" PRIu32 "\n",
                          c->architecture, c->layers, c->kda_layers, c->mla_layers, c->moe_layers,
                          c->layers - c->moe_layers, c->hidden_size, c->vocab_size);
    if (!code && c->experts) {
        char latent[48] = "";
        if (c->latent_size) snprintf(latent, sizeof latent, ", of width %" PRIu32 " (latent)", c->latent_size);
        code = print_text("experts: %" PRIu32 " a layer, %" PRIu32 " a token, %" PRIu32 " shared%s\n", c->experts,
                          c->experts_per_token, c->shared_experts, latent);
    }
    if (!code && c->attn_res_block_size)
        code = print_text("residuals: AttnRes over blocks of %" PRIu32 " layers\n", c->attn_res_block_size);
    if (!code)
        code = print_text("files: %" PRIu32 " shard%s, %s tensors, %s\n", c->shards, c->shards == 1 ? "" : "s",
                          number_grouped(c->tensors, tensors), c->quantized ? "MXFP4 experts" : "not quantized");
    return code ? code : print_sizes(c);
}

static json_t *make_bytes(const k3_bytes *b) {
    struct family family[FAMILIES];
    json_t *o = json_object();
    list_families(b, family);
    for (size_t i = 0; o && i < FAMILIES; i++)
        json_object_set_new(o, family[i].key, json_integer((json_int_t)family[i].bytes));
    return o;
}

static json_t *make_json(const struct inspect *p) {
    const k3_checkpoint_info *c = &p->info;
    return json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:I, s:I}", "model",
        json_text(p->common.model, strlen(p->common.model)), "architecture", c->architecture, "layers",
        (json_int_t)c->layers, "kda_layers", (json_int_t)c->kda_layers, "mla_layers", (json_int_t)c->mla_layers,
        "moe_layers", (json_int_t)c->moe_layers, "hidden_size", (json_int_t)c->hidden_size, "vocab_size",
        (json_int_t)c->vocab_size, "experts", (json_int_t)c->experts, "experts_per_token",
        (json_int_t)c->experts_per_token, "shared_experts", (json_int_t)c->shared_experts, "latent_size",
        (json_int_t)c->latent_size, "attn_res_block_size", (json_int_t)c->attn_res_block_size, "shards",
        (json_int_t)c->shards, "tensors", (json_int_t)c->tensors, "quantized", (int)c->quantized, "bytes",
        make_bytes(&c->bytes), "total_bytes", (json_int_t)c->total_bytes, "token_bytes", (json_int_t)c->token_bytes);
}

/* The list of tensors can be long: it is printed as it is walked, as the last key of the object. */
static int print_json(const struct inspect *p) {
    json_t *summary = make_json(p);
    if (!p->tensors || !summary) return json_print(summary);
    int code = output_text("{", 1);
    if (!code) code = json_print_part(summary, JSON_EMBED);
    if (!code) code = output_text(", \"tensor_list\": [", 18);
    if (!code) code = each_tensor(p);
    return code ? code : output_text("]}\n", 3);
}

static int run(struct inspect *p) {
    k3_error err;
    if (k3_checkpoint_open(p->common.model, &p->checkpoint, &err)) return fail_library(&err);
    p->info.size = sizeof p->info;
    k3_checkpoint_describe(p->checkpoint, &p->info);
    if (p->common.json) return print_json(p);
    int code = print_summary(&p->info);
    if (code || !p->tensors) return code;
    code = output_text("\n", 1);
    return code ? code : each_tensor(p);
}

int command_inspect(int argc, char **argv) {
    struct inspect p = {0};
    bool stop = false;
    options_init(&p.common, "inspect", help);
    int code = parse(&p, argc, argv, &stop);
    if (!code && !stop) code = run(&p);
    k3_checkpoint_close(p.checkpoint);
    return code;
}
