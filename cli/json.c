#include "json.h"
#include "message.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text, size_t length) {
    json_t *string = json_stringn(text, length);
    if (string) return string;
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    for (size_t i = 0; i < length; i++) copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    string = json_stringn(copy, length);
    free(copy);
    return string;
}

json_t *json_ids(const int32_t *ids, size_t n) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < n; i++)
        if (json_array_append_new(array, json_integer(ids[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

json_t *json_spread(double median, double least, double most) {
    return json_pack("{s:f, s:f, s:f}", "median", median, "min", least, "max", most);
}

static int write_out(const char *text, size_t length, void *user) {
    (void)user;
    return output_text(text, length) ? -1 : 0;
}

int json_print_part(json_t *object, size_t flags) {
    if (!object) return fail("--json: out of memory");
    int failed = json_dump_callback(object, write_out, NULL, JSON_REAL_PRECISION(9) | flags);
    json_decref(object);
    return failed ? CLI_FAILED : CLI_OK;
}

int json_print(json_t *object) {
    int code = json_print_part(object, 0);
    return code ? code : output_text("\n", 1);
}
