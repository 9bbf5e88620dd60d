// A team of work items goes along each line: every one takes a piece of it, first for the piece's total alone, and again
// from the total of the pieces before it.
//
// Per operation: START, the total of no elements; JOIN, that of two runs, the earlier one first.

#if defined(op_max) || defined(op_min)
typedef COMPUTE(READ) ACC;
#ifdef op_max
#define REACHES(x, best) ((x) >= (best))
#else
#define REACHES(x, best) ((x) <= (best))
#endif
typedef struct {
  ACC value;
  long place;  // -1 for none
} Total;
#define START ((Total){0, -1})
// The last one of several, and of NaNs.
Total join(Total a, Total b) {
  return b.place >= 0 && (a.place < 0 || IS_NAN(b.value) || REACHES(b.value, a.value)) ? b : a;
}
#define ONE(x, i) ((Total){x, i})
#define VALUE(total) total.value
#else
#ifdef FLOATING
typedef double ACC;
#else
typedef COMPUTE(READ) ACC;
#endif
typedef ACC Total;
#if defined(op_sum)
#define START 0
Total join(Total a, Total b) { return a + b; }
#elif defined(op_prod)
#define START UNITY
Total join(Total a, Total b) { return product(a, b); }
#else
#define START (-INFINITY)
Total join(Total a, Total b) {
  return a == b && isinf(a) ? a : fmax(a, b) + log1p(exp(-fabs(a - b)));
}
#endif
#define ONE(x, i) ((ACC)(x))
#define VALUE(total) total
#endif

#define HERE(i) ONE((COMPUTE(READ))CONVERT(LOAD(IN, in, at.of[2] + (i) * in_stride)), i)

__kernel void scan(Shape lines, long length, long out_stride, long index_stride, long in_stride,
                   __global STORAGE(OUT) * out, __global long* indices, __global const STORAGE(IN) * in) {
  __local Total totals[TEAM];
  const int member = get_local_id(0);
  const Offsets at = find_offsets(&lines, get_group_id(0));
  const long piece = (length + TEAM - 1) / TEAM;
  const long begin = min(member * piece, length);
  const long end = min(begin + piece, length);
  Total total = START;
  for (long i = begin; i < end; ++i) total = join(total, HERE(i));
  totals[member] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  total = START;
  for (int other = 0; other < member; ++other) total = join(total, totals[other]);
  for (long i = begin; i < end; ++i) {
    total = join(total, HERE(i));
    STORE(OUT, out, at.of[0] + i * out_stride, VALUE(total));
#ifdef PLACES
    indices[at.of[1] + i * index_stride] = total.place;
#endif
  }
}
