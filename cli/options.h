/* Command lines: getopt_long with this program's messages, and the options that several commands share. */
#ifndef K3_CLI_OPTIONS_H
#define K3_CLI_OPTIONS_H

#include <getopt.h>
#include <k3/k3.h>

/* Values of long options without a letter start behind the characters. */
enum {
    OPTION_HELP = 256,
    OPTION_THREADS,
    OPTION_MEMORY,
    OPTION_ISA,
    OPTION_PRECISION,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_TEMPERATURE, /* to OPTION_SEED: sampling.h */
    OPTION_TOP_K,
    OPTION_TOP_P,
    OPTION_MIN_P,
    OPTION_SEED,
    OPTION_OWN /* a command's own ones from here on */
};

#define OPTION_LIST_HELP {"help", no_argument, NULL, OPTION_HELP}
#define OPTION_LIST_JSON {"json", no_argument, NULL, OPTION_JSON}
#define OPTION_LIST_MODEL                                                                                              \
    {"memory", required_argument, NULL, OPTION_MEMORY}, {"isa", required_argument, NULL, OPTION_ISA},                  \
        {"precision", required_argument, NULL, OPTION_PRECISION}, {"quiet", no_argument, NULL, OPTION_QUIET}
#define OPTION_LIST_THREADS {"threads", required_argument, NULL, OPTION_THREADS}

#define HELP_THREADS "  --threads N       threads to use (default: the physical cores there are)\n"
#define HELP_MODEL                                                                                                     \
    "  --memory SIZE     memory budget, such as 64G or 48GiB (default: what is free)\n"                                \
    "  --isa NAME        kernels to use (default: the best for this CPU)\n"                                            \
    "  --precision NAME  exact, the only one so far\n"
#define HELP_QUIET "  --quiet           no progress and no speeds on stderr\n"
#define HELP_JSON "  --json            print one JSON object\n"
#define HELP_HELP "  --help            print this\n"

struct common_options {
    const char *command; /* for messages */
    const char *help;
    const char *model; /* the checkpoint directory */
    k3_model_options options;
    bool json, quiet;
};

void options_init(struct common_options *o, const char *command, const char *help);

/* The next option as getopt_long gives it; handles the common ones itself.  -1: no more.  OPTION_STOP: leave with
 * *code (help was printed, or an error). */
enum { OPTION_STOP = -2 };
int options_next(struct common_options *o, int argc, char **argv, const char *letters, const struct option *list,
                 int *code);

/* Takes MODEL and nothing more from what is left of the command line.  Returns an exit code. */
int options_model(struct common_options *o, int argc, char **argv);

/* Takes MODEL and one more argument, called `what` in messages. */
int options_model_file(struct common_options *o, int argc, char **argv, const char *what, const char **file);

#endif
