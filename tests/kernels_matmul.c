/* Matrix products and widening: against double precision, between guards, and cut into pieces in many ways. */
#include "golden.h"
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHAPES 200
#define MOST_WORK 1500000 /* multiplications of a shape */
#define UNWRITTEN 0x1.2345p-60f

enum kind { F32, BF16, F16, MXFP4, KINDS };

/* Magnitudes are powers of ten between low and high; MXFP4 scale bytes lie from the first to the last. */
static const struct range {
    const char *name;
    float w_low, w_high, x_low, x_high;
    unsigned first_scale, last_scale;
    bool zeros; /* half of all values, of either sign */
} ranges[] = {
    {"usual", -3, 0, -2, 1, 112, 122, false},
    {"subnormal", -40, -36, -4, 0, 0, 6, false},
    {"large", 25, 30, 2, 4, 195, 210, false},
    {"zeros", -3, 0, -2, 1, 112, 122, true},
};
#define RANGES (sizeof ranges / sizeof *ranges)

/* Bytes that end right before an unmapped page: aligned to nothing. */
struct bytes {
    struct guarded guarded;
    uint8_t *at;
};

static struct bytes bytes_new(size_t n) {
    struct bytes b = {.guarded = guarded_new((n + 3) / 4)};
    b.at = (uint8_t *)(b.guarded.data + b.guarded.n) - n;
    return b;
}

struct weights {
    enum kind kind;
    size_t rows, cols, ld;
    struct bytes at, scale;
};

static size_t element(enum kind kind) {
    return kind == F32 ? 4 : 2;
}

static double float_at(const uint8_t *p) {
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
}

static double bf16_value(unsigned h) {
    uint32_t bits = h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double f16_value(unsigned h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

static double mxfp4_value(unsigned code, unsigned scale) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    double v = scale == 255 ? NAN : ldexp(magnitude[code & 7], (int)scale - 127);
    return code & 8 ? -v : v;
}

static double weight(const struct weights *w, size_t r, size_t c) {
    size_t i = r * w->ld + c;
    const uint8_t *p = w->at.at + i * element(w->kind);
    if (w->kind == F32) return float_at(p);
    if (w->kind == BF16) return bf16_value(p[0] | (unsigned)p[1] << 8);
    if (w->kind == F16) return f16_value(p[0] | (unsigned)p[1] << 8);
    return mxfp4_value(w->at.at[i / 2] >> (i % 2 * 4) & 15, w->scale.at[i / 32]);
}

static float random_value(struct random *r, float low, float high, bool zeros) {
    float v = random_wide(r, low, high);
    return zeros && random_bits(r) >> 63 ? copysignf(0, v) : v;
}

static void set_weight(struct random *r, enum kind kind, uint8_t *p, const struct range *range) {
    float v = random_value(r, range->w_low, range->w_high, range->zeros);
    uint32_t bits;
    memcpy(&bits, &v, 4);
    if (kind == F16) { /* all exponents but the last, which is infinite */
        bits = (uint32_t)random_bits(r);
        uint32_t exponent = range->w_low < -30 ? 0 : range->w_low > 0 ? 30 : 5 + (bits >> 16) % 11;
        bits = (bits & 0x83ff) | exponent << 10;
        if (v == 0) bits &= 0x8000;
    } else if (kind == BF16) bits >>= 16;
    memcpy(p, &bits, element(kind));
}

static void set_nan(enum kind kind, uint8_t *p) {
    const uint32_t bits = kind == F32 ? 0x7fc00000 : kind == BF16 ? 0x7fc0 : 0x7e00;
    memcpy(p, &bits, element(kind));
}

static struct weights weights_new(struct random *r, enum kind kind, size_t rows, size_t cols, size_t ld,
                                  const struct range *range) {
    struct weights w = {kind, rows, cols, ld, {.at = NULL}, {.at = NULL}};
    if (kind == MXFP4) {
        w.at = bytes_new(rows * cols / 2);
        w.scale = bytes_new(rows * cols / 32);
        for (size_t i = 0; i < rows * cols / 2; i++)
            w.at.at[i] = (uint8_t)(random_bits(r) & (range->zeros ? 0x8f : 255));
        for (size_t i = 0; i < rows * cols / 32; i++)
            w.scale.at[i] =
                (uint8_t)(range->first_scale + random_bits(r) % (range->last_scale - range->first_scale + 1));
        return w;
    }
    w.at = bytes_new((rows ? (rows - 1) * ld + cols : 0) * element(kind));
    for (size_t i = 0; rows && i < (rows - 1) * ld + cols; i++) {
        if (i % ld < cols) set_weight(r, kind, w.at.at + i * element(kind), range);
        else set_nan(kind, w.at.at + i * element(kind));
    }
    return w;
}

static void weights_free(struct weights *w) {
    guarded_free(&w->at.guarded);
    if (w->kind == MXFP4) guarded_free(&w->scale.guarded);
}

/* n rows of `cols` values, NaN (or `between`) between the rows. */
static struct guarded rows_new(size_t n, size_t cols, size_t ld, float between) {
    struct guarded g = guarded_new(n ? (n - 1) * ld + cols : 0);
    for (size_t i = 0; i < g.n; i++) g.data[i] = between;
    return g;
}

static void multiply(const struct k3_kernels *k, const struct k3_matmul *m, const struct weights *w, size_t row) {
    const uint8_t *at = w->at.at + row * w->ld * element(w->kind);
    switch (w->kind) {
    case F32: k->matmul_f32(m, at, w->ld); break;
    case BF16: k->matmul_bf16(m, at, w->ld); break;
    case F16: k->matmul_f16(m, at, w->ld); break;
    default: k->matmul_mxfp4(m, w->at.at + row * w->cols / 2, w->scale.at + row * w->cols / 32);
    }
}

/* A random product: its weights, activations and strides. */
struct product {
    struct weights w;
    struct guarded x;
    struct k3_matmul m; /* y is not set */
    const struct range *range;
};

static size_t pick(struct random *r, const size_t *from, size_t count) {
    return from[random_bits(r) % count];
}
#define PICK(r, ...) pick(r, (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static struct product product_new(struct random *r, enum kind kind) {
    size_t rows = PICK(r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 23, 24, 25, 27, 53, 100);
    size_t n = PICK(r, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 13, 63, 64, 65, 70, 131);
    size_t cols = PICK(r, 0, 1, 2, 7, 8, 9, 15, 16, 31, 33, 40, 63, 64, 100, 129, 1000, 1023, 1024, 1025, 1031, 2100);
    if (kind == MXFP4) cols = PICK(r, 0, 32, 64, 96, 128, 160, 992, 1024, 1056, 2080);
    while (rows * n * cols > MOST_WORK) rows > n ? (rows /= 2) : (n /= 2);
    size_t gap = random_bits(r) % 3 * 5, ld = kind == MXFP4 ? cols : cols + random_bits(r) % 3;
    struct product p = {.range = &ranges[random_bits(r) % RANGES]};
    p.w = weights_new(r, kind, rows, cols, ld, p.range);
    p.m = (struct k3_matmul){NULL, rows + gap, NULL, cols + gap, rows, cols, n};
    p.x = rows_new(n, cols, p.m.ldx, NAN);
    for (size_t i = 0; i < n * cols; i++)
        p.x.data[i / cols * p.m.ldx + i % cols] =
            random_value(r, p.range->x_low, p.range->x_high, p.range->zeros);
    p.m.x = p.x.data;
    return p;
}

