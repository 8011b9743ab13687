/* Writes small checkpoints for tests: config.json and one model.safetensors. */
#ifndef K3_TESTS_CHECKPOINT_WRITER_H
#define K3_TESTS_CHECKPOINT_WRITER_H

#include <jansson.h>
#include <stddef.h>

struct checkpoint_writer {
    json_t *config, *header;
    char *data;
    size_t bytes;
};

void writer_init(struct checkpoint_writer *w);

/* dtype "F32", "BF16", "U8"; data: product(shape) elements of that type. */
void writer_add(struct checkpoint_writer *w, const char *name, const char *dtype, size_t rank, const size_t *shape,
                const void *data);

/* An F32 matrix (or vector, if cols is 0) with every element `value`; does nothing if the name is taken. */
void writer_fill(struct checkpoint_writer *w, const char *name, size_t rows, size_t cols, float value);

/* Writes into a new directory, whose name is left in dir[64]; frees the writer. */
void writer_save(struct checkpoint_writer *w, char *dir);

void writer_remove(const char *dir);

#endif
