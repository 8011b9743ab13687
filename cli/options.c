#include "options.h"
#include "message.h"
#include "numbers.h"
#include "output.h"

#include <stdio.h>
#include <string.h>

#define MOST_THREADS 4096

void options_init(struct common_options *o, const char *command, const char *help) {
    *o = (struct common_options){.command = command, .help = help};
    k3_model_options_init(&o->options);
    opterr = 0;
    optind = 1;
}

static int set_isa(struct common_options *o, const char *name) {
    char known[256] = "";
    for (size_t i = 0; k3_isa_name(i); i++) {
        if (!strcmp(k3_isa_name(i), name)) {
            o->options.isa = k3_isa_name(i);
            return CLI_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", k3_isa_name(i));
    }
    return fail_usage("--isa: \"%s\" is not one of what this program and this CPU can run: %s", name, known);
}

static int set_threads(struct common_options *o, const char *text) {
    uint64_t n;
    int code = number_uint("--threads", text, 1, MOST_THREADS, &n);
    if (!code) o->options.threads = (int)n;
    return code;
}

/* Handles a common option; false: it is not one. */
static bool take_common(struct common_options *o, int option, int *code) {
    *code = CLI_OK;
    switch (option) {
    case OPTION_THREADS: *code = set_threads(o, optarg); return true;
    case OPTION_MEMORY: *code = number_bytes("--memory", optarg, &o->options.memory); return true;
    case OPTION_ISA: *code = set_isa(o, optarg); return true;
    case OPTION_PRECISION:
        if (strcmp(optarg, "exact") != 0) *code = fail_usage("--precision: \"%s\" is not one of: exact", optarg);
        return true;
    case OPTION_JSON: o->json = true; return true;
    case OPTION_QUIET: o->quiet = true; return true;
    default: return false;
    }
}

/* What getopt_long did not like.  At '?' and ':' optopt is the option's value, 0 where the name is unknown. */
static int explain(const struct common_options *o, int got, char **argv, const struct option *list) {
    const char *name = NULL;
    for (const struct option *l = list; l->name; l++)
        if (optopt && l->val == optopt) name = l->name;
    if (got == ':' && name) return fail_usage("%s: --%s needs a value", o->command, name);
    if (got == ':') return fail_usage("%s: -%c needs a value", o->command, optopt);
    if (name) return fail_usage("%s: --%s takes no value", o->command, name);
    if (optopt) return fail_usage("%s: unknown option -%c (see k3 %s --help)", o->command, optopt, o->command);
    return fail_usage("%s: unknown option %s (see k3 %s --help)", o->command, argv[optind - 1], o->command);
}

int options_next(struct common_options *o, int argc, char **argv, const char *letters, const struct option *list,
                 int *code) {
    for (;;) {
        int option = getopt_long(argc, argv, letters, list, NULL);
        if (option == '?' || option == ':') {
            *code = explain(o, option, argv, list);
            return OPTION_STOP;
        }
        if (option == OPTION_HELP) {
            *code = output_text(o->help, strlen(o->help));
            if (!*code) *code = output_flush();
            return OPTION_STOP;
        }
        if (option == -1 || !take_common(o, option, code)) return option;
        if (*code) return OPTION_STOP;
    }
}

static int take(const struct common_options *o, int argc, char **argv, const char *what, const char **out) {
    if (optind >= argc) return fail_usage("%s: no %s given (see k3 %s --help)", o->command, what, o->command);
    *out = argv[optind++];
    return **out ? CLI_OK : fail_usage("%s: %s is empty", o->command, what);
}

static int no_more(const struct common_options *o, int argc, char **argv) {
    if (optind < argc) return fail_usage("%s: \"%s\" is one argument too many", o->command, argv[optind]);
    return CLI_OK;
}

int options_model(struct common_options *o, int argc, char **argv) {
    int code = take(o, argc, argv, "MODEL", &o->model);
    return code ? code : no_more(o, argc, argv);
}

int options_model_file(struct common_options *o, int argc, char **argv, const char *what, const char **file) {
    int code = take(o, argc, argv, "MODEL", &o->model);
    if (!code) code = take(o, argc, argv, what, file);
    return code ? code : no_more(o, argc, argv);
}
