#include "sampling.h"
#include "message.h"
#include "numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void sampling_init(struct sampling *s) {
    *s = (struct sampling){0};
    k3_sampler_options_init(&s->options);
    s->options.top_p = 0.95f;
}

static int set(struct sampling *s, int option) {
    double x = 0;
    uint64_t n = 0;
    int code;
    switch (option) {
    case OPTION_TEMPERATURE:
        code = number_real("--temperature", optarg, 0, 1000, &x);
        s->options.temperature = (float)x;
        return code;
    case OPTION_TOP_K:
        code = number_uint("--top-k", optarg, 0, UINT32_MAX, &n);
        s->options.top_k = (uint32_t)n;
        return code;
    case OPTION_TOP_P:
        code = number_real("--top-p", optarg, 0, 1, &x);
        if (!code && x == 0) code = fail_usage("--top-p: 0 leaves no token to pick");
        s->options.top_p = (float)x;
        return code;
    case OPTION_MIN_P:
        code = number_real("--min-p", optarg, 0, 1, &x);
        s->options.min_p = (float)x;
        return code;
    default: /* OPTION_SEED; JSON holds no more than INT64_MAX */
        s->seed_given = true;
        return number_uint("--seed", optarg, 0, INT64_MAX, &s->options.seed);
    }
}

bool sampling_option(struct sampling *s, int option, int *code) {
    if (option < OPTION_TEMPERATURE || option > OPTION_SEED) return false;
    *code = set(s, option);
    return true;
}

/* Small enough for every reader of JSON (53 bits). */
int sampling_draw_seed(struct sampling *s) {
    uint64_t *seed = &s->options.seed;
    if (s->seed_given) return CLI_OK;
    if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed)
        return fail("--seed: the system gives no random number: %s", strerror(errno));
    *seed &= ((uint64_t)1 << 53) - 1;
    return CLI_OK;
}

static bool contains(const int32_t *ids, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

int sampling_ban(k3_sampler *sampler, const k3_tokenizer *t, uint32_t vocab, bool reserved, const int32_t *eos,
                 size_t eos_count) {
    k3_error err;
    size_t n = 0;
    uint32_t known = k3_tokenizer_vocab_size(t);
    int32_t *ids = malloc((size_t)vocab * sizeof *ids);
    if (!ids) return fail("out of memory");
    for (uint32_t i = 0; i < vocab; i++) {
        int32_t id = (int32_t)i;
        bool useless = i >= known || (reserved && k3_tokenizer_is_reserved(t, id));
        if (useless && !contains(eos, eos_count, id)) ids[n++] = id;
    }
    k3_status status = k3_sampler_ban(sampler, ids, n, &err);
    free(ids);
    return status ? fail_library(&err) : CLI_OK;
}
