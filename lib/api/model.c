/* k3_model: opening and describing. */
#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/topology.h"
#include "model/attn_res.h"
#include "model/model.h"
#include "model/step.h"

#include <inttypes.h>
#include <stdlib.h>

#define MAX_THREADS 4096

const char *k3_version(void) {
    return PACKAGE_VERSION;
}

const char *k3_isa_name(size_t i) {
    const struct k3_kernels *k = k3_kernels_at(i);
    return k ? k->isa : NULL;
}

void k3_model_options_init(k3_model_options *options) {
    *options = (k3_model_options){.size = sizeof *options, .precision = K3_PRECISION_EXACT};
}

static k3_status check_options(const k3_model_options *o, k3_error *err) {
    if (o->size != sizeof *o) return k3_fail(err, K3_ERR_ARGUMENT, "model options: call k3_model_options_init first");
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return k3_fail(err, K3_ERR_ARGUMENT, "threads: %d is not between 0 and %d", o->threads, MAX_THREADS);
    if (o->precision != K3_PRECISION_EXACT)
        return k3_fail(err, K3_ERR_UNSUPPORTED, "precision %d is unknown", (int)o->precision);
    if (!k3_kernels_find(o->isa))
        return k3_fail(err, K3_ERR_UNSUPPORTED, "isa \"%s\": not in this build or not on this CPU", o->isa);
    return K3_OK;
}

/* Says whether the weights fit before any is read; sessions take their memory later. */
static k3_status check_budget(const struct k3_model *m, k3_error *err) {
    uint64_t weights = k3_store_declared(m->store), free_bytes = k3_store_budget(m->store) - k3_store_used(m->store);
    if (weights <= free_bytes) return K3_OK;
    return k3_fail(err, K3_ERR_MEMORY,
                   "the weights need %" PRIu64 " bytes (%.4g GB) of memory and %" PRIu64
                   " (%.4g GB) are available: this version keeps all weights in memory",
                   weights, (double)weights / 1e9, free_bytes, (double)free_bytes / 1e9);
}

static k3_status load(struct k3_model *m, const char *path, const k3_model_options *o, k3_error *err) {
    k3_status status = k3_checkpoint_open(path, &m->checkpoint, err);
    if (status) return status;
    m->config = &m->checkpoint->config;
    m->layout = &m->checkpoint->layout;
    if (k3_attn_res_blocks(m->config) >= K3_ATTN_RES_MAX)
        return k3_fail(err, K3_ERR_UNSUPPORTED, "%s/config.json: attn_res_block_size: %u gives more than %d blocks", path,
                       (unsigned)m->config->attn_res_block_size, K3_ATTN_RES_MAX - 1);
    m->layer = k3_array(m->config->layers, sizeof *m->layer);
    if (!m->layer) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    status = k3_store_new(m->checkpoint->tensors, o->memory ? o->memory : k3_memory_available(), &m->store, err);
    if (!status) status = k3_weights_declare(m, err);
    if (!status) status = check_budget(m, err);
    if (!status) status = k3_vectors_read(m, err);
    if (!status) status = k3_store_load(m->store, m->threads, o->progress, o->progress_user, err);
    return status;
}

k3_status k3_model_open(const char *path, const k3_model_options *options, k3_model **out, k3_error *err) {
    k3_model_options standard;
    if (!path || !out) return k3_fail(err, K3_ERR_ARGUMENT, "a path and a place for the model are needed");
    if (!options) {
        k3_model_options_init(&standard);
        options = &standard;
    }
    k3_status status = check_options(options, err);
    if (status) return status;
    k3_model *m = k3_array(1, sizeof *m);
    if (!m) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    m->kernels = k3_kernels_find(options->isa);
    m->threads = options->threads ? options->threads : k3_threads_default();
    status = load(m, path, options, err);
    if (status) {
        k3_model_close(m);
        return status;
    }
    *out = m;
    return K3_OK;
}

void k3_model_close(k3_model *m) {
    if (!m) return;
    if (m->store) k3_store_free(m->store, &m->vectors);
    k3_store_close(m->store);
    free(m->layer);
    k3_checkpoint_close(m->checkpoint);
    free(m);
}

const k3_checkpoint *k3_model_checkpoint(const k3_model *m) {
    return m->checkpoint;
}

uint32_t k3_model_vocab_size(const k3_model *m) {
    return m->config->vocab_size;
}

int k3_model_threads(const k3_model *m) {
    return m->threads;
}

const char *k3_model_isa(const k3_model *m) {
    return m->kernels->isa;
}

uint64_t k3_model_memory_used(const k3_model *m) {
    return k3_store_used(m->store);
}

uint64_t k3_model_memory_budget(const k3_model *m) {
    return k3_store_budget(m->store);
}

size_t k3_model_eos_ids(const k3_model *m, const int32_t **ids) {
    *ids = m->config->eos;
    return m->config->eos_count;
}
