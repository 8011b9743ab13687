/* k3_checkpoint: opening and describing a directory. */
#include "model/checkpoint.h"

#include "base/error.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

k3_status k3_checkpoint_open(const char *path, k3_checkpoint **out, k3_error *err) {
    if (!path || !out) return k3_fail(err, K3_ERR_ARGUMENT, "a path and a place for the checkpoint are needed");
    k3_checkpoint *ck = k3_array(1, sizeof *ck);
    if (!ck) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    k3_status status = k3_config_read(path, &ck->config, err);
    if (!status) status = k3_tensors_open(path, &ck->tensors, err);
    if (!status) status = k3_layout_make(&ck->config, ck->tensors, &ck->layout, err);
    if (status) {
        k3_checkpoint_close(ck);
        return status;
    }
    *out = ck;
    return K3_OK;
}

void k3_checkpoint_close(k3_checkpoint *ck) {
    if (!ck) return;
    k3_layout_clear(&ck->config, &ck->layout);
    k3_tensors_close(ck->tensors);
    k3_config_clear(&ck->config);
    free(ck);
}

static void describe_layers(const k3_checkpoint *ck, k3_checkpoint_info *info) {
    for (uint32_t i = 0; i < ck->config.layers; i++) {
        const struct k3_layer_layout *l = &ck->layout.layer[i];
        if (l->is_kda) info->kda_layers++;
        else info->mla_layers++;
        if (!l->is_moe) continue;
        info->moe_layers++;
        if (l->moe.experts > info->experts) info->experts = l->moe.experts;
        if (l->moe.expert[0].w1.type == K3_WEIGHT_MXFP4) info->quantized = true;
    }
}

void k3_checkpoint_describe(const k3_checkpoint *ck, k3_checkpoint_info *info) {
    const struct k3_config *c = &ck->config;
    *info = (k3_checkpoint_info){
        .size = sizeof *info,
        .architecture = c->architecture,
        .layers = c->layers,
        .hidden_size = c->hidden_size,
        .vocab_size = c->vocab_size,
        .experts_per_token = c->top_k,
        .shared_experts = c->shared_experts,
        .latent_size = c->latent_size,
        .attn_res_block_size = c->attn_res_block_size,
        .shards = k3_tensors_shards(ck->tensors),
        .tensors = k3_tensors_count(ck->tensors),
        .bytes = ck->layout.bytes,
        .token_bytes = ck->layout.token_bytes,
    };
    describe_layers(ck, info);
    const k3_bytes *b = &info->bytes;
    info->total_bytes = b->kda + b->mla + b->dense + b->shared + b->latent + b->router + b->norms + b->experts + b->head +
                        b->embedding + b->ignored;
}

k3_status k3_checkpoint_tensor(const k3_checkpoint *ck, uint64_t i, k3_tensor_info *info, k3_error *err) {
    if (i >= k3_tensors_count(ck->tensors))
        return k3_fail(err, K3_ERR_ARGUMENT, "tensor %" PRIu64 " of %" PRIu64, i, k3_tensors_count(ck->tensors));
    const struct k3_tensor *t = k3_tensors_at(ck->tensors, i);
    *info = (k3_tensor_info){
        .size = sizeof *info,
        .name = t->name,
        .name_length = t->name_length,
        .dtype = k3_dtype_name(t),
        .file = k3_tensors_shard(ck->tensors, t->shard)->name,
        .rank = t->rank,
        .offset = t->offset,
        .bytes = t->bytes,
    };
    memcpy(info->shape, t->shape, sizeof info->shape);
    return K3_OK;
}
