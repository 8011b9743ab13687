/* What a command reads: texts and lists of token ids.  Each returns an exit code and has printed its line. */
#ifndef K3_CLI_INPUT_H
#define K3_CLI_INPUT_H

#include <stddef.h>
#include <stdint.h>

/* The whole file at path, "-" for stdin.  *text: terminated by a zero byte that *n does not count; free() it. */
int input_file(const char *path, char **text, size_t *n);

/* "1,2,3", "1 2 3" or "@FILE" ("@-": stdin), at least one id.  *ids: free() it. */
int input_ids(const char *option, const char *list, int32_t **ids, size_t *n);

/* Checks that all ids are below `vocab`.  option: where they were given; NULL: the checkpoint's tokenizer made them of
 * the prompt, so it is the checkpoint that is wrong. */
int input_check_ids(const char *option, const int32_t *ids, size_t n, uint32_t vocab);

#endif
