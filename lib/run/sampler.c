/* Picks the next id.
 *
 * The order is that of Hugging Face's and vLLM's users: temperature, then top_k, top_p, min_p, each on what
 * the one before left.  With logits sorted from high to low (equal ones by id) each of them keeps a prefix,
 * so a cut is one logit and one id, and finding it needs buckets, not a sort.
 *
 * The same seed gives the same ids on every machine: nothing but additions and multiplications of
 * doubles in a fixed order, and an exp of our own made of them (those of libm differ in the last bit). */
#include <k3/k3.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

#define BUCKETS 2048
#define DEPTH 50.0 /* an id e^-50 times as likely as the best one cannot be picked: a draw has 53 bits */

struct candidate {
    double weight; /* e^((logit - best) / temperature): 1 for the best one */
    float logit;
    int32_t id;
};

struct k3_sampler {
    k3_sampler_options options;
    double coldness; /* 1 / temperature; finite for the smallest float too */
    uint64_t random[4];
    int32_t *banned; /* ascending */
    size_t banned_count;
    struct candidate *candidates; /* by id; room kept from pick to pick */
    struct candidate *heap;       /* its second half */
    size_t capacity, count;
    double bucket_sum[BUCKETS];
};

/* ---- random numbers: xoshiro256** seeded by splitmix64 ---- */

static uint64_t rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static void seed(k3_sampler *s, uint64_t from) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = from += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        s->random[i] = z ^ z >> 31;
    }
}

/* In [0, 1), 53 bits. */
static double draw(k3_sampler *s) {
    uint64_t *x = s->random, result = rotate(x[1] * 5, 7) * 9, t = x[1] << 17;
    x[2] ^= x[0];
    x[3] ^= x[1];
    x[1] ^= x[2];
    x[0] ^= x[3];
    x[2] ^= t;
    x[3] = rotate(x[3], 45);
    return (double)(result >> 11) * 0x1p-53;
}

/* e^x for x in [-DEPTH, 0]: 2^k e^r with |r| <= ln(2) / 2, and the series to r^13, whose rest is below 2^-56,
 * even and odd powers apart so that a CPU can work on both at once. */
static double exp_fixed(double x) {
    int k = (int)(x * 1.4426950408889634 - 0.5); /* truncates towards zero: the nearest, for x <= 0 */
    double r = x - k * 0x1.62e42fee00000p-1;     /* ln(2) in two parts, the first of few bits: exact */
    r -= k * 0x1.a39ef35793c76p-33;
    double q = r * r, even, odd;
    even = ((((q * (1.0 / 479001600) + 1.0 / 3628800) * q + 1.0 / 40320) * q + 1.0 / 720) * q + 1.0 / 24) * q;
    even = (even + 1.0 / 2) * q + 1;
    odd = ((((q * (1.0 / 6227020800) + 1.0 / 39916800) * q + 1.0 / 362880) * q + 1.0 / 5040) * q + 1.0 / 120) * q;
    odd = (odd + 1.0 / 6) * q + 1;
    union {
        uint64_t bits;
        double value;
    } scale = {.bits = (uint64_t)(1023 + k) << 52};
    return (even + odd * r) * scale.value;
}

/* ---- making one ---- */

void k3_sampler_options_init(k3_sampler_options *options) {
    *options = (k3_sampler_options){.size = sizeof *options, .temperature = 1, .top_p = 1};
}