static void product_free(struct product *p) {
    weights_free(&p->w);
    guarded_free(&p->x);
}

/* Between a row's end and the next row nothing is written. */
static void check_gaps(const struct guarded *y, size_t rows, size_t ld) {
    guarded_check(y);
    for (size_t i = 0; i < y->n; i++)
        if (i % ld >= rows) ck_assert_msg(y->data[i] == UNWRITTEN, "written %zu behind a row", i % ld - rows);
}

/* A sum in float of at least eight interleaved partial sums has no value that goes through more than cols / 8 + 8
 * roundings, each of half an ulp of what is at most the sum of all magnitudes; what is subnormal rounds to multiples
 * of 2^-149. */
static double bound(double magnitudes, size_t terms) {
    return ((double)terms / 8 + 8) * 0x1p-24 * magnitudes + (double)(terms + 1) * 0x1p-149;
}

static void check_product(const struct k3_kernels *k, const struct product *p, const struct guarded *y) {
    const struct k3_matmul *m = &p->m;
    for (size_t t = 0; t < m->n; t++)
        for (size_t r = 0; r < m->rows; r++) {
            double sum = 0, magnitudes = 0, got = (double)y->data[t * m->ldy + r];
            for (size_t c = 0; c < m->cols; c++) {
                double term = weight(&p->w, r, c) * (double)p->x.data[t * m->ldx + c];
                sum += term;
                magnitudes += fabs(term);
            }
            ck_assert_msg(fabs(got - sum) <= bound(magnitudes, m->cols),
                          "%s kind %d %s %zu x %zu, %zu tokens: y[%zu, %zu] = %.9g, want %.9g +- %.3g", k->isa,
                          p->w.kind, p->range->name, m->rows, m->cols, m->n, t, r, got, sum,
                          bound(magnitudes, m->cols));
        }
}

