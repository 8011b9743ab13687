#include "judge.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_regex(struct judge *j, const json_t *pattern, const char **why) {
    int error;
    PCRE2_SIZE at;
    *why = "judge: regex: not a valid pattern";
    if (!json_is_string(pattern)) return false;
    j->regex = pcre2_compile((PCRE2_SPTR)json_string_value(pattern), json_string_length(pattern), PCRE2_UTF, &error,
                             &at, NULL);
    return j->regex != NULL;
}

static bool read_number(struct judge *j, const json_t *object, const char **why) {
    json_t *tolerance = json_object_get(object, "tolerance");
    *why = "judge: number and tolerance must be numbers";
    if (!json_is_number(json_object_get(object, "number")) || (tolerance && !json_is_number(tolerance))) return false;
    j->number = json_number_value(json_object_get(object, "number"));
    j->tolerance = tolerance ? json_number_value(tolerance) : 0;
    return true;
}

static bool read_call(struct judge *j, const json_t *call, const char **why) {
    *why = "judge: call: it needs a name and an object of arguments";
    j->name = json_string_value(json_object_get(call, "name"));
    j->arguments = json_object_get(call, "arguments");
    return j->name && json_is_object(j->arguments);
}

bool judge_read(struct judge *j, const json_t *object, const char **why) {
    const json_t *exact = json_object_get(object, "exact"), *regex = json_object_get(object, "regex");
    const json_t *number = json_object_get(object, "number"), *call = json_object_get(object, "call");
    *j = (struct judge){0};
    *why = "judge: one of exact, regex, number and call is needed";
    if (!exact + !regex + !number + !call != 3) return false;
    j->kind = exact ? JUDGE_EXACT : regex ? JUDGE_REGEX : number ? JUDGE_NUMBER : JUDGE_CALL;
    if (regex) return read_regex(j, regex, why);
    if (number) return read_number(j, object, why);
    if (call) return read_call(j, call, why);
    *why = "judge: exact: not a text";
    j->text = json_string_value(exact);
    j->length = json_string_length(exact);
    return j->text != NULL;
}

void judge_clear(struct judge *j) {
    pcre2_code_free(j->regex);
    j->regex = NULL;
}

static bool blank(char c) {
    return c && strchr(" \t\r\n", c);
}

/* Takes the blanks around a text away. */
static void trim(const char **text, size_t *n) {
    while (*n && blank(**text)) ++*text, --*n;
    while (*n && blank((*text)[*n - 1])) --*n;
}

static bool is_exact(const char *want, size_t m, const char *text, size_t n) {
    trim(&want, &m);
    trim(&text, &n);
    return n == m && memcmp(text, want, n) == 0;
}

static bool matches(pcre2_code *regex, const char *text, size_t n) {
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(regex, NULL);
    int got = data ? pcre2_match(regex, (PCRE2_SPTR)text, n, 0, 0, data, NULL) : -1;
    pcre2_match_data_free(data);
    return got >= 0;
}

static bool digit_at(const char *text, size_t n, size_t i) {
    return i < n && isdigit((unsigned char)text[i]);
}

/* The last number in the text; commas between digits do not count. */
static bool last_number(const char *text, size_t n, double *out) {
    char digits[64];
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        size_t used = 0;
        if (!digit_at(text, n, i)) continue;
        if (i && text[i - 1] == '-' && (i == 1 || !isalnum((unsigned char)text[i - 2]))) digits[used++] = '-';
        for (; digit_at(text, n, i) || (i < n && (text[i] == '.' || text[i] == ',') && digit_at(text, n, i + 1)); i++)
            if (text[i] != ',' && used + 1 < sizeof digits) digits[used++] = text[i];
        digits[used] = 0;
        *out = strtod(digits, NULL);
        found = true;
    }
    return found;
}

static bool is_call(const struct judge *j, const k3_reply *reply) {
    if (!reply || k3_reply_calls(reply) != 1 || strcmp(k3_reply_call_name(reply, 0), j->name)) return false;
    json_t *arguments = json_loads(k3_reply_call_arguments(reply, 0), JSON_REJECT_DUPLICATES, NULL);
    bool same = arguments && json_equal(arguments, j->arguments);
    json_decref(arguments);
    return same;
}

bool judge_answer(const struct judge *j, const char *text, size_t length, const k3_reply *reply) {
    double number;
    switch (j->kind) {
    case JUDGE_EXACT: return is_exact(j->text, j->length, text, length);
    case JUDGE_REGEX: return matches(j->regex, text, length);
    case JUDGE_NUMBER: return last_number(text, length, &number) && fabs(number - j->number) <= j->tolerance;
    default: return is_call(j, reply);
    }
}
