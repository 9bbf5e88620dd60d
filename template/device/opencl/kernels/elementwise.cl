// out[...] = compute(a[...], b[...], c[...]), which unary.cl, binary.cl, ternary.cl and copy.cl define, of ARRAYS inputs.
// A, B, C and OUT are their element types, A_IS_NUMBER and so on say that an input is a number instead of an array.
#ifdef A_IS_NUMBER
#define X(i) number_a
#else
#define X(i) LOAD(A, a, i)
#endif
#ifdef B_IS_NUMBER
#define Y(i) number_b
#else
#define Y(i) LOAD(B, b, i)
#endif
#ifdef C_IS_NUMBER
#define Z(i) number_c
#else
#define Z(i) LOAD(C, c, i)
#endif

// Integers are not divided by 0.
#ifdef DIVIDES
#define CHECK(i) \
  if (Y(i) == 0) report(fault, 0, 0)
#else
#define CHECK(i)
#endif

#define ARGUMENTS                                                                                              \
  __global STORAGE(OUT) *out, __global const STORAGE(A) *a, __global const STORAGE(B) *b,                      \
      __global const STORAGE(C) *c, COMPUTE(A) number_a, COMPUTE(B) number_b, COMPUTE(C) number_c, COMPUTE(C) p, \
      COMPUTE(C) q, COMPUTE(C) r, __global Fault *fault

// Arrays that lie alike in memory, without gaps.
__kernel void dense(long count, ARGUMENTS) {
  const long i = get_global_id(0);
  if (i >= count) return;
  CHECK(i);
  STORE(OUT, out, i, compute(X(i), Y(i), Z(i), p, q, r));
}

__kernel void strided(long count, Shape shape, ARGUMENTS) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const Offsets at = find_offsets(&shape, i);
  CHECK(at.of[2]);
  STORE(OUT, out, at.of[0], compute(X(at.of[1]), Y(at.of[2]), Z(at.of[3]), p, q, r));
}
