#include "format/text_buffer.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct k3_text *t, size_t more) {
    size_t wanted;
    if (t->failed) return false;
    if (t->s && more < t->room - t->length) return true;
    bool fits = k3_add(t->length, more, &wanted) && k3_add(wanted, wanted / 2 + 64, &wanted);
    char *s = fits ? realloc(t->s, wanted) : NULL;
    t->failed = !s;
    if (!s) return false;
    t->s = s;
    t->room = wanted;
    return true;
}

void k3_text_add(struct k3_text *t, const char *s, size_t n) {
    if (!reserve(t, n)) return;
    memcpy(t->s + t->length, s, n);
    t->length += n;
    t->s[t->length] = 0;
}

void k3_text_put(struct k3_text *t, const char *terminated) {
    k3_text_add(t, terminated, strlen(terminated));
}

static bool is_plain(char c) {
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

void k3_text_add_escaped(struct k3_text *t, const char *s, size_t n) {
    static const char from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";
    for (size_t i = 0; i < n;) {
        size_t run = i;
        while (run < n && is_plain(s[run])) run++;
        k3_text_add(t, s + i, run - i);
        if (run == n) return;
        const char *found = s[run] ? strchr(from, s[run]) : NULL;
        char escape[8];
        if (found) snprintf(escape, sizeof escape, "\\%c", into[found - from]);
        else snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)s[run]);
        k3_text_put(t, escape);
        i = run + 1;
    }
}

void k3_text_add_json_string(struct k3_text *t, const char *s, size_t n) {
    k3_text_put(t, "\"");
    k3_text_add_escaped(t, s, n);
    k3_text_put(t, "\"");
}

void k3_text_clear(struct k3_text *t) {
    free(t->s);
    *t = (struct k3_text){0};
}
