#include "words.h"
#include "message.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies the word at *at to `to`, without what quotes it; NULL if a quote is left open. */
static char *word(const char **at, char *to) {
    char quote = 0;
    const char *p = *at;
    for (; *p && (quote || !is_blank(*p)); p++) {
        if (quote && *p == quote) quote = 0;
        else if (!quote && (*p == '\'' || *p == '"')) quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1]) *to++ = *++p;
        else *to++ = *p;
    }
    *at = p;
    if (quote) return NULL;
    *to++ = 0;
    return to;
}

int words_split(const char *option, const char *text, char ***words, int *n) {
    size_t length = strlen(text), most = length / 2 + 2; /* words, and the NULL */
    char **out = length < INT_MAX ? malloc(most * sizeof *out + length + 1) : NULL;
    if (!out) return fail("%s: out of memory", option);
    char *to = (char *)(out + most);
    int count = 0;
    for (;;) {
        while (is_blank(*text)) text++;
        if (!*text) break;
        out[count++] = to;
        to = word(&text, to);
        if (!to) {
            free(out);
            return fail_usage("%s: a quote is left open", option);
        }
    }
    out[count] = NULL;
    *words = out;
    *n = count;
    return CLI_OK;
}
