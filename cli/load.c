#include "load.h"
#include "clock.h"
#include "interrupt.h"
#include "message.h"
#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool loading(void *user, uint64_t done, uint64_t total) {
    progress_update(user, done, total);
    return !interrupted();
}

int load_model(struct common_options *o, k3_model **model, double *seconds_taken) {
    k3_error err;
    struct progress bar;
    double start = seconds();
    progress_start(&bar, "loading", NULL, o->quiet);
    o->options.progress = loading;
    o->options.progress_user = &bar;
    k3_status status = k3_model_open(o->model, &o->options, model, &err);
    progress_end(&bar);
    if (seconds_taken) *seconds_taken = seconds() - start;
    if (status == K3_ERR_CANCELLED && interrupted()) return CLI_SIGNAL + interrupted();
    return status ? fail_library(&err) : CLI_OK;
}

int load_tokenizer(const char *model, const char *needed, k3_tokenizer **out) {
    char path[4096];
    k3_error err;
    int n = snprintf(path, sizeof path, "%s/tiktoken.model", model);
    if (n < 0 || (size_t)n >= sizeof path) return fail("%s: the path is too long", model);
    if (access(path, F_OK) != 0 && errno == ENOENT) return needed ? fail("%s: missing: %s", path, needed) : CLI_OK;
    return k3_tokenizer_open(model, out, &err) ? fail_library(&err) : CLI_OK;
}

int load_vocab_size(const char *model, uint32_t *vocab) {
    k3_error err;
    k3_checkpoint *checkpoint;
    k3_checkpoint_info info = {.size = sizeof info};
    if (k3_checkpoint_open(model, &checkpoint, &err)) return fail_library(&err);
    k3_checkpoint_describe(checkpoint, &info);
    *vocab = info.vocab_size;
    k3_checkpoint_close(checkpoint);
    return CLI_OK;
}

int load_eos(const k3_model *model, const k3_tokenizer *chat, int32_t **ids, size_t *n) {
    static const char *const ends[] = {"<|end_of_msg|>", "[EOS]", "[EOT]"};
    const int32_t *own;
    size_t count = k3_model_eos_ids(model, &own), more = chat ? sizeof ends / sizeof *ends : 0;
    int32_t *out = malloc((count + more + 1) * sizeof *out);
    if (!out) return fail("out of memory");
    if (count) memcpy(out, own, count * sizeof *own);
    for (size_t i = 0; i < more; i++) {
        int32_t id = k3_tokenizer_special(chat, ends[i]);
        if (id >= 0) out[count++] = id;
    }
    *ids = out;
    *n = count;
    return CLI_OK;
}