START_TEST(products_are_right) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i / KINDS);
    struct random r = {.state = 1};
    for (int i = 0; i < SHAPES; i++) {
        struct product p = product_new(&r, (enum kind)(_i % KINDS));
        struct guarded y = rows_new(p.m.n, p.m.rows, p.m.ldy, UNWRITTEN);
        p.m.y = y.data;
        multiply(k, &p.m, &p.w, 0);
        check_gaps(&y, p.m.rows, p.m.ldy);
        check_product(k, &p, &y);
        guarded_free(&y);
        product_free(&p);
    }
}
END_TEST

static void multiply_in_pieces(const struct k3_kernels *k, struct random *r, const struct product *p) {
    size_t most_rows = 1 + random_bits(r) % 30, most_tokens = 1 + random_bits(r) % 70;
    for (size_t t = 0, n; t < p->m.n; t += n) {
        n = 1 + random_bits(r) % most_tokens;
        if (n > p->m.n - t) n = p->m.n - t;
        for (size_t row = 0, rows; row < p->m.rows; row += rows) {
            rows = 1 + random_bits(r) % most_rows;
            if (rows > p->m.rows - row) rows = p->m.rows - row;
            struct k3_matmul m = p->m;
            m.y += t * m.ldy + row;
            m.x += t * m.ldx;
            m.rows = rows;
            m.n = n;
            multiply(k, &m, &p->w, row);
        }
    }
}

/* Rows too wide for any scratch that a kernel may use. */
START_TEST(wide_rows_are_right) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i / KINDS);
    struct random r = {.state = 5};
    struct product p = {.range = ranges, .w = weights_new(&r, (enum kind)(_i % KINDS), 5, 40032, 40032, ranges)};
    p.m = (struct k3_matmul){NULL, 5, NULL, 40032, 5, 40032, 7};
    p.x = guarded_new(7 * 40032);
    random_fill(&r, p.x.data, p.x.n, -1, 1);
    p.m.x = p.x.data;
    struct guarded y = guarded_new(35);
    p.m.y = y.data;
    multiply(k, &p.m, &p.w, 0);
    check_product(k, &p, &y);
    guarded_free(&y);
    product_free(&p);
}
END_TEST

START_TEST(pieces_give_the_same_bits) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i / KINDS);
    struct random r = {.state = 2};
    for (int i = 0; i < SHAPES; i++) {
        struct product p = product_new(&r, (enum kind)(_i % KINDS));
        struct guarded whole = rows_new(p.m.n, p.m.rows, p.m.ldy, UNWRITTEN);
        struct guarded pieces = rows_new(p.m.n, p.m.rows, p.m.ldy, UNWRITTEN);
        p.m.y = whole.data;
        multiply(k, &p.m, &p.w, 0);
        p.m.y = pieces.data;
        multiply_in_pieces(k, &r, &p);
        check_gaps(&pieces, p.m.rows, p.m.ldy);
        ck_assert_msg(!memcmp(whole.data, pieces.data, whole.n * sizeof(float)), "%s kind %d %zu x %zu, %zu tokens",
                      k->isa, _i % KINDS, p.m.rows, p.m.cols, p.m.n);
        guarded_free(&whole);
        guarded_free(&pieces);
        product_free(&p);
    }
}
END_TEST

/* Neither another token's values nor another row's reach an output, whatever they are. */
START_TEST(neighbours_do_not_matter) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i / KINDS);
    struct random r = {.state = 3};
    for (int i = 0; i < SHAPES / 2; i++) {
        struct product p = product_new(&r, (enum kind)(_i % KINDS));
        struct guarded clean = rows_new(p.m.n, p.m.rows, p.m.ldy, UNWRITTEN);
        struct guarded dirty = rows_new(p.m.n, p.m.rows, p.m.ldy, UNWRITTEN);
        size_t token = p.m.n ? random_bits(&r) % p.m.n : 0, row = p.m.rows ? random_bits(&r) % p.m.rows : 0;
        p.m.y = clean.data;
        multiply(k, &p.m, &p.w, 0);
        for (size_t j = 0; j < p.m.n * p.m.cols; j++)
            if (j / p.m.cols != token) p.x.data[j / p.m.cols * p.m.ldx + j % p.m.cols] = j % 2 ? NAN : INFINITY;
        for (size_t j = 0; j < p.m.rows * p.m.cols; j++)
            if (p.w.kind != MXFP4 && j / p.m.cols != row)
                set_nan(p.w.kind, p.w.at.at + (j / p.m.cols * p.w.ld + j % p.m.cols) * element(p.w.kind));
        p.m.y = dirty.data;
        multiply(k, &p.m, &p.w, 0);
        size_t at = token * p.m.ldy + row;
        if (p.m.n && p.m.rows) ck_assert(!memcmp(clean.data + at, dirty.data + at, sizeof(float)));
        guarded_free(&clean);
        guarded_free(&dirty);
        product_free(&p);
    }
}
END_TEST

