#include "format/safetensors.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "format/name_map.h"
#include "format/safetensors_header.h"
#include "format/safetensors_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"
#define INDEX_MAX ((uint64_t)1 << 30) /* bytes; the full release has 58 MB */
#define HINT_STEP 256                 /* tensors */

/* The tensors of one shard. */
struct part {
    struct k3_tensor *tensor; /* [count]; in the arena, like their names */
    uint64_t *hash;           /* [count] of the names, until the index is checked */
    uint32_t count;
};

struct k3_tensors {
    char *dir;
    struct k3_shard *shard; /* [shards] */
    struct part *part;      /* [shards] */
    uint32_t shards, count;
    uint32_t *first; /* [shards + 1]: number of a shard's first tensor */
    uint32_t *hint;  /* [count / HINT_STEP + 1]: shard of every HINT_STEP-th tensor */
    struct k3_name_map map;
    struct k3_arena arena;
};

/* Work that threads share: what each met first, told apart by its place in the order of the work. */
struct job {
    struct k3_tensors *tensors;
    const struct k3_index *index;
    struct failure {
        uint64_t place;
        k3_status status;
        k3_error err;
    } *failure;            /* [threads] */
    struct reader *reader; /* [threads] */
    int threads;
    uint32_t next; /* the next shard to read, taken atomically */
    bool stop;     /* set and read atomically */
    uint8_t *seen; /* [count], set atomically: tensors that the index names */
    bool twice;    /* set atomically: the index names some tensor twice */
};

