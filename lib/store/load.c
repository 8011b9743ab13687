/* Bringing weights into memory: parallel reads of chunks, in the order of the residents. */
#include "store/internal.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((uint64_t)4 << 20) /* bytes a read: long enough for the disk, short enough to share out */

k3_status k3_store_shard(struct k3_store *s, uint32_t shard, int *fd, k3_error *err) {
    if (s->fd[shard] < 0) {
        const char *name = k3_tensors_shard(s->tensors, shard)->name;
        char path[4096];
        int n = snprintf(path, sizeof path, "%s/%s", k3_tensors_dir(s->tensors), name);
        if (n < 0 || (size_t)n >= sizeof path) return k3_fail(err, K3_ERR_IO, "%s: the path is too long", name);
        uint64_t bytes;
        k3_status status = k3_file_open(path, &s->fd[shard], &bytes, err);
        if (status) return status;
    }
    *fd = s->fd[shard];
    return K3_OK;
}

void k3_store_close_shards(struct k3_store *s) {
    for (uint32_t i = 0; i < k3_tensors_shards(s->tensors); i++) {
        if (s->fd[i] >= 0) close(s->fd[i]);
        s->fd[i] = -1;
    }
}

k3_status k3_store_read(struct k3_store *s, const struct k3_tensor *t, uint64_t from, void *out, size_t bytes,
                        k3_error *err) {
    const char *file = k3_tensors_shard(s->tensors, t->shard)->name;
    k3_status status = k3_file_read(s->fd[t->shard], file, t->offset + from, out, bytes, err);
    return status ? k3_fail_prefix(err, status, "tensor %.*s", (int)t->name_length, t->name) : K3_OK;
}

struct load {
    struct k3_store *store;
    uint64_t *first_chunk; /* [pieces + 1]: chunks before each piece */
    _Atomic uint64_t next, done_bytes;
    _Atomic bool stop;
    uint64_t total_bytes;
    k3_progress progress;
    void *user;
    k3_error *err; /* written by the thread that sets `failed` */
    _Atomic int failed;
};

static void fail(struct load *l, const k3_error *err) {
    int none = K3_OK;
    if (atomic_compare_exchange_strong(&l->failed, &none, (int)err->status) && l->err) *l->err = *err;
    atomic_store(&l->stop, true);
}

/* The piece that holds chunk c: the last one whose first chunk is not behind it. */
static size_t piece_of(const struct load *l, uint64_t c) {
    size_t low = 0, high = l->store->piece_count;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (l->first_chunk[mid] <= c) low = mid;
        else high = mid;
    }
    return low;
}

static const struct k3_weights *owner(const struct k3_store *s, size_t piece) {
    size_t low = 0, high = s->count;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (s->weights[mid].first_piece <= piece) low = mid;
        else high = mid;
    }
    return &s->weights[low];
}

static void load_chunk(struct load *l, uint64_t c) {
    struct k3_store *s = l->store;
    size_t i = piece_of(l, c);
    const struct k3_piece *p = &s->pieces[i];
    uint64_t from = (c - l->first_chunk[i]) * CHUNK, left = p->tensor->bytes - from;
    size_t bytes = (size_t)(left < CHUNK ? left : CHUNK);
    unsigned char *to = s->arena + owner(s, i)->at + p->at + from;
    k3_error err;
    if (k3_store_read(s, p->tensor, from, to, bytes, &err)) {
        fail(l, &err);
        return;
    }
    const unsigned char *bad = p->is_scale ? memchr(to, 255, bytes) : NULL;
    if (bad) {
        k3_fail(&err, K3_ERR_FORMAT, "%s: %.*s: scale %llu is 255, which stands for NaN",
                k3_tensors_shard(s->tensors, p->tensor->shard)->name, (int)p->tensor->name_length, p->tensor->name,
                (unsigned long long)(from + (uint64_t)(bad - to)));
        fail(l, &err);
        return;
    }
    atomic_fetch_add(&l->done_bytes, bytes);
}

static void load_share(struct k3_team *team, void *arg) {
    struct load *l = arg;
    uint64_t chunks = l->first_chunk[l->store->piece_count], c;
    while (!atomic_load(&l->stop) && (c = atomic_fetch_add(&l->next, 1)) < chunks) {
        load_chunk(l, c);
        if (team->rank == 0 && l->progress && !l->progress(l->user, atomic_load(&l->done_bytes), l->total_bytes)) {
            k3_error err;
            k3_fail(&err, K3_ERR_CANCELLED, "loading was cancelled");
            fail(l, &err);
        }
    }
}

static k3_status open_shards(struct k3_store *s, k3_error *err) {
    for (size_t i = 0; i < s->piece_count; i++) {
        int fd;
        k3_status status = k3_store_shard(s, s->pieces[i].tensor->shard, &fd, err);
        if (status) return status;
    }
    return K3_OK;
}

k3_status k3_store_load(struct k3_store *s, int threads, k3_progress progress, void *user, k3_error *err) {
    k3_status status = k3_ledger_charge(&s->ledger, s->arena_bytes, "holding all weights in memory", err);
    if (status) return status;
    struct load l = {.store = s, .progress = progress, .user = user, .err = err};
    l.first_chunk = k3_array(s->piece_count + 1, sizeof *l.first_chunk);
    s->arena = k3_map((size_t)s->arena_bytes);
    if (!l.first_chunk || !s->arena) {
        status = k3_fail(err, K3_ERR_MEMORY, "the system refused %llu bytes for the weights",
                         (unsigned long long)s->arena_bytes);
        goto out;
    }
    for (size_t i = 0; i < s->piece_count; i++) {
        uint64_t bytes = s->pieces[i].tensor->bytes;
        l.first_chunk[i + 1] = l.first_chunk[i] + (bytes + CHUNK - 1) / CHUNK;
        l.total_bytes += bytes;
    }
    status = open_shards(s, err);
    if (status) goto out;
    k3_team_run(threads, load_share, &l);
    status = (k3_status)atomic_load(&l.failed);
    if (!status && progress) progress(user, l.total_bytes, l.total_bytes);
out:
    free(l.first_chunk);
    k3_store_close_shards(s);
    if (status) {
        k3_unmap(s->arena, s->arena_bytes);
        s->arena = NULL;
        k3_ledger_refund(&s->ledger, s->arena_bytes);
    }
    return status;
}
