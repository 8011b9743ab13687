/* The commands: each takes the arguments from its own name on and returns the exit code. */
#ifndef K3_CLI_COMMAND_H
#define K3_CLI_COMMAND_H

int command_run(int argc, char **argv);
int command_logits(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_perplexity(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_eval(int argc, char **argv);

#endif