static k3_status check_options(const k3_sampler_options *o, k3_error *err) {
    if (!(o->temperature >= 0) || isinf(o->temperature))
        return k3_fail(err, K3_ERR_ARGUMENT, "temperature %g is not 0 or more", (double)o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return k3_fail(err, K3_ERR_ARGUMENT, "top_p %g is not above 0 and up to 1", (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p < 1))
        return k3_fail(err, K3_ERR_ARGUMENT, "min_p %g is not from 0 to below 1", (double)o->min_p);
    return K3_OK;
}

k3_status k3_sampler_new(const k3_sampler_options *options, k3_sampler **out, k3_error *err) {
    k3_sampler_options o;
    k3_sampler_options_init(&o);
    if (options) {
        if (options->size < offsetof(k3_sampler_options, temperature) + sizeof o.temperature)
            return k3_fail(err, K3_ERR_ARGUMENT, "sampler options without k3_sampler_options_init");
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o); /* an older caller knows less */
    }
    k3_status status = check_options(&o, err);
    if (status != K3_OK) return status;
    k3_sampler *s = calloc(1, sizeof *s);
    if (!s) return k3_fail(err, K3_ERR_MEMORY, "no memory for a sampler");
    s->options = o;
    s->coldness = 1.0 / o.temperature; /* not used where the temperature is 0 */
    seed(s, o.seed);
    *out = s;
    return K3_OK;
}

void k3_sampler_free(k3_sampler *s) {
    if (!s) return;
    free(s->candidates);
    free(s->banned);
    free(s);
}

static int by_id(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

k3_status k3_sampler_ban(k3_sampler *s, const int32_t *ids, size_t n, k3_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0) return k3_fail(err, K3_ERR_ARGUMENT, "cannot ban id %d", (int)ids[i]);
    int32_t *banned = k3_array(n, sizeof *banned);
    if (!banned) return k3_fail(err, K3_ERR_MEMORY, "no memory for %zu banned ids", n);
    if (n) {
        memcpy(banned, ids, n * sizeof *ids);
        qsort(banned, n, sizeof *banned, by_id);
    }
    free(s->banned);
    s->banned = banned;
    s->banned_count = n;
    return K3_OK;
}

/* ---- picking ---- */

/* Moves *begin over banned ids and returns the end of the range of allowed ones that starts there. */
static size_t allowed_range(const k3_sampler *s, size_t *ban, size_t *begin, size_t n) {
    while (*ban < s->banned_count && (size_t)s->banned[*ban] <= *begin) {
        if ((size_t)s->banned[*ban] == *begin) ++*begin;
        ++*ban;
    }
    return *ban < s->banned_count && (size_t)s->banned[*ban] < n ? (size_t)s->banned[*ban] : n;
}

static k3_status check_logits(const float *logits, size_t n, k3_error *err) {
    bool fine = true;
    for (size_t i = 0; i < n; i++) fine &= logits[i] < INFINITY; /* false for NaN too */
    for (size_t i = 0; !fine && i < n; i++)
        if (!(logits[i] < INFINITY))
            return k3_fail(err, K3_ERR_NUMERIC, "the logit of id %zu is %s", i, isnan(logits[i]) ? "NaN" : "infinite");
    return K3_OK;
}

/* The most likely id, the lowest of equals. */
static k3_status find_best(const k3_sampler *s, const float *logits, size_t n, int32_t *id, k3_error *err) {
    float best = -INFINITY;
    size_t ban = 0;
    *id = -1;
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = allowed_range(s, &ban, &begin, n);
        for (size_t i = begin; i < end; i++)
            if (logits[i] > best) {
                best = logits[i];
                *id = (int32_t)i;
            }
    }
    if (*id < 0) return k3_fail(err, K3_ERR_NUMERIC, "nothing to pick from: all ids are banned or minus infinity");
    return K3_OK;
}

static k3_status gather(k3_sampler *s, const float *logits, size_t n, float best, k3_error *err) {
    if (s->capacity < n) {
        struct candidate *room = k3_array(n, 2 * sizeof *room);
        if (!room) return k3_fail(err, K3_ERR_MEMORY, "no memory for %zu logits", n);
        free(s->candidates);
        s->candidates = room;
        s->heap = room + n;
        s->capacity = n;
    }
    size_t ban = 0;
    s->count = 0;
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = allowed_range(s, &ban, &begin, n);
        for (size_t i = begin; i < end; i++) {
            double x = ((double)logits[i] - (double)best) * s->coldness;
            if (x >= -DEPTH) s->candidates[s->count++] = (struct candidate){exp_fixed(x), logits[i], (int32_t)i};
        }
    }
    return K3_OK;
}

