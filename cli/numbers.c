#include "numbers.h"
#include "message.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits from *text on; moves *text behind them.  False: no digit, or more than 64 bits. */
static bool scan_uint(const char **text, uint64_t *out) {
    const char *c = *text;
    uint64_t value = 0;
    if (!isdigit((unsigned char)*c)) return false;
    for (; isdigit((unsigned char)*c); c++) {
        if (__builtin_mul_overflow(value, 10u, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value)) return false;
    }
    *text = c;
    *out = value;
    return true;
}

int number_uint(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out) {
    const char *end = text;
    uint64_t value;
    if (!scan_uint(&end, &value) || *end || value < least || value > most)
        return fail_usage("%s: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64, option, text, least, most);
    *out = value;
    return CLI_OK;
}

int number_real(const char *option, const char *text, double least, double most, double *out) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text) || !isfinite(value) || value < least || value > most)
        return fail_usage("%s: \"%s\" is not a number from %g to %g", option, text, least, most);
    *out = value;
    return CLI_OK;
}

/* The factor that a suffix stands for; 0: no such suffix. */
static double suffix_factor(const char *suffix) {
    static const char letters[] = "KMGT";
    if (!*suffix || !strcmp(suffix, "B")) return 1;
    const char *letter = strchr(letters, toupper((unsigned char)*suffix));
    if (!letter || !*letter) return 0;
    int power = (int)(letter - letters) + 1;
    bool binary = suffix[1] == 'i';
    const char *rest = suffix + 1 + binary;
    if (*rest && strcmp(rest, "B") != 0) return 0;
    return pow(binary ? 1024 : 1000, power);
}

int number_bytes(const char *option, const char *text, uint64_t *out) {
    size_t digits = strspn(text, "0123456789.");
    char number[32];
    double factor = suffix_factor(text + digits), value = -1;
    if (digits && digits < sizeof number && factor > 0) {
        char *end;
        memcpy(number, text, digits);
        number[digits] = 0;
        value = strtod(number, &end);
        if (*end) value = -1;
    }
    if (!(value * factor >= 1) || value * factor >= 0x1p63)
        return fail_usage("%s: \"%s\" is not a size such as 64G, 1.5T, 512MiB or a number of bytes", option, text);
    *out = (uint64_t)(value * factor);
    return CLI_OK;
}

static bool is_separator(char c) {
    return c == ',' || isspace((unsigned char)c);
}

/* Elements at most: one more than there are separators. */
static size_t count_elements(const char *text) {
    size_t n = 1;
    for (; *text; text++) n += is_separator(*text);
    return n;
}

/* One separator between two elements is a comma with blanks around it, or blanks. */
static const char *skip_separator(const char *c) {
    while (isspace((unsigned char)*c)) c++;
    if (*c == ',') c++;
    while (isspace((unsigned char)*c)) c++;
    return c;
}

int number_list(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t **out, size_t *n) {
    const char *c = text;
    size_t count = 0;
    uint64_t *list = calloc(count_elements(text), sizeof *list);
    if (!list) return fail("%s: out of memory", option);
    while (isspace((unsigned char)*c)) c++;
    while (*c) {
        const char *start = c;
        if (!scan_uint(&c, &list[count]) || (*c && !is_separator(*c)) || list[count] < least || list[count] > most) {
            int length = (int)strcspn(start, ", \t\r\n");
            free(list);
            return fail_usage("%s: \"%.*s\" at place %zu is not a whole number from %" PRIu64 " to %" PRIu64, option,
                              length < 40 ? length : 40, start, count + 1, least, most);
        }
        count++;
        c = skip_separator(c);
    }
    if (!count) {
        free(list);
        return fail_usage("%s: the list is empty", option);
    }
    *out = list;
    *n = count;
    return CLI_OK;
}

char *number_grouped(uint64_t value, char *room) {
    char plain[21];
    int n = snprintf(plain, sizeof plain, "%" PRIu64, value);
    char *to = room;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) *to++ = ',';
        *to++ = plain[i];
    }
    *to = 0;
    return room;
}

char *number_human(uint64_t bytes, char *room) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.95 && unit < 6; unit++) value /= 1000;
    if (unit == 0)
        snprintf(room, 16, "%u B", (unsigned)bytes);
    else
        snprintf(room, 16, "%.*f %s", value < 9.9995 ? 3 : value < 99.995 ? 2 : 1, value, units[unit]);
    return room;
}
