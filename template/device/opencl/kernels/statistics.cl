// Norms, variances and logarithms of sums: reductions that take more than one pass, or an operation on the whole. A
// team makes each result, as in reduce.cl.
#define AT(i) CONVERT(LOAD(IN, from, find_offsets(&inner, i).of[1]))
#ifdef COMPLEX
// The variance of pairs is that of their parts together.
#define PARTS 2
#define X(i) (part == 0 ? AT(i).x : AT(i).y)
#else
#define PARTS 1
#define X(i) ((ACC)(COMPUTE(READ))AT(i))
#endif

#if defined(op_count)
#define TERM(x) ((x) != 0)
#define RESULT(sum) (sum)
#elif defined(op_absolute)
#define TERM(x) fabs(x)
#define RESULT(sum) (sum)
#elif defined(op_square)
#define TERM(x) (x) * (x)
#define RESULT(sum) sqrt(sum)
#elif defined(op_power)
#define TERM(x) pow(fabs(x), parameter)
#define RESULT(sum) pow(sum, 1 / parameter)
#elif defined(op_var)
#define TERM(x) ((x) - middle) * ((x) - middle)
#define RESULT(sum) (sum) / max((ACC)0, count - parameter)
#elif defined(op_std)
#define TERM(x) ((x) - middle) * ((x) - middle)
#define RESULT(sum) sqrt((sum) / max((ACC)0, count - parameter))
#elif defined(op_logsumexp)
#define TERM(x) exp((x) - middle)
#define RESULT(sum) (sum)
#endif

__kernel void statistic(Shape outer, Shape inner, long count, __global STORAGE(OUT) * out,
                        __global const STORAGE(IN) * in, ACC parameter) {
  __local ACC shares[TEAM];
  const Offsets at = find_offsets(&outer, get_group_id(0));
  __global const STORAGE(IN)* from = in + at.of[1];
  ACC share = 0;
#if defined(op_largest)
  FOR_SHARE(i, count) share = greater_of(share, fabs(X(i)));
  const ACC result = greatest_of_team(share, shares);
#elif defined(op_smallest)
  share = -INFINITY;
  FOR_SHARE(i, count) share = greater_of(share, -fabs(X(i)));
  const ACC result = -greatest_of_team(share, shares);
#else
  ACC sum = 0;
  for (int part = 0; part < PARTS; ++part) {
#if defined(op_var) || defined(op_std)
    // Relative to the first element, so that equal ones have exactly their value as mean.
    const ACC first = count > 0 ? X(0) : 0;
    share = 0;
    FOR_SHARE(i, count) share += X(i) - first;
    const ACC middle = first + sum_of_team(share, shares) / count;
#elif defined(op_logsumexp)
    share = -INFINITY;
    FOR_SHARE(i, count) share = greater_of(share, X(i));
    const ACC largest = greatest_of_team(share, shares);
    // Infinities have no difference.
    const ACC middle = isinf(largest) ? 0 : largest;
#endif
    share = 0;
    FOR_SHARE(i, count) share += TERM(X(i));
    sum += sum_of_team(share, shares);
#ifdef op_logsumexp
    sum = log(sum) + middle;
#endif
  }
  const ACC result = RESULT(sum);
#endif
  if (get_local_id(0) == 0) STORE(OUT, out, at.of[0], (COMPUTE(OUT))result);
}