/* ---- the other way round ---- */

/* y += x b as one call, and in pieces of tokens and columns, against double. */
static void check_transposed(const struct k3_kernels *k, struct random *r) {
    struct k3_matmul m = {.rows = PICK(r, 0, 1, 2, 7, 64, 255, 256, 257, 600),
                          .n = PICK(r, 0, 1, 2, 3, 4, 5, 8, 19, 64),
                          .cols = PICK(r, 0, 1, 3, 7, 8, 9, 23, 24, 25, 47, 48, 100, 128, 513)};
    const struct range *range = &ranges[random_bits(r) % RANGES];
    size_t gap = random_bits(r) % 3;
    m.ldx = m.rows + gap;
    m.ldy = m.cols + gap;
    struct guarded x = rows_new(m.n, m.rows, m.ldx, NAN), b = rows_new(m.rows, m.cols, m.ldy, NAN);
    struct guarded y = rows_new(m.n, m.cols, m.ldy, UNWRITTEN);
    for (size_t i = 0; i < m.n * m.rows; i++)
        x.data[i / m.rows * m.ldx + i % m.rows] = random_value(r, range->x_low, range->x_high, range->zeros);
    for (size_t i = 0; i < m.rows * m.cols; i++)
        b.data[i / m.cols * m.ldy + i % m.cols] = random_value(r, range->w_low, range->w_high, range->zeros);
    for (size_t i = 0; i < m.n * m.cols; i++)
        y.data[i / m.cols * m.ldy + i % m.cols] = random_value(r, range->w_low, range->w_high, range->zeros);
    struct guarded before = guarded_copy(y.data, y.n), pieces = guarded_copy(y.data, y.n);
    m.x = x.data;
    m.y = y.data;
    k->matmul_t_f32(&m, b.data, m.ldy);
    check_gaps(&y, m.cols, m.ldy);
    for (size_t t = 0; t < m.n; t++)
        for (size_t c = 0; c < m.cols; c++) {
            double sum = (double)before.data[t * m.ldy + c], got = (double)y.data[t * m.ldy + c];
            double magnitudes = fabs(sum);
            for (size_t i = 0; i < m.rows; i++) {
                double term = (double)x.data[t * m.ldx + i] * (double)b.data[i * m.ldy + c];
                sum += term;
                magnitudes += fabs(term);
            }
            /* One chain of roundings: rows products and as many sums. */
            ck_assert_msg(fabs(got - sum) <= bound(magnitudes, 8 * m.rows), "%s %zu x %zu, %zu tokens: %.9g, want %.9g",
                          k->isa, m.rows, m.cols, m.n, got, sum);
        }
    for (size_t t = 0, n; t < m.n; t += n) {
        n = 1 + random_bits(r) % (m.n - t);
        for (size_t c = 0, cols; c < m.cols; c += cols) {
            cols = 1 + random_bits(r) % (m.cols - c);
            struct k3_matmul part = {pieces.data + t * m.ldy + c, m.ldy, x.data + t * m.ldx, m.ldx, m.rows, cols, n};
            k->matmul_t_f32(&part, b.data + c, m.ldy);
        }
    }
    ck_assert_msg(!memcmp(y.data, pieces.data, y.n * sizeof(float)), "%s: pieces differ", k->isa);
    struct guarded *all[] = {&x, &b, &y, &before, &pieces};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guarded_free(all[i]);
}

START_TEST(transposed_products_are_right) {
    struct random r = {.state = 4};
    for (int i = 0; i < SHAPES; i++) check_transposed(k3_kernels_at((size_t)_i), &r);
}
END_TEST

/* ---- widening ---- */

START_TEST(every_half_is_widened_exactly) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    struct bytes x = bytes_new(2 * 65536 - 1);
    struct guarded y = guarded_new(65535);
    for (size_t i = 0; i < 65535; i++) memcpy(x.at + 2 * i, &(uint16_t){(uint16_t)i}, 2);
    k->widen_bf16(y.data, x.at, 65535);
    for (unsigned i = 0; i < 65535; i++) ck_assert_msg(same_bits(y.data[i], (float)bf16_value(i)), "bf16 %x", i);
    k->widen_f16(y.data, x.at, 65535);
    for (unsigned i = 0; i < 65535; i++) ck_assert_msg(same_bits(y.data[i], (float)f16_value(i)), "f16 %x", i);
    guarded_free(&x.guarded);
    guarded_free(&y);
}
END_TEST

