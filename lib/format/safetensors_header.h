/* The header of one safetensors file, in memory. */
#ifndef K3_FORMAT_SAFETENSORS_HEADER_H
#define K3_FORMAT_SAFETENSORS_HEADER_H

#include "format/json_scan.h"
#include "format/safetensors.h"

#define K3_HEADER_MAX 100000000 /* bytes; the format's own limit */

/* Grows, and serves one header after another. */
struct k3_header {
    struct k3_tensor *tensor; /* [count], in the order of the text */
    uint64_t *hash;           /* [count] of the names */
    uint32_t count, room;
    size_t name_bytes; /* of all names, which lie one after another at the start of the text */
};

/* Parses text [length], which is overwritten: the tensors' names point into it.  data_start: where
 * the data begins in the file; file_bytes: its size, which must be what the header says.
 * Everything is checked but that names are unique. */
k3_status k3_header_parse(struct k3_header *h, const char *file, char *text, size_t length, uint64_t data_start,
                          uint64_t file_bytes, k3_error *err);
void k3_header_clear(struct k3_header *h);

/* Names in messages: not all of a name that fills the line. */
static inline int k3_shown(uint64_t name_length) { return name_length < 200 ? (int)name_length : 200; }

#endif
