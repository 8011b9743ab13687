/* A command line within an option: cut into words as a shell does it. */
#ifndef K3_CLI_WORDS_H
#define K3_CLI_WORDS_H

/* Blanks separate words; '...' and "..." keep them, a backslash takes the next character as it is (within '...' it is
 * one).  *words: [*n] and a NULL behind them, all one block; free() it.  option: for the message. */
int words_split(const char *option, const char *text, char ***words, int *n);

#endif