START_TEST(short_rows_are_widened) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    for (size_t l = 0; l < test_lengths_count; l++) {
        size_t n = test_lengths[l];
        struct bytes x = bytes_new(2 * n);
        struct guarded y = guarded_new(n);
        for (size_t i = 0; i < n; i++) memcpy(x.at + 2 * i, &(uint16_t){(uint16_t)(i * 0x3a5)}, 2);
        k->widen_bf16(y.data, x.at, n);
        for (size_t i = 0; i < n; i++) ck_assert(same_bits(y.data[i], (float)bf16_value(i * 0x3a5 & 0xffff)));
        k->widen_f16(y.data, x.at, n);
        for (size_t i = 0; i < n; i++) ck_assert(same_bits(y.data[i], (float)f16_value(i * 0x3a5 & 0xffff)));
        guarded_free(&x.guarded);
        guarded_free(&y);
    }
}
END_TEST

/* Every code with every scale; groups are counted so that their number is odd, even and 0. */
START_TEST(every_mxfp4_weight_is_exact) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static const size_t groups[] = {0, 1, 2, 3, 256};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        struct bytes packed = bytes_new(16 * groups[g]), scale = bytes_new(groups[g]);
        struct guarded y = guarded_new(32 * groups[g]);
        for (size_t i = 0; i < 16 * groups[g]; i++)
            packed.at[i] = (uint8_t)(i % 16 < 8 ? 2 * i | (2 * i + 1) << 4 : (15 - i % 8) | i % 8 << 4);
        for (size_t i = 0; i < groups[g]; i++) scale.at[i] = (uint8_t)(i + (groups[g] < 256 ? 120 : 0));
        k->dequant_mxfp4(y.data, packed.at, scale.at, y.n);
        for (size_t i = 0; i < y.n; i++) {
            float want = (float)mxfp4_value(packed.at[i / 2] >> (i % 2 * 4), scale.at[i / 32]);
            ck_assert_msg(same_bits(y.data[i], want), "%s: %zu of %zu: %a, want %a", k->isa, i, y.n, (double)y.data[i],
                          (double)want);
        }
        guarded_free(&packed.guarded);
        guarded_free(&scale.guarded);
        guarded_free(&y);
    }
}
END_TEST

/* ---- goldens ---- */

START_TEST(mxfp4_goldens) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    json_t *goldens = goldens_open();
    int found = 0;
    for (size_t i = 0; i < goldens_count(goldens); i++) {
        struct golden_case c = goldens_at(goldens, i);
        bool product = !strcmp(c.op, "mxfp4_matmul");
        if (!product && strcmp(c.op, "mxfp4_dequant")) continue;
        struct golden_array packed = golden_input(&c, "packed"), scale = golden_input(&c, "scale");
        struct golden_array x = product ? golden_input(&c, "x") : packed;
        size_t rows = packed.shape[0], cols = 2 * packed.shape[1], n = product ? x.shape[0] : cols;
        float *y = malloc(n * rows * sizeof *y);
        struct k3_matmul m = {y, rows, x.f32, cols, rows, cols, n};
        if (product) k->matmul_mxfp4(&m, packed.u8, scale.u8);
        else k->dequant_mxfp4(y, packed.u8, scale.u8, rows * cols);
        golden_check(&c, "y", y, n * rows);
        golden_free(&packed);
        golden_free(&scale);
        if (product) golden_free(&x);
        free(y);
        found++;
    }
    ck_assert_int_ge(found, 5);
    goldens_close(goldens);
}
END_TEST

TCase *case_matmul(int tables) {
    TCase *t = tcase_create("matmul");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, products_are_right, 0, tables * KINDS);
    tcase_add_loop_test(t, wide_rows_are_right, 0, tables * KINDS);
    tcase_add_loop_test(t, pieces_give_the_same_bits, 0, tables * KINDS);
    tcase_add_loop_test(t, neighbours_do_not_matter, 0, tables * KINDS);
    tcase_add_loop_test(t, transposed_products_are_right, 0, tables);
    tcase_add_loop_test(t, every_half_is_widened_exactly, 0, tables);
    tcase_add_loop_test(t, short_rows_are_widened, 0, tables);
    tcase_add_loop_test(t, every_mxfp4_weight_is_exact, 0, tables);
    tcase_add_loop_test(t, mxfp4_goldens, 0, tables);
    return t;
}
