/* exp, sigmoid, tanh and log1p of a vector, to about two ulp.
 *
 * NaN comes out where NaN goes in: min and max return their second operand when one is NaN, so x stands second. */
#ifndef K3_SIMD_VEC_MATH_H
#define K3_SIMD_VEC_MATH_H

#include "simd/vec/vec.h"

/* 2^n, -126 <= n <= 127. */
K3_INLINE k3_vec k3_pow2(k3_ints n) {
    return (k3_vec)((n + 127) << 23);
}

/* x = n ln 2 + r, |r| <= ln 2 / 2: returns expm1(r), a minimax polynomial (2.4e-10 relative). */
K3_INLINE k3_vec k3_reduce_expm1(k3_vec x, k3_ints *n) {
    k3_vec t = x * k3_set(0x1.715476p+0f); /* 1 / ln 2 */
    t = k3_nearest(t);
    /* ln 2 in two parts, of which n times the first is exact. */
    k3_vec r = k3_fnma(t, k3_set(0x1.62e400p-1f), x);
    r = k3_fnma(t, k3_set(0x1.7f7d1cp-20f), r);
    k3_vec r2 = r * r; /* the polynomial in pairs: half the latency */
    k3_vec low = k3_fma(k3_set(1.6666666370e-01f), r, k3_set(5.0000000442e-01f));
    k3_vec middle = k3_fma(k3_set(8.3333893911e-03f), r, k3_set(4.1666360793e-02f));
    k3_vec high = k3_fma(k3_set(1.9845878760e-04f), r, k3_set(1.3940637576e-03f));
    *n = k3_to_ints(t);
    return k3_fma(k3_fma(k3_fma(high, r2, middle), r2, low), r2, r);
}

/* e^x for x <= 89: subnormals are rounded once, below them 0. */
K3_INLINE k3_vec k3_exp_to_89(k3_vec x) {
    k3_ints n;
    x = k3_max(k3_set(-105), x);
    k3_vec e = k3_set(1) + k3_reduce_expm1(x, &n);
    k3_ints half = n >> 1; /* 2^n itself may not be a float */
    return e * k3_pow2(half) * k3_pow2(n - half);
}

/* e^x over the whole range; above it infinity. */
K3_INLINE k3_vec k3_exp(k3_vec x) {
    return k3_exp_to_89(k3_min(k3_set(89), x));
}

/* A quotient not divided yet: several of them share one division. */
struct k3_ratio {
    k3_vec num, den;
};

K3_INLINE k3_vec k3_divide(struct k3_ratio r) {
    return r.num / r.den;
}

/* 1 / (1 + e^-x), or e^x / (1 + e^x) below 0: exp never sees a positive number.  den in [1, 2]. */
K3_INLINE struct k3_ratio k3_sigmoid_ratio(k3_vec x) {
    k3_vec one = k3_set(1), e = k3_exp_to_89(k3_negative_abs(x));
    return (struct k3_ratio){k3_if_negative(x, e, one), (one + e)};
}

/* tanh |x| = -m / (2 + m), m = expm1(-2 |x|): keeps its digits near 0.  den in [1, 2]. */
K3_INLINE struct k3_ratio k3_tanh_ratio(k3_vec x) {
    k3_ints n;
    k3_ints sign = (k3_ints)x & INT32_MIN;
    k3_vec a = k3_set(-2) * k3_abs(x);
    a = k3_max(k3_set(-40), a); /* there tanh is 1 already */
    k3_vec p = k3_reduce_expm1(a, &n), scale = k3_pow2(n);
    k3_vec m = k3_fma(p, scale, (scale - k3_set(1)));
    return (struct k3_ratio){(k3_vec)((k3_ints)k3_abs(m) | sign), (k3_set(2) + m)};
}

/* log(1 + e), 0 <= e <= 1, as 2 atanh(e / (2 + e)). */
K3_INLINE k3_vec k3_log1p(k3_vec e) {
    k3_vec s = (e / (k3_set(2) + e)), s2 = s * s;
    k3_vec p = k3_set(2.8024459270e-01f);
    p = k3_fma(p, s2, k3_set(2.7999140978e-01f));
    p = k3_fma(p, s2, k3_set(4.0021699066e-01f));
    p = k3_fma(p, s2, k3_set(6.6666413133e-01f));
    return k3_fma(s * s2, p, s + s);
}

#endif