static bool get(const bool *flag) {
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static void set(bool *flag) {
    __atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static struct k3_tensor *tensor_at(const struct k3_tensors *t, uint32_t i) {
    uint32_t s = t->hint[i / HINT_STEP];
    while (i >= t->first[s + 1]) s++;
    return &t->part[s].tensor[i - t->first[s]];
}

static struct k3_name tensor_name(const void *tensors, uint32_t i) {
    const struct k3_tensor *t = tensor_at(tensors, i);
    return (struct k3_name){t->name, t->name_length};
}

static uint64_t tensor_hash(const void *tensors, uint32_t i) {
    const struct k3_tensors *t = tensors;
    const struct k3_tensor *tensor = tensor_at(t, i);
    const struct part *part = &t->part[tensor->shard];
    return part->hash[tensor - part->tensor];
}

static char *path_of(const char *dir, const char *name) {
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    if (path) snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static k3_status no_memory(const char *what, k3_error *err) {
    return k3_fail(err, K3_ERR_MEMORY, "%s: out of memory for its tensors", what);
}

/* ---- one shard ---- */

/* What a thread reads one shard after another with. */
struct reader {
    char *text; /* [room] */
    size_t room;
    struct k3_header header;
    struct k3_arena arena; /* what it keeps */
};

static k3_status header_length(int fd, const char *path, uint64_t file_bytes, size_t *out, k3_error *err) {
    unsigned char raw[8];
    uint64_t length = 0;
    if (file_bytes < sizeof raw)
        return k3_fail(err, K3_ERR_FORMAT, "%s: %" PRIu64 " bytes are no safetensors file", path, file_bytes);
    k3_status status = k3_file_read(fd, path, 0, raw, sizeof raw, err);
    if (status) return status;
    for (int i = 7; i >= 0; i--) length = length << 8 | raw[i];
    if (length > file_bytes - sizeof raw)
        return k3_fail(err, K3_ERR_FORMAT, "%s: a header of %" PRIu64 " bytes in a file of %" PRIu64, path, length,
                       file_bytes);
    if (length > K3_HEADER_MAX)
        return k3_fail(err, K3_ERR_FORMAT, "%s: a header of %" PRIu64 " bytes; at most %d are allowed", path, length,
                       K3_HEADER_MAX);
    *out = (size_t)length;
    return K3_OK;
}

static k3_status read_header(struct reader *r, int fd, const char *path, uint64_t file_bytes, k3_error *err) {
    size_t length = 0;
    k3_status status = header_length(fd, path, file_bytes, &length, err);
    if (status) return status;
    if (length > r->room) {
        free(r->text);
        r->room = length + length / 8;
        r->text = malloc(r->room);
        if (!r->text) {
            r->room = 0;
            return no_memory(path, err);
        }
    }
    status = k3_file_read(fd, path, 8, r->text, length, err);
    return status ? status : k3_header_parse(&r->header, path, r->text, length, 8 + length, file_bytes, err);
}

/* Moves what the reader holds into memory of its size. */
static bool keep(struct part *part, struct reader *r, uint32_t shard) {
    const struct k3_header *h = &r->header;
    char *names = k3_arena_take(&r->arena, h->name_bytes);
    part->tensor = k3_arena_take(&r->arena, h->count * sizeof *part->tensor);
    part->hash = k3_array(h->count, sizeof *part->hash);
    if (!part->tensor || !part->hash || !names) return false;
    part->count = h->count;
    if (!h->count) return true;
    memcpy(names, r->text, h->name_bytes);
    memcpy(part->tensor, h->tensor, h->count * sizeof *part->tensor);
    memcpy(part->hash, h->hash, h->count * sizeof *part->hash);
    for (uint32_t i = 0; i < h->count; i++) {
        part->tensor[i].name = names + (part->tensor[i].name - r->text);
        part->tensor[i].shard = shard;
    }
    return true;
}

static k3_status read_shard(struct k3_tensors *t, uint32_t shard, struct reader *r, k3_error *err) {
    struct k3_shard *s = &t->shard[shard];
    char *path = path_of(t->dir, s->name);
    int fd = -1;
    k3_status status = path ? k3_file_open(path, &fd, &s->bytes, err) : no_memory(t->dir, err);
    if (!status) {
        status = read_header(r, fd, path, s->bytes, err);
        close(fd);
    }
    if (!status && !keep(&t->part[shard], r, shard)) status = no_memory(path, err);
    free(path);
    return status;
}

/* ---- all shards ---- */

static void read_shards(struct k3_team *team, void *arg) {
    struct job *job = arg;
    struct failure *f = &job->failure[team->rank];
    struct reader *r = &job->reader[team->rank];
    /* Shards are taken in order, and a taken one is finished: so the first bad one is always met. */
    while (!f->status && !get(&job->stop)) {
        uint32_t shard = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (shard >= job->tensors->shards) break;
        f->place = shard;
        f->status = read_shard(job->tensors, shard, r, &f->err);
    }
    if (f->status) set(&job->stop);
    k3_header_clear(&r->header);
    free(r->text);
}

/* Runs fn on the job's threads; of what they failed with, the first in the order of the work, and its place. */
static k3_status run(struct job *job, void (*fn)(struct k3_team *team, void *arg), uint64_t *place, k3_error *err) {
    const struct failure *first = NULL;
    memset(job->failure, 0, (size_t)job->threads * sizeof *job->failure);
    k3_team_run(job->threads, fn, job);
    for (int i = 0; i < job->threads; i++) {
        const struct failure *f = &job->failure[i];
        if (f->status && (!first || f->place < first->place)) first = f;
    }
    if (!first) return K3_OK;
    if (err) *err = first->err;
    *place = first->place;
    return first->status;
}

static k3_status number_tensors(struct k3_tensors *t, k3_error *err) {
    uint64_t count = 0;
    t->first = k3_array((size_t)t->shards + 1, sizeof *t->first);
    if (!t->first) return no_memory(t->dir, err);
    for (uint32_t s = 0; s < t->shards; s++) {
        t->first[s] = (uint32_t)count;
        count += t->part[s].count;
        if (count > UINT32_MAX / 4) return k3_fail(err, K3_ERR_UNSUPPORTED, "%s: more than 2^30 tensors", t->dir);
    }
    t->first[t->shards] = t->count = (uint32_t)count;
    t->hint = k3_array(t->count / HINT_STEP + 1, sizeof *t->hint);
    if (!t->hint || !k3_name_map_reserve(&t->map, t->count)) return no_memory(t->dir, err);
    for (uint32_t i = 0, s = 0; i < t->count; i += HINT_STEP) {
        while (i >= t->first[s + 1]) s++;
        t->hint[i / HINT_STEP] = s;
    }
    return K3_OK;
}

static k3_status map_part(struct k3_tensors *t, uint32_t shard, k3_error *err) {
    const uint32_t ahead = 16; /* slots on their way from memory */
    const struct part *part = &t->part[shard];
    for (uint32_t i = 0; i < part->count; i++) {
        if (i + ahead < part->count) k3_name_map_prefetch(&t->map, part->hash[i + ahead]);
        uint32_t number = t->first[shard] + i, old = k3_name_map_add(&t->map, t, number, part->hash[i]);
        if (old == number) continue;
        const struct k3_tensor *a = tensor_at(t, old), *b = &part->tensor[i];
        if (a->shard == shard)
            return k3_fail(err, K3_ERR_FORMAT, "%s/%s: tensor %.*s is there twice", t->dir, t->shard[shard].name,
                           k3_shown(b->name_length), b->name);
        return k3_fail(err, K3_ERR_FORMAT, "%s: tensor %.*s is in %s and in %s", t->dir, k3_shown(b->name_length),
                       b->name, t->shard[a->shard].name, t->shard[shard].name);
    }
    return K3_OK;
}

static k3_status map_tensors(struct k3_tensors *t, k3_error *err) {
    k3_status status = number_tensors(t, err);
    for (uint32_t s = 0; s < t->shards && !status; s++) status = map_part(t, s, err);
    return status;
}

/* ---- the index against the shards ---- */

/* The index as a text that is read piece by piece. */
struct index_file {
    const char *path;
    int fd;
    uint64_t bytes, done;
    k3_status status;
    k3_error err;
};

static size_t read_index(void *user, char *to, size_t room) {
    struct index_file *f = user;
    size_t n = f->bytes - f->done < room ? (size_t)(f->bytes - f->done) : room;
    if (f->status) return 0;
    f->status = k3_file_read(f->fd, f->path, f->done, to, n, &f->err);
    f->done += n;
    return f->status ? 0 : n;
}

/* The number of the tensor that an entry is about, or K3_NAME_NONE.  Equal hashes are equal names
 * here: a tensor is never looked for by the index, so a forged hash gains nothing. */
static uint32_t entry_tensor(const struct k3_tensors *t, const struct k3_index_entry *e, uint32_t expected) {
    const struct part *part = &t->part[e->shard];
    /* Indices often list a shard's tensors in its own order: the expected one is tried before the map. */
    if (expected < part->count && part->hash[expected] == e->hash) return t->first[e->shard] + expected;
    uint32_t i = k3_name_map_find_hash(&t->map, t, e->hash, tensor_hash);
    return i != K3_NAME_NONE && tensor_at(t, i)->shard == e->shard ? i : K3_NAME_NONE;
}

static void check_entries(struct k3_team *team, void *arg) {
    struct job *job = arg;
    const struct k3_tensors *t = job->tensors;
    struct failure *f = &job->failure[team->rank];
    size_t begin, end;
    uint32_t *expected = k3_array(t->shards, sizeof *expected);
    if (!expected) f->status = no_memory(t->dir, &f->err);
    k3_team_share(team, job->index->count, 1, &begin, &end);
    for (size_t i = begin; i < end && !f->status; i++) {
        const struct k3_index_entry *e = &job->index->entry[i];
        uint32_t number = entry_tensor(t, e, expected[e->shard]);
        if (number == K3_NAME_NONE) {
            f->place = i;
            f->status = K3_ERR_FORMAT; /* what to say is found out later */
            break;
        }
        expected[e->shard] = number - t->first[e->shard] + 1;
        if (__atomic_exchange_n(&job->seen[number], 1, __ATOMIC_RELAXED)) set(&job->twice);
    }
    free(expected);
}

/* Says what is wrong with entry i of the index. */
static k3_status not_there(const struct job *job, struct index_file *file, uint32_t i, k3_error *err) {
    const struct k3_tensors *t = job->tensors;
    const struct k3_index_entry *e = &job->index->entry[i];
    const char *shard = t->shard[e->shard].name;
    char name[201];
    file->done = 0;
    k3_index_name(&(struct k3_json_source){read_index, file}, i, name, sizeof name);
    uint32_t other = k3_name_map_find_hash(&t->map, t, e->hash, tensor_hash);
    if (other == K3_NAME_NONE)
        return k3_fail(err, K3_ERR_FORMAT, "%s: tensor %s is not in %s", file->path, name, shard);
    return k3_fail(err, K3_ERR_FORMAT, "%s: tensor %s is in %s, not in %s", file->path, name,
                   t->shard[tensor_at(t, other)->shard].name, shard);
}

/* Which name the index has twice: known only when all threads are done. */
static k3_status find_twice(const struct job *job, const struct index_file *file, k3_error *err) {
    const struct k3_tensors *t = job->tensors;
    memset(job->seen, 0, t->count);
    for (uint32_t i = 0; i < job->index->count; i++) {
        uint32_t number = k3_name_map_find_hash(&t->map, t, job->index->entry[i].hash, tensor_hash);
        const struct k3_tensor *tensor = tensor_at(t, number);
        if (job->seen[number])
            return k3_fail(err, K3_ERR_FORMAT, "%s: tensor %.*s is there twice", file->path,
                           k3_shown(tensor->name_length), tensor->name);
        job->seen[number] = 1;
    }
    return K3_OK;
}

static k3_status check_index(struct job *job, struct index_file *file, k3_error *err) {
    uint64_t place = 0;
    job->seen = k3_array(job->tensors->count, 1);
    if (!job->seen) return no_memory(job->tensors->dir, err);
    k3_status status = run(job, check_entries, &place, err);
    if (status == K3_ERR_FORMAT) status = not_there(job, file, (uint32_t)place, err);
    if (!status && job->twice) status = find_twice(job, file, err);
    free(job->seen);
    job->seen = NULL;
    return status;
}

/* ---- the table ---- */

static k3_status set_shards(struct k3_tensors *t, const struct k3_name *name, uint32_t n, k3_error *err) {
    t->shard = k3_array(n, sizeof *t->shard);
    t->part = k3_array(n, sizeof *t->part);
    if (!t->shard || !t->part) return no_memory(t->dir, err);
    for (t->shards = 0; t->shards < n; t->shards++) {
        char *copy = strndup(name[t->shards].s, name[t->shards].length);
        if (!copy) return no_memory(t->dir, err);
        t->shard[t->shards].name = copy;
    }
    return K3_OK;
}

/* Reads the shards and checks them against the index, if there is one. */
static k3_status read_all(struct k3_tensors *t, const struct k3_index *index, struct index_file *file, k3_error *err) {
    uint64_t place;
    struct job job = {.tensors = t, .index = index, .threads = k3_threads_default()};
    if ((uint32_t)job.threads > t->shards) job.threads = (int)t->shards;
    job.failure = k3_array((size_t)job.threads, sizeof *job.failure);
    job.reader = k3_array((size_t)job.threads, sizeof *job.reader);
    k3_status status = job.failure && job.reader ? run(&job, read_shards, &place, err) : no_memory(t->dir, err);
    for (int i = 0; job.reader && i < job.threads; i++) k3_arena_join(&t->arena, &job.reader[i].arena);
    if (!status) status = map_tensors(t, err);
    if (!status && index) status = check_index(&job, file, err);
    for (uint32_t s = 0; s < t->shards; s++) {
        free(t->part[s].hash);
        t->part[s].hash = NULL;
    }
    free(job.reader);
    free(job.failure);
    return status;
}

static k3_status open_indexed(struct k3_tensors *t, const char *path, k3_error *err) {
    struct k3_index index = {0};
    struct index_file file = {.path = path};
    k3_status status = k3_file_open(path, &file.fd, &file.bytes, err);
    if (status) return status;
    if (file.bytes > INDEX_MAX)
        status = k3_fail(err, K3_ERR_FORMAT, "%s: %" PRIu64 " bytes are too many", path, file.bytes);
    else status = k3_index_parse(&index, path, &(struct k3_json_source){read_index, &file}, file.bytes, err);
    if (file.status) { /* the parser only saw the text end */
        status = file.status;
        if (err) *err = file.err;
    }
    if (!status) status = set_shards(t, index.shard, index.shards, err);
    if (!status) status = read_all(t, &index, &file, err);
    k3_index_clear(&index);
    close(file.fd);
    return status;
}

k3_status k3_tensors_open(const char *dir, struct k3_tensors **out, k3_error *err) {
    static const struct k3_name single = {SINGLE, sizeof SINGLE - 1};
    struct k3_tensors *t = k3_array(1, sizeof *t);
    char *index = path_of(dir, INDEX), *alone = path_of(dir, SINGLE);
    k3_status status = K3_OK;
    if (t) t->dir = strdup(dir);
    if (!t || !t->dir || !index || !alone) {
        status = no_memory(dir, err);
        goto out;
    }
    t->map.name_of = tensor_name;
    if (k3_file_exists(index)) {
        status = open_indexed(t, index, err);
    } else if (k3_file_exists(alone)) {
        status = set_shards(t, &single, 1, err);
        if (!status) status = read_all(t, NULL, NULL, err);
    } else {
        status = k3_fail(err, K3_ERR_IO, "%s: no " INDEX " or " SINGLE, dir);
    }
out:
    if (status) k3_tensors_close(t);
    else *out = t;
    free(alone);
    free(index);
    return status;
}

void k3_tensors_close(struct k3_tensors *t) {
    if (!t) return;
    for (uint32_t s = 0; s < t->shards; s++) free(t->shard[s].name);
    k3_name_map_clear(&t->map);
    k3_arena_clear(&t->arena);
    free(t->hint);
    free(t->first);
    free(t->part);
    free(t->shard);
    free(t->dir);
    free(t);
}

const char *k3_tensors_dir(const struct k3_tensors *t) {
    return t->dir;
}

uint64_t k3_tensors_count(const struct k3_tensors *t) {
    return t->count;
}

const struct k3_tensor *k3_tensors_at(const struct k3_tensors *t, uint64_t i) {
    return tensor_at(t, (uint32_t)i);
}

const struct k3_tensor *k3_tensors_find(const struct k3_tensors *t, const char *name, size_t length) {
    struct k3_name wanted = {name, length};
    uint32_t i = k3_name_map_find(&t->map, t, wanted, k3_name_hash(wanted));
    return i == K3_NAME_NONE ? NULL : tensor_at(t, i);
}

static bool is_named(const struct k3_tensor *t, const char *name, size_t length) {
    return t->name_length == length && memcmp(t->name, name, length) == 0;
}

const struct k3_tensor *k3_tensors_find_near(const struct k3_tensors *t, const struct k3_tensor *near, const char *name,
                                             size_t length) {
    const struct part *part = near ? &t->part[near->shard] : NULL;
    if (part && near + 1 < part->tensor + part->count && is_named(near + 1, name, length)) return near + 1;
    if (part && near > part->tensor && is_named(near - 1, name, length)) return near - 1;
    return k3_tensors_find(t, name, length);
}

uint32_t k3_tensors_shards(const struct k3_tensors *t) {
    return t->shards;
}

const struct k3_shard *k3_tensors_shard(const struct k3_tensors *t, uint32_t shard) {
    return &t->shard[shard];
}
