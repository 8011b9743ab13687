/* --json: objects made with Jansson. */
#ifndef K3_CLI_JSON_H
#define K3_CLI_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A string; bytes that are not UTF-8 make every byte above 0x7f '?'. */
json_t *json_text(const char *text, size_t length);

json_t *json_ids(const int32_t *ids, size_t n);

/* {"median": , "min": , "max": } */
json_t *json_spread(double median, double least, double most);

/* Prints the object and a newline on stdout and drops it.  Returns an exit code; NULL: out of memory. */
int json_print(json_t *object);

/* The same without the newline.  flags: Jansson's, such as JSON_EMBED (no braces around it). */
int json_print_part(json_t *object, size_t flags);

#endif
