/* Text that grows.  A failure stays: whoever is done asks once whether memory lasted. */
#ifndef K3_FORMAT_TEXT_BUFFER_H
#define K3_FORMAT_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct k3_text {
    char *s; /* terminated once something was added; free() */
    size_t length, room;
    bool failed;
};

void k3_text_add(struct k3_text *t, const char *s, size_t n);
void k3_text_put(struct k3_text *t, const char *terminated);

/* The inside of a JSON string: quotes, backslashes and controls escaped, all else as it is. */
void k3_text_add_escaped(struct k3_text *t, const char *s, size_t n);
void k3_text_add_json_string(struct k3_text *t, const char *s, size_t n);

void k3_text_clear(struct k3_text *t);

#endif