/* More likely, or as likely and of a lower id. */
static bool before(const struct candidate *a, const struct candidate *b) {
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static void sift_down(struct candidate *heap, size_t n, size_t i) {
    struct candidate moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &moving)) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

/* Equal logits share a bucket, and a lower logit is never in an earlier one. */
static size_t bucket_of(const k3_sampler *s, const struct candidate *c, float best) {
    size_t i = (size_t)(((double)best - (double)c->logit) * s->coldness * (BUCKETS / DEPTH));
    return i < BUCKETS ? i : BUCKETS - 1;
}

/* What a candidate counts in a cut: itself for top_k, its probability for top_p. */
static double share(const struct candidate *c, bool weighted) {
    return weighted ? c->weight : 1;
}

/* The candidate of bucket `bucket` at which `sum`, taken from the most likely one on, reaches `target`. */
static struct candidate last_kept(k3_sampler *s, float best, size_t bucket, double sum, double target, bool weighted) {
    struct candidate *heap = s->heap;
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        if (bucket_of(s, &s->candidates[i], best) == bucket) heap[n++] = s->candidates[i];
    for (size_t i = n / 2; i-- > 0;) sift_down(heap, n, i);
    while ((sum += share(&heap[0], weighted)) < target && n > 1) {
        heap[0] = heap[--n];
        sift_down(heap, n, 0);
    }
    return heap[0];
}

/* Keeps the shortest prefix of the candidates, from the most likely on, whose shares reach `target`. */
static void keep_prefix(k3_sampler *s, float best, double target, bool weighted) {
    memset(s->bucket_sum, 0, sizeof s->bucket_sum);
    for (size_t i = 0; i < s->count; i++) {
        const struct candidate *c = &s->candidates[i];
        s->bucket_sum[bucket_of(s, c, best)] += share(c, weighted);
    }
    double sum = 0;
    size_t bucket = 0; /* in which the prefix ends */
    for (; bucket < BUCKETS && sum + s->bucket_sum[bucket] < target; bucket++) sum += s->bucket_sum[bucket];
    if (bucket == BUCKETS) return; /* rounding: all of them just miss it */

    struct candidate last = last_kept(s, best, bucket, sum, target, weighted);
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!before(&last, &s->candidates[i])) s->candidates[kept++] = s->candidates[i];
    s->count = kept;
}

static double total(const k3_sampler *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->candidates[i].weight;
    return sum;
}

/* Candidates are in the order of their ids throughout. */
static int32_t draw_one(k3_sampler *s) {
    double target = draw(s) * total(s), sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        sum += s->candidates[i].weight;
        if (sum > target) return s->candidates[i].id;
    }
    return s->candidates[s->count - 1].id; /* not reached: draw() is below 1, and the sums are the same */
}

k3_status k3_sampler_pick(k3_sampler *s, const float *logits, size_t n, int32_t *id, k3_error *err) {
    const k3_sampler_options *o = &s->options;
    int32_t best;
    if (n > INT32_MAX) return k3_fail(err, K3_ERR_ARGUMENT, "%zu logits", n);
    k3_status status = check_logits(logits, n, err);
    if (status == K3_OK) status = find_best(s, logits, n, &best, err);
    if (status != K3_OK) return status;
    if (o->temperature == 0) {
        *id = best;
        return K3_OK;
    }
    status = gather(s, logits, n, logits[best], err);
    if (status != K3_OK) return status;
    if (o->top_k && o->top_k < s->count) keep_prefix(s, logits[best], o->top_k, false);
    if (o->top_p < 1) keep_prefix(s, logits[best], (double)o->top_p * total(s), true);
    if (o->min_p > 0) {
        size_t kept = 0;
        for (size_t i = 0; i < s->count; i++) /* the best one's weight is 1 */
            if (s->candidates[i].weight >= (double)o->min_p) s->candidates[kept++] = s->candidates[i];
        s->count = kept;
    }
    *id = draw_one(s);
    return K3_OK;
}
