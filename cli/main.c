/* k3: runs Kimi K3 and Kimi Linear checkpoints on the machine at hand. */
#include "command.h"
#include "message.h"
#include "output.h"

#include <k3/k3.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: k3 COMMAND MODEL [OPTION]...\n"
    "\n"
    "Runs Kimi K3 and Kimi Linear checkpoints, read as published.  MODEL is a checkpoint directory.\n"
    "\n"
    "  k3 run MODEL -p TEXT                 continue a text\n"
    "  k3 logits MODEL --ids 1,2,3 --out F  write raw logits\n"
    "  k3 inspect MODEL                     say what a checkpoint holds\n"
    "  k3 bench MODEL                       measure the speed and its roof\n"
    "  k3 perplexity MODEL FILE             how well a text is predicted\n"
    "  k3 compare MODEL FILE --b OPTIONS    how far two ways to run it are apart\n"
    "  k3 eval MODEL TASKS                  put tasks to it and judge the answers\n"
    "\n"
    "  k3 COMMAND --help                    a command's options\n"
    "  k3 --version                         the version\n"
    "\n"
    "Exit codes: 0 success, 1 failure, 2 wrong usage, 128 + N ended by signal N.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", command_run},
    {"logits", command_logits},
    {"inspect", command_inspect},
    {"bench", command_bench},
    {"perplexity", command_perplexity},
    {"compare", command_compare},
    {"eval", command_eval},
};

static int print_version(void) {
    char line[64];
    int n = snprintf(line, sizeof line, "k3 %d.%d.%d (libk3 %s)\n", K3_VERSION_MAJOR, K3_VERSION_MINOR,
                     K3_VERSION_PATCH, k3_version());
    return output_text(line, (size_t)n);
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) return fail_usage("no command given (see k3 --help)");
    const char *name = argv[1];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(name, commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) return output_text(help, sizeof help - 1);
    if (!strcmp(name, "--version")) return print_version();
    return fail_usage("unknown %s \"%s\" (see k3 --help)", *name == '-' ? "option" : "command", name);
}

int main(int argc, char **argv) {
    /* A reader that goes away and a file that may not grow are answers of write(), not of a signal. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int code = dispatch(argc, argv);
    int flushed = output_flush();
    return code ? code : flushed;
}
