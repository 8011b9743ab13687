#include "tests/checkpoint_writer.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void writer_init(struct checkpoint_writer *w) {
    *w = (struct checkpoint_writer){json_object(), json_object(), NULL, 0};
}

/* Room doubles: growing by each tensor copies everything each time where realloc always moves (sanitizers). */
static size_t room_for(size_t bytes) {
    size_t room = 1 << 16;
    while (room < bytes) room *= 2;
    return room;
}

void writer_add(struct checkpoint_writer *w, const char *name, const char *dtype, size_t rank, const size_t *shape,
                const void *data) {
    size_t bytes = !strcmp(dtype, "F32") ? 4 : !strcmp(dtype, "U8") ? 1 : 2;
    json_t *dims = json_array();
    for (size_t i = 0; i < rank; i++) {
        bytes *= shape[i];
        json_array_append_new(dims, json_integer((json_int_t)shape[i]));
    }
    json_object_set_new(w->header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", dims, "data_offsets",
                                  (json_int_t)w->bytes, (json_int_t)(w->bytes + bytes)));
    if (!w->data || room_for(w->bytes + bytes) > room_for(w->bytes)) w->data = realloc(w->data, room_for(w->bytes + bytes));
    ck_assert_ptr_nonnull(w->data);
    memcpy(w->data + w->bytes, data, bytes);
    w->bytes += bytes;
}

void writer_fill(struct checkpoint_writer *w, const char *name, size_t rows, size_t cols, float value) {
    if (json_object_get(w->header, name)) return;
    size_t shape[2] = {rows, cols}, n = cols ? rows * cols : rows;
    float *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) data[i] = value;
    writer_add(w, name, "F32", cols ? 2 : 1, shape, data);
    free(data);
}

void writer_save(struct checkpoint_writer *w, char *dir) {
    char path[128];
    strcpy(dir, "/tmp/k3-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/config.json", dir);
    ck_assert_int_eq(json_dump_file(w->config, path, 0), 0);
    char *header = json_dumps(w->header, JSON_COMPACT);
    uint64_t length = strlen(header);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(&length, sizeof length, 1, f); /* tests run on little-endian machines */
    fwrite(header, 1, length, f);
    fwrite(w->data, 1, w->bytes, f);
    ck_assert_int_eq(fclose(f), 0);
    free(header);
    free(w->data);
    json_decref(w->config);
    json_decref(w->header);
}

void writer_remove(const char *dir) {
    char path[128];
    snprintf(path, sizeof path, "%s/config.json", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    unlink(path);
    rmdir(dir);
}
