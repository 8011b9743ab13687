/* Checkpoint directories, good and broken: what is found in them, and whom the message names. */
#include "format/safetensors.h"

#include "base/file.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static char dir[64];

static void make_dir(void) {
    strcpy(dir, "/tmp/k3-safetensors-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void empty_dir(void) {
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlink(path) && rmdir(path)) ck_abort();
    }
    closedir(d);
}

static void remove_dir(void) {
    empty_dir();
    rmdir(dir);
}

static char *in_dir(const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(in_dir(name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

static void write_text(const char *name, const char *text) {
    write_file(name, text, strlen(text));
}

/* A shard with a header that claims to have `length` bytes, and data of zeros. */
static void write_raw(const char *name, const char *header, size_t n, uint64_t length, uint64_t data) {
    unsigned char raw[8];
    for (int i = 0; i < 8; i++) raw[i] = (unsigned char)(length >> 8 * i);
    FILE *f = fopen(in_dir(name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(raw, 1, 8, f), 8);
    ck_assert_uint_eq(fwrite(header, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(truncate(in_dir(name), (off_t)(8 + n + data)), 0);
}

static void write_shard(const char *name, const char *header, uint64_t data) {
    write_raw(name, header, strlen(header), strlen(header), data);
}

static struct k3_tensors *open_good(void) {
    struct k3_tensors *t = NULL;
    k3_error err = {0};
    k3_status status = k3_tensors_open(dir, &t, &err);
    ck_assert_msg(status == K3_OK, "%s", err.text);
    ck_assert_ptr_nonnull(t);
    ck_assert_str_eq(k3_tensors_dir(t), dir);
    return t;
}

/* Opening fails with that status and one line that has both words (NULL: anything). */
static void expect_bad(const char *what, k3_status wanted, const char *one, const char *two) {
    struct k3_tensors *t = (void *)dir; /* stays as it is */
    k3_error err = {0};
    k3_status status = k3_tensors_open(dir, &t, &err);
    ck_assert_msg(status == wanted, "%s: status %d, '%s'", what, (int)status, err.text);
    ck_assert_ptr_eq(t, dir);
    ck_assert_msg(strstr(err.text, dir) == err.text, "%s: '%s' does not begin with the directory", what, err.text);
    ck_assert_msg(!one || strstr(err.text, one), "%s: '%s' lacks '%s'", what, err.text, one);
    ck_assert_msg(!two || strstr(err.text, two), "%s: '%s' lacks '%s'", what, err.text, two);
    ck_assert_msg(!strpbrk(err.text, "\n\r\x1b"), "%s: '%s' is not one line", what, err.text);
    ck_assert_int_eq(k3_tensors_open(dir, &t, NULL), wanted);
}

static const struct k3_tensor *get(const struct k3_tensors *t, const char *name) {
    const struct k3_tensor *x = k3_tensors_find(t, name, strlen(name));
    ck_assert_msg(x != NULL, "%s", name);
    ck_assert_uint_eq(x->name_length, strlen(name));
    ck_assert_int_eq(memcmp(x->name, name, x->name_length), 0);
    for (uint64_t i = 0; i < k3_tensors_count(t) && i < 8; i++) /* the same from everywhere */
        ck_assert_ptr_eq(k3_tensors_find_near(t, k3_tensors_at(t, i), name, x->name_length), x);
    return x;
}

#define T(name, dtype, shape, begin, end)                                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"
#define A T("a", "F32", "[2]", 0, 8)

/* ---- headers ---- */

static const struct bad_header {
    const char *what, *header;
    uint64_t data;
    const char *one, *two;
} bad_headers[] = {
    {"no JSON", "x", 0, SINGLE ": byte 0", "object"},
    {"an array", "[]", 0, SINGLE, "object"},
    {"nothing", "", 0, SINGLE, "too early"},
    {"blanks", "    ", 0, SINGLE, "too early"},
    {"cut", "{" A, 8, SINGLE, "too early"},
    {"two objects", "{" A "}{}", 8, SINGLE, "behind the end"},
    {"zero behind the end", "{" A "} \1", 8, SINGLE, "behind the end"},
    {"no comma", "{" A A "}", 8, SINGLE, "','"},
    {"comma at the end", "{" A ",}", 8, SINGLE, "string"},
    {"no colon", "{\"a\" 1}", 0, SINGLE, "':'"},
    {"a name that is no string", "{1:2}", 0, SINGLE, "string"},
    {"a tensor that is a number", "{\"a\":1}", 0, "tensor a", "object"},
    {"a name that is not UTF-8", "{" T("x\xff\xfe", "F32", "[2]", 0, 8) "}", 8, SINGLE, "UTF-8"},
    {"a name that is cut UTF-8", "{" T("x\xe4\xb8", "F32", "[2]", 0, 8) "}", 8, SINGLE, "UTF-8"},
    {"a surrogate in UTF-8", "{" T("\xed\xa0\x80", "F32", "[2]", 0, 8) "}", 8, SINGLE, "UTF-8"},
    {"half a surrogate pair", "{" T("\\ud83d", "F32", "[2]", 0, 8) "}", 8, SINGLE, "surrogate"},
    {"a zero byte", "{" T("a\\u0000b", "F32", "[2]", 0, 8) "}", 8, SINGLE, "zero"},
    {"a newline in a name", "{" T("a\nb", "F32", "[2]", 0, 8) "}", 8, SINGLE, "control"},
    {"an escaped newline in a bad tensor", "{" T("a\\nb", "F32", "[3]", 0, 8) "}", 8, "tensor a?b", "12"},
    {"an unknown escape", "{" T("a\\x", "F32", "[2]", 0, 8) "}", 8, SINGLE, "escape"},
    {"deep",
     "{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1", 0, SINGLE, "deep"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__", "twice"},
    {"a tensor twice", "{" A "," T("a", "F32", "[2]", 8, 16) "}", 16, "tensor a", "twice"},
    {"the same name spelled otherwise", "{" A "," T("\\u0061", "F32", "[2]", 8, 16) "}", 16, "tensor a", "twice"},
    {"no dtype", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor a", "no dtype"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "tensor a", "no shape"},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "tensor a", "no data_offsets"},
    {"shape twice", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor a",
     "shape is given twice"},
    {"unknown dtype", "{" T("a", "Q4_K", "[2]", 0, 8) "}", 8, "tensor a", "Q4_K"},
    {"dtype in small letters", "{" T("a", "f32", "[2]", 0, 8) "}", 8, "tensor a", "f32"},
    {"dtype is a number", "{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor a", "string"},
    {"shape is a string", "{" T("a", "F32", "\"2\"", 0, 8) "}", 8, "tensor a", "array"},
    {"a negative size", "{" T("a", "F32", "[-2]", 0, 8) "}", 8, "tensor a", "negative"},
    {"two negative sizes", "{" T("a", "F32", "[-2,-1]", 0, 8) "}", 8, "tensor a", "negative"},
    {"a fraction", "{" T("a", "F32", "[2.0]", 0, 8) "}", 8, "tensor a", "not whole"},
    {"an exponent", "{" T("a", "F32", "[2e0]", 0, 8) "}", 8, "tensor a", "not whole"},
    {"a leading zero", "{" T("a", "F32", "[02]", 0, 8) "}", 8, "tensor a", "leading zero"},
    {"a size of 2^64", "{" T("a", "F32", "[18446744073709551616]", 0, 8) "}", 8, "tensor a", "2^64"},
    {"a size of 60 digits",
     "{" T("a", "F32", "[111111111122222222223333333333444444444455555555556666666666]", 0, 8) "}",
     8, "tensor a", "2^64"},
    {"a product that overflows", "{" T("a", "U8", "[4294967296,4294967296,8]", 0, 8) "}", 8, "tensor a", "overflows"},
    {"a product that overflows to the right size", "{" T("a", "U8", "[8589934592,2147483649]", 0, 8589934592) "}", 8,
     "tensor a", "overflows"},
    {"bytes that overflow", "{" T("a", "F64", "[2305843009213693953]", 0, 8) "}", 8, "tensor a", "overflows"},
    {"rank 9", "{" T("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}", 8, "tensor a", "dimensions"},
    {"too few bytes", "{" T("a", "BF16", "[2,3]", 0, 8) "}", 8, "tensor a", "takes 12 bytes, its data_offsets hold 8"},
    {"rank 0 of 8 bytes", "{" T("a", "F32", "[]", 0, 8) "}", 8, "tensor a", "takes 4"},
    {"half a byte", "{" T("a", "F4", "[3]", 0, 1) "}", 1, "tensor a", "takes 2"},
    {"one offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8]}}", 8, "tensor a", "fewer than two"},
    {"three offsets",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, "tensor a", "more than two"},
    {"negative offsets", "{" T("a", "F32", "[2]", -8, 0) "}", 8, "tensor a", "negative"},
    {"backward offsets", "{" T("a", "F32", "[2]", 8, 0) "}", 8, "tensor a", "[8, 0]"},
    {"offsets near 2^64", "{" T("a", "F32", "[2]", 18446744073709551607, 18446744073709551615) "}", 8, "tensor a",
     "18446744073709551615"},
    {"beyond the file", "{" T("a", "F32", "[2]", 1000, 1008) "}", 8, "last tensor a", "1076"},
    {"an empty one beyond the file", "{" A "," T("b", "F32", "[0]", 99, 99) "}", 8, "last tensor b", "bytes, but"},
    {"cut by a byte", "{" A "}", 7, "last tensor a", "has 69 bytes"},
    {"a byte too many", "{" A "}", 9, "last tensor a", "has 71 bytes"},
    {"no tensor, but data", "{}", 3, "has 13 bytes", "describes 10"},
    {"the same place", "{" A "," T("b", "F32", "[2]", 0, 8) "}", 8, "tensors a and b", "overlap"},
    {"overlapping by a byte", "{" A "," T("b", "U8", "[3]", 7, 10) "}", 10, "tensors a and b", "overlap"},
    {"overlapping out of order",
     "{" T("z", "U8", "[4]", 8, 12) "," T("b", "U8", "[5]", 4, 9) "," T("y", "U8", "[4]", 0, 4) "}",
     12, "tensors b and z", "overlap"},
    {"one within another",
     "{" T("z", "U8", "[12]", 0, 12) "," T("b", "U8", "[2]", 4, 6) "," T("c", "U8", "[1]", 11, 12) "}",
     12, "tensors z and b", "overlap"},
};

START_TEST(test_bad_header) {
    const struct bad_header *b = &bad_headers[_i];
    write_shard(SINGLE, b->header, b->data);
    expect_bad(b->what, K3_ERR_FORMAT, b->one, b->two);
    /* The same as one of two shards. */
    empty_dir();
    write_shard("a.safetensors", b->header, b->data);
    write_shard("b.safetensors", "{" T("g", "U8", "[1]", 0, 1) "}", 1);
    write_text(INDEX, "{\"weight_map\":{\"g\":\"b.safetensors\",\"a\":\"a.safetensors\"}}");
    expect_bad(b->what, K3_ERR_FORMAT, "a.safetensors", b->two);
}
END_TEST

static const struct bad_length {
    const char *what;
    uint64_t length, bytes; /* claimed; really there */
    const char *one;
} bad_lengths[] = {
    {"2^63", UINT64_C(1) << 63, 100, "9223372036854775808"},
    {"2^64 - 1", UINT64_MAX, 100, "18446744073709551615"},
    {"2^64 - 8", UINT64_MAX - 7, 100, "18446744073709551608"},
    {"0", 0, 100, "too early"},
    {"1", 1, 100, "too early"},
    {"a byte beyond the file", 101, 100, "101 bytes in a file of 108"},
    {"a gigabyte that is there", UINT64_C(1) << 30, UINT64_C(1) << 31, "1073741824"},
};

START_TEST(test_bad_length) {
    const struct bad_length *b = &bad_lengths[_i];
    write_raw(SINGLE, "{", 1, b->length, b->bytes - 1);
    expect_bad(b->what, K3_ERR_FORMAT, SINGLE, b->one);
}
END_TEST

START_TEST(test_long_name) {
    size_t n = 300000;
    char *header = malloc(n + 100);
    ck_assert_ptr_nonnull(header);
    strcpy(header, "{\"");
    memset(header + 2, 'x', n);
    strcpy(header + 2 + n, "\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}");
    write_shard(SINGLE, header, 8);
    expect_bad("a long name", K3_ERR_FORMAT, "tensor xxxx", "takes 12 bytes");
    *strstr(header, "[3]") = '[';
    memcpy(strstr(header, "[3]"), "[2]", 3);
    write_shard(SINGLE, header, 8);
    struct k3_tensors *t = open_good();
    ck_assert_uint_eq(k3_tensors_at(t, 0)->name_length, n);
    k3_tensors_close(t);
    free(header);
}
END_TEST

/* ---- the files of the directory ---- */

#define B_INDEX "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\"}}"

/* Two good shards and an index. */
static void write_two(void) {
    write_shard("1.st", "{" A "}", 8);
    write_shard("2.st", "{" T("b", "U8", "[3]", 0, 3) "}", 3);
    write_text(INDEX, B_INDEX);
}

START_TEST(test_no_files) {
    expect_bad("an empty directory", K3_ERR_IO, INDEX, "no ");
    struct k3_tensors *t = NULL;
    k3_error err = {0};
    ck_assert_int_eq(k3_tensors_open("/nonexistent/x", &t, &err), K3_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/x"));
    ck_assert_ptr_null(t);
}
END_TEST

/* What may stand where a file should: never waits, never crashes, names the file. */
static void odd_files(const char *name) {
    ck_assert_int_eq(unlink(in_dir(name)), 0);
    ck_assert_int_eq(mkdir(in_dir(name), 0700), 0);
    expect_bad("a directory", K3_ERR_IO, name, "not a regular file");
    ck_assert_int_eq(rmdir(in_dir(name)), 0);
    ck_assert_int_eq(mkfifo(in_dir(name), 0600), 0);
    expect_bad("a fifo", K3_ERR_IO, name, "not a regular file");
    ck_assert_int_eq(unlink(in_dir(name)), 0);
    ck_assert_int_eq(symlink("/dev/zero", in_dir(name)), 0);
    expect_bad("a device", K3_ERR_IO, name, "not a regular file");
    ck_assert_int_eq(unlink(in_dir(name)), 0);
    ck_assert_int_eq(symlink(name, in_dir(name)), 0);
    expect_bad("a link to itself", K3_ERR_IO, name, "symbolic links");
    ck_assert_int_eq(unlink(in_dir(name)), 0);
    write_file(name, "", 0);
    expect_bad("an empty file", K3_ERR_FORMAT, name, NULL);
    write_file(name, "1234567", 7);
    expect_bad("7 bytes", K3_ERR_FORMAT, name, NULL);
}

START_TEST(test_odd_single) {
    write_shard(SINGLE, "{" A "}", 8);
    odd_files(SINGLE);
}
END_TEST

START_TEST(test_odd_shard) {
    write_two();
    odd_files("2.st");
    ck_assert_int_eq(unlink(in_dir("2.st")), 0);
    expect_bad("a missing shard", K3_ERR_IO, "2.st", "No such file");
    ck_assert_int_eq(symlink("nowhere", in_dir("2.st")), 0);
    expect_bad("a link to nothing", K3_ERR_IO, "2.st", "No such file");
}
END_TEST

START_TEST(test_odd_index) {
    write_two();
    odd_files(INDEX);
    ck_assert_int_eq(truncate(in_dir(INDEX), (off_t)3 << 30), 0);
    expect_bad("a huge index", K3_ERR_FORMAT, INDEX, "3221225472");
}
END_TEST

START_TEST(test_unreadable) {
    if (geteuid() == 0) return; /* may read anything */
    write_two();
    chmod(in_dir("1.st"), 0);
    expect_bad("no permission", K3_ERR_IO, "1.st", "ermission");
}
END_TEST

static const struct bad_index {
    const char *what, *text, *one, *two;
    k3_status status;
} bad_indices[] = {
    {"no object", "[]", INDEX, "object", K3_ERR_FORMAT},
    {"cut", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.s", INDEX, "without an end", K3_ERR_FORMAT},
    {"cut later", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\"}", INDEX, "too early", K3_ERR_FORMAT},
    {"text behind the end", B_INDEX "x", INDEX, "behind the end", K3_ERR_FORMAT},
    {"no weight_map", "{\"metadata\":{\"weight_map\":{}}}", INDEX, "no weight_map", K3_ERR_FORMAT},
    {"an empty weight_map", "{\"weight_map\":{}}", INDEX, "empty", K3_ERR_FORMAT},
    {"weight_map twice", "{\"weight_map\":{\"a\":\"1.st\"},\"weight_map\":{\"b\":\"2.st\"}}", INDEX, "twice",
     K3_ERR_FORMAT},
    {"weight_map is an array", "{\"weight_map\":[]}", INDEX, "weight_map: expected an object", K3_ERR_FORMAT},
    {"a shard that is a number", "{\"weight_map\":{\"a\":1}}", INDEX, "expected a string", K3_ERR_FORMAT},
    {"deep metadata", "{\"metadata\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", INDEX, "deep",
     K3_ERR_FORMAT},
    {"a name that is not UTF-8", "{\"weight_map\":{\"a\xff\":\"1.st\"}}", INDEX, "UTF-8", K3_ERR_FORMAT},
    {"a path up", "{\"weight_map\":{\"a\":\"../1.st\"}}", INDEX, "'../1.st'", K3_ERR_FORMAT},
    {"a path", "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", INDEX, "'/etc/passwd'", K3_ERR_FORMAT},
    {"a hidden slash", "{\"weight_map\":{\"a\":\"x\\u002f1.st\"}}", INDEX, "'x/1.st'", K3_ERR_FORMAT},
    {"the directory above", "{\"weight_map\":{\"a\":\"..\"}}", INDEX, "'..'", K3_ERR_FORMAT},
    {"the directory itself", "{\"weight_map\":{\"a\":\".\"}}", INDEX, "'.'", K3_ERR_FORMAT},
    {"no name", "{\"weight_map\":{\"a\":\"\"}}", INDEX, "''", K3_ERR_FORMAT},
    {"an absent shard", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"3.st\"}}", "3.st", "No such file", K3_ERR_IO},
    {"the first of two absent shards", "{\"weight_map\":{\"b\":\"4.st\",\"c\":\"3.st\"}}", "3.st", NULL, K3_ERR_IO},
    {"a tensor in another shard",
     "{\"weight_map\":{\"b\":\"1.st\",\"a\":\"2.st\"}}", "tensor b", "in 2.st, not in 1.st",
     K3_ERR_FORMAT},
    {"a tensor nowhere", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\",\"imaginary\":\"2.st\"}}", "tensor imaginary",
     "not in 2.st", K3_ERR_FORMAT},
    {"a tensor twice", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\",\"b\":\"2.st\"}}", "tensor b", "twice",
     K3_ERR_FORMAT},
    {"a tensor twice, spelled otherwise", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\",\"\\u0061\":\"1.st\"}}",
     "tensor a", "twice", K3_ERR_FORMAT},
};

START_TEST(test_bad_index) {
    const struct bad_index *b = &bad_indices[_i];
    write_two();
    write_text(INDEX, b->text);
    expect_bad(b->what, b->status, b->one, b->two);
}
END_TEST

START_TEST(test_in_two_shards) {
    write_two();
    write_shard("2.st", "{" T("b", "U8", "[3]", 0, 3) "," T("a", "U8", "[1]", 3, 4) "}", 4);
    expect_bad("a tensor in two shards", K3_ERR_FORMAT, "tensor a", "1.st and in 2.st");
}
END_TEST

/* An index larger than the window it is read through, with an error far into it. */
START_TEST(test_long_index) {
    enum { N = 20000 };
    char *header = malloc(N * 100), *index = malloc(N * 100);
    size_t h = 0, x = 0;
    ck_assert(header && index);
    for (unsigned i = 0; i < N; i++)
        h += (size_t)sprintf(header + h, "%c\"layers.%u.w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                             i ? ',' : '{', i, i, i + 1);
    strcpy(header + h, "}");
    write_shard("1.st", header, N);
    x = (size_t)sprintf(index, "{ \"metadata\": {\"total_size\": %d}, \"weight_map\"%*s: {", N, 1000, "");
    for (unsigned i = 0; i < N; i++) /* backwards, and with blanks */
        x += (size_t)sprintf(index + x, "%s\n \"layers.%u.w\": \"1.st\"", i ? "," : "", N - 1 - i);
    strcpy(index + x, " } }\n");
    write_text(INDEX, index);
    ck_assert_uint_gt(strlen(index), (size_t)500000);
    struct k3_tensors *t = open_good();
    ck_assert_uint_eq(k3_tensors_count(t), N);
    for (unsigned i = 0; i < N; i++) {
        char name[40];
        snprintf(name, sizeof name, "layers.%u.w", i);
        ck_assert_ptr_eq(get(t, name), k3_tensors_at(t, i));
        ck_assert_uint_eq(get(t, name)->offset, 8 + strlen(header) + i);
    }
    k3_tensors_close(t);
    memcpy(strstr(index, "layers.17.w"), "lawyer", 6);
    memcpy(strstr(index, "layers.11.w"), "prayer", 6); /* behind it: not the first */
    write_text(INDEX, index);
    expect_bad("a wrong name far into the index", K3_ERR_FORMAT, "tensor lawyer.17.w", "not in 1.st");
    memcpy(strstr(index, "lawyer.17.w"), "layers", 6);
    memcpy(strstr(index, "prayer.11.w"), "layers", 6);
    memcpy(strstr(index, "layers.12345.w"), "layers.12346.w", 14);
    write_text(INDEX, index);
    expect_bad("a name twice, far into the index", K3_ERR_FORMAT, "tensor layers.12346.w", "twice");
    char *at = strstr(index, "\"layers.21.w\": \"1.st\"");
    memcpy(at, "                     ", 21);
    write_text(INDEX, index);
    char byte[40];
    snprintf(byte, sizeof byte, INDEX ": byte %zu:", (size_t)(strchr(at, ',') - index));
    expect_bad("broken far into the index", K3_ERR_FORMAT, byte, "expected a string");
    free(header);
    free(index);
}
END_TEST

/* ---- what is valid ---- */

static const struct good_header {
    const char *what, *header, *name, *dtype;
    uint64_t data;
    unsigned rank;
    uint64_t bytes, first_size;
} good_headers[] = {
    {"a vector", "{" A "}", "a", "F32", 8, 1, 8, 2},
    {"blanks everywhere",
     " \n{ \t\"a\" : { \"dtype\" : \"F32\" , \"shape\" : [ 2 ] , \"data_offsets\" : [ 0 , 8 ] } } \r\n  ",
     "a", "F32", 8, 1, 8, 2},
    {"another order, and more",
     "{\"a\":{\"data_offsets\":[0,8],\"x\":[{\"y\":-1.5e+3}],\"shape\":[2],\"dtype\":\"F32\"}}",
     "a", "F32", 8, 1, 8, 2},
    {"metadata",
     "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\\u00e4\\ud83d\\ude00\"}," A "}", "a", "F32", 8, 1, 8, 2},
    {"rank 0", "{" T("a", "F64", "[]", 0, 8) "}", "a", "F64", 8, 0, 8, 0},
    {"rank 5", "{" T("a", "BF16", "[1,2,1,3,1]", 0, 12) "}", "a", "BF16", 12, 5, 12, 1},
    {"rank 8", "{" T("a", "U8", "[3,1,1,1,1,1,1,2]", 0, 6) "}", "a", "U8", 6, 8, 6, 3},
    {"an empty one", "{" T("a", "BF16", "[0,7168]", 0, 0) "}", "a", "BF16", 0, 2, 0, 0},
    {"an empty one among others",
     "{" T("x", "U8", "[4]", 0, 4) "," T("a", "U8", "[0]", 2, 2) "}", "a", "U8", 4, 1, 0, 0},
    {"a gap before", "{" T("a", "U8", "[4]", 4, 8) "}", "a", "U8", 8, 1, 4, 4},
    {"backwards", "{" T("x", "U8", "[4]", 2, 6) "," T("a", "U8", "[2]", 0, 2) "}", "a", "U8", 6, 1, 2, 2},
    {"FP8", "{" T("a", "F8_E4M3", "[3]", 0, 3) "}", "a", "F8_E4M3", 3, 1, 3, 3},
    {"four bits", "{" T("a", "F4", "[3,2]", 0, 3) "}", "a", "F4", 3, 2, 3, 3},
    {"integers", "{" T("a", "I64", "[3]", 0, 24) "}", "a", "I64", 24, 1, 24, 3},
    {"an escaped name", "{" T("\\u4e2d\\t\\\"\\/", "I16", "[3]", 0, 6) "}", "中\t\"/", "I16", 6, 1, 6, 3},
    {"a name of UTF-8",
     "{" T("中文\xf0\x9f\x98\x80", "BOOL", "[3]", 0, 3) "}", "中文\xf0\x9f\x98\x80", "BOOL", 3, 1, 3, 3},
    {"no name", "{" T("", "U16", "[3]", 0, 6) "}", "", "U16", 6, 1, 6, 3},
    {"2^40 bytes", "{" T("a", "U8", "[1099511627776]", 0, 1099511627776) "}", "a", "U8", UINT64_C(1) << 40, 1,
     UINT64_C(1) << 40, UINT64_C(1) << 40},
};

START_TEST(test_good_header) {
    const struct good_header *g = &good_headers[_i];
    write_shard(SINGLE, g->header, g->data);
    struct k3_tensors *t = open_good();
    const struct k3_tensor *x = get(t, g->name);
    ck_assert_str_eq(k3_dtype_name(x), g->dtype);
    ck_assert_uint_eq(x->rank, g->rank);
    ck_assert_uint_eq(x->bytes, g->bytes);
    ck_assert_uint_eq(x->shape[0], g->first_size);
    ck_assert_uint_eq(x->shard, 0);
    ck_assert_uint_eq(k3_tensors_shards(t), 1);
    ck_assert_str_eq(k3_tensors_shard(t, 0)->name, SINGLE);
    ck_assert_uint_eq(k3_tensors_shard(t, 0)->bytes, 8 + strlen(g->header) + g->data);
    ck_assert_ptr_null(k3_tensors_find(t, "b", 1));
    ck_assert_ptr_null(k3_tensors_find_near(t, x, "b", 1));
    ck_assert_ptr_null(k3_tensors_find(t, "__metadata__", 12));
    k3_tensors_close(t);
}
END_TEST

START_TEST(test_no_tensors) {
    write_shard(SINGLE, "{}", 0);
    struct k3_tensors *t = open_good();
    ck_assert_uint_eq(k3_tensors_count(t), 0);
    ck_assert_ptr_null(k3_tensors_find(t, "a", 1));
    k3_tensors_close(t);
}
END_TEST

START_TEST(test_dtypes) {
    write_shard(SINGLE, "{" T("a", "BF16", "[1]", 0, 2) "," T("b", "F16", "[1]", 2, 4) ","
                T("c", "F32", "[1]", 4, 8) ","
                T("d", "U8", "[1]", 8, 9) "," T("e", "I8", "[1]", 9, 10) "}", 10);
    struct k3_tensors *t = open_good();
    static const uint8_t wanted[] = {K3_DTYPE_BF16, K3_DTYPE_F16, K3_DTYPE_F32, K3_DTYPE_U8, K3_DTYPE_OTHER};
    ck_assert_uint_eq(k3_tensors_count(t), 5);
    for (unsigned i = 0; i < 5; i++) ck_assert_uint_eq(k3_tensors_at(t, i)->dtype, wanted[i]);
    k3_tensors_close(t);
}
END_TEST

/* Shards are in the order of their names, whatever the index says; what it does not say is there too. */
START_TEST(test_two_shards) {
    write_two();
    write_shard("2.st", "{" T("b", "U8", "[3]", 0, 3) "," T("more", "U8", "[1]", 3, 4) "}", 4);
    write_shard(SINGLE, "broken", 0); /* not looked at where there is an index */
    write_text(INDEX, "{\"weight_map\":{\"b\":\"2.st\",\"a\":\"1.st\"},\"metadata\":{}}");
    struct k3_tensors *t = open_good();
    ck_assert_uint_eq(k3_tensors_shards(t), 2);
    ck_assert_str_eq(k3_tensors_shard(t, 0)->name, "1.st");
    ck_assert_str_eq(k3_tensors_shard(t, 1)->name, "2.st");
    ck_assert_uint_eq(k3_tensors_count(t), 3);
    ck_assert_ptr_eq(k3_tensors_at(t, 0), get(t, "a"));
    ck_assert_ptr_eq(k3_tensors_at(t, 1), get(t, "b"));
    ck_assert_ptr_eq(k3_tensors_at(t, 2), get(t, "more"));
    ck_assert_uint_eq(get(t, "more")->shard, 1);
    k3_tensors_close(t);
}
END_TEST

/* More shards than threads, some without tensors, and more of them than fit between two hints. */
START_TEST(test_many_shards) {
    enum { N = 1200 };
    char *index = malloc(N * 60), name[40], header[120];
    size_t x = (size_t)sprintf(index, "{\"weight_map\":{\"t0\":\"0000.st\"");
    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%04u.st", i);
        snprintf(header, sizeof header, "{\"t%u\":{\"dtype\":\"U8\",\"shape\":[%u],\"data_offsets\":[0,%u]}}", i, i, i);
        write_shard(name, i % 7 == 3 ? "{}" : header, i % 7 == 3 ? 0 : i);
        if (i && i % 7 != 3) x += (size_t)sprintf(index + x, ",\"t%u\":\"%s\"", i, name);
    }
    strcpy(index + x, "}}");
    write_text(INDEX, index);
    struct k3_tensors *t = open_good();
    uint64_t count = 0;
    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t%u", i);
        if (i % 7 == 3) continue;
        ck_assert_ptr_eq(k3_tensors_at(t, count++), get(t, name));
        ck_assert_uint_eq(get(t, name)->bytes, i);
        snprintf(name, sizeof name, "%04u.st", i);
        ck_assert_str_eq(k3_tensors_shard(t, k3_tensors_at(t, count - 1)->shard)->name, name);
    }
    ck_assert_uint_eq(k3_tensors_count(t), count);
    k3_tensors_close(t);
    /* Of several bad shards, always the first is named. */
    for (unsigned i = 502; i < N; i += 3) {
        snprintf(name, sizeof name, "%04u.st", i);
        if (i % 7 != 3) ck_assert_int_eq(truncate(in_dir(name), 5), 0);
    }
    for (int i = 0; i < 20; i++) expect_bad("many bad shards", K3_ERR_FORMAT, "0502.st", NULL);
    free(index);
}
END_TEST

START_TEST(test_golden) {
    char path[500];
    const char *source = getenv("K3_SRCDIR");
    struct k3_tensors *t = NULL;
    k3_error err = {0};
    snprintf(path, sizeof path, "%s/tests/data/models/k3-tiny", source ? source : ".");
    ck_assert_msg(k3_tensors_open(path, &t, &err) == K3_OK, "%s", err.text);
    ck_assert_uint_eq(k3_tensors_count(t), 1492);
    ck_assert_uint_eq(k3_tensors_shards(t), 14);
    const struct k3_tensor *x = get(t, "language_model.model.layers.1.self_attn.q_proj.weight");
    ck_assert_uint_eq(x->rank, 2);
    ck_assert_uint_eq(x->shape[0], 96);
    ck_assert_uint_eq(x->shape[1], 128);
    ck_assert_uint_eq(x->dtype, K3_DTYPE_BF16);
    ck_assert_str_eq(k3_tensors_shard(t, x->shard)->name, "model-00002-of-000014.safetensors");
    k3_tensors_close(t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("safetensors");
    TCase *good = tcase_create("good"), *bad = tcase_create("bad");
    tcase_add_checked_fixture(good, make_dir, remove_dir);
    tcase_add_checked_fixture(bad, make_dir, remove_dir);
    tcase_set_timeout(good, 60);
    tcase_set_timeout(bad, 60);
    tcase_add_loop_test(good, test_good_header, 0, COUNT(good_headers));
    tcase_add_test(good, test_no_tensors);
    tcase_add_test(good, test_dtypes);
    tcase_add_test(good, test_two_shards);
    tcase_add_test(good, test_many_shards);
    tcase_add_test(good, test_golden);
    tcase_add_loop_test(bad, test_bad_header, 0, COUNT(bad_headers));
    tcase_add_loop_test(bad, test_bad_length, 0, COUNT(bad_lengths));
    tcase_add_test(bad, test_long_name);
    tcase_add_test(bad, test_no_files);
    tcase_add_test(bad, test_odd_single);
    tcase_add_test(bad, test_odd_shard);
    tcase_add_test(bad, test_odd_index);
    tcase_add_test(bad, test_unreadable);
    tcase_add_loop_test(bad, test_bad_index, 0, COUNT(bad_indices));
    tcase_add_test(bad, test_in_two_shards);
    tcase_add_test(bad, test_long_index);
    suite_add_tcase(s, good);
    suite_add_tcase(s, bad);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
