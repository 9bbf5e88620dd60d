// A team of work items makes each result: every one takes its share of the elements, and the first puts the shares
// together. ACC, double where there is one, is what they calculate in.
//
// Per operation: FIRST, the state of no elements; TAKE, what a state s becomes by another, or by an element; FINISH, the
// result of a state and of the number of elements.
#ifdef FLOATING
#ifdef HAS_FLOAT64
typedef double ACC;
#else
typedef float ACC;
#endif
#define LEAST ((ACC)-INFINITY)
#define GREATEST ((ACC)INFINITY)
#define GREATER(s, x) (isnan(s) || (s) > (x) ? (s) : (x))
#define LESS(s, x) (isnan(s) || (s) < (x) ? (s) : (x))
#else
typedef COMPUTE(READ) ACC;
#define LEAST ((ACC)1 << (sizeof(ACC) * 8 - 1))
#define GREATEST (~LEAST)
#define GREATER(s, x) max(s, x)
#define LESS(s, x) min(s, x)
#endif

#if defined(op_sum) || defined(op_mean) || defined(op_count_nonzero)
#define FIRST 0
#define TAKE(s, x) (s) + (x)
#elif defined(op_prod)
#define FIRST UNITY
#define TAKE product
#elif defined(op_max)
#define FIRST LEAST
#define TAKE(s, x) GREATER(s, x)
#elif defined(op_min)
#define FIRST GREATEST
#define TAKE(s, x) LESS(s, x)
#elif defined(op_all)
#define FIRST 1
#define TAKE(s, x) (s) && (x)
#elif defined(op_any)
#define FIRST 0
#define TAKE(s, x) (s) || (x)
#endif

#ifdef op_mean
#define FINISH(s, count) (s) / (count)
#else
#define FINISH(s, count) (s)
#endif

// Sums of doubles, which ACC is no wider than, keep what rounding takes from them (Knuth's two-sum).
#if defined(FLOATING) && (defined(op_sum) || defined(op_mean))
#define COMPENSATED (sizeof(COMPUTE(READ)) == sizeof(ACC))
#else
#define COMPENSATED 0
#endif

// `outer` is the shape of the results in out and in; `inner` that of each result's elements in `in`.
__kernel void reduce(Shape outer, Shape inner, long count, __global STORAGE(OUT) * out, __global const STORAGE(IN) * in) {
  __local ACC shares[TEAM];
  const int member = get_local_id(0);
  const Offsets at = find_offsets(&outer, get_group_id(0));
  __global const STORAGE(IN)* from = in + at.of[1];
  ACC share = FIRST;
  ACC lost = 0;
  for (long i = member; i < count; i += TEAM) {
    const COMPUTE(READ) x = CONVERT(LOAD(IN, from, find_offsets(&inner, i).of[1]));
    const ACC taken = TAKE(share, x);
    if (COMPENSATED) lost += (share - (taken - (taken - share))) + (x - (taken - share));
    share = taken;
  }
  // Of infinities nothing finite is lost.
  if (COMPENSATED && !IS_TRUE(lost - lost)) share += lost;
  shares[member] = share;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (member != 0) return;
  for (int other = 1; other < TEAM; ++other) share = TAKE(share, shares[other]);
  STORE(OUT, out, at.of[0], FINISH(share, count));
}
