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

#ifdef HAS_FLOAT64
typedef double16 Run;
#define CONVERT_RUN convert_double16
#else
typedef float16 Run;
#define CONVERT_RUN convert_float16
#endif
#define RUN 16

// `outer` is the shape of the results in out and in; `inner` that of each result's elements in `in`, of which a team
// takes `part`. IN_PARTS: several teams make a result, and leave their states to `combine`.
__kernel void reduce(Shape outer, Shape inner, long count, long part, __global STORAGE(OUT) * out,
                     __global const STORAGE(IN) * in, __global ACC* states) {
  __local ACC shares[TEAM];
  const int member = get_local_id(0);
  const Offsets at = find_offsets(&outer, get_group_id(0));
  __global const STORAGE(IN)* from = in + at.of[1];
  const long first = get_group_id(1) * part;
  const long last = min(first + part, count);
  ACC share = FIRST;
#ifdef SIDE_BY_SIDE
  // The elements are: each member takes those that lie together, in runs.
  const long each = (part + TEAM - 1) / TEAM;
  long i = first + member * each;
  const long end = min(i + each, last);
  Run run = FIRST;
  for (; i + RUN <= end; i += RUN) run = TAKE(run, CONVERT_RUN(vload16(0, from + i)));
  ACC parts[RUN];
  vstore16(run, 0, parts);
  for (int k = 0; k < RUN; ++k) share = TAKE(share, parts[k]);
  for (; i < end; ++i) share = TAKE(share, (ACC)from[i]);
#else
  ACC lost = 0;
  for (long i = first + member; i < last; i += TEAM) {
    const COMPUTE(READ) x = CONVERT(LOAD(IN, from, find_offsets(&inner, i).of[1]));
    const ACC taken = TAKE(share, x);
    if (COMPENSATED) lost += (share - (taken - (taken - share))) + (x - (taken - share));
    share = taken;
  }
  // Of infinities nothing finite is lost.
  if (COMPENSATED && !IS_TRUE(lost - lost)) share += lost;
#endif
  shares[member] = share;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (member != 0) return;
  for (int other = 1; other < TEAM; ++other) share = TAKE(share, shares[other]);
#ifdef IN_PARTS
  states[get_group_id(0) * get_num_groups(1) + get_group_id(1)] = share;
#else
  STORE(OUT, out, at.of[0], FINISH(share, count));
#endif
}

#ifdef ACROSS
// For results that lie side by side, and elements of each that do not: a work item makes a run of results.
__kernel void reduce_across(long results, long out_stride, long count, long stride, long part,
                            __global STORAGE(OUT) * out, __global const STORAGE(IN) * in, __global ACC* states) {
  const long column = get_global_id(0) * RUN;
  if (column >= results) return;
  const int wide = min(results - column, (long)RUN);
  const long first = get_global_id(1) * part;
  const long last = min(first + part, count);
  ACC shares[RUN];
  if (wide == RUN) {
    Run run = FIRST;
    for (long i = first; i < last; ++i) run = TAKE(run, CONVERT_RUN(vload16(0, in + i * stride + column)));
    vstore16(run, 0, shares);
  } else {
    for (int k = 0; k < wide; ++k) {
      shares[k] = FIRST;
      for (long i = first; i < last; ++i) shares[k] = TAKE(shares[k], (ACC)in[i * stride + column + k]);
    }
  }
  for (int k = 0; k < wide; ++k) {
#ifdef IN_PARTS
    states[(column + k) * get_global_size(1) + get_global_id(1)] = shares[k];
#else
    STORE(OUT, out, (column + k) * out_stride, FINISH(shares[k], count));
#endif
  }
}

#endif

#ifdef IN_PARTS
__kernel void combine(Shape outer, long results, long parts, long count, __global STORAGE(OUT) * out,
                      __global const ACC* states) {
  const long i = get_global_id(0);
  if (i >= results) return;
  ACC share = FIRST;
  for (long part = 0; part < parts; ++part) share = TAKE(share, states[i * parts + part]);
  STORE(OUT, out, find_offsets(&outer, i).of[0], FINISH(share, count));
}
#endif
