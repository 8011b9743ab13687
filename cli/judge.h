/* Whether an answer is right. */
#ifndef K3_CLI_JUDGE_H
#define K3_CLI_JUDGE_H

#include <jansson.h>
#include <k3/k3.h>

#include <stdbool.h>
#include <stddef.h>

struct judge {
    enum { JUDGE_EXACT, JUDGE_REGEX, JUDGE_NUMBER, JUDGE_CALL } kind;
    const char *text; /* exact */
    size_t length;
    void *regex;      /* compiled */
    double number, tolerance;
    const char *name; /* call */
    json_t *arguments;
};

/* Reads {"exact": text}, {"regex": pattern}, {"number": n, "tolerance": t} or {"call": {"name": n, "arguments": {}}}.
 * The object must outlive the judge.  False: *why says what is wrong. */
bool judge_read(struct judge *j, const json_t *object, const char **why);
void judge_clear(struct judge *j);

/* text [length]: the answer, UTF-8; blanks around it do not count.  reply: NULL, or what holds the calls. */
bool judge_answer(const struct judge *j, const char *text, size_t length, const k3_reply *reply);

#endif
