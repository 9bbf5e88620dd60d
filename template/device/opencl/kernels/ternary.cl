// OP is one of these, an expression of x, y, z and the parameter p.
typedef COMPUTE(C) T;

#define op_where x != 0 ? y : z

#ifdef FLOATING

T clamp_number(T x, T low, T high) {
  const T raised = x < low || isnan(low) ? low : x;
  return raised > high || isnan(high) ? high : raised;
}

#define op_clamp clamp_number(x, y, z)
// Seen from the nearer end, so that both ends are exact.
#define op_lerp fabs(z) < (T)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z)
#define op_addcmul x + p * y * z
#define op_addcdiv x + p * y / z

#else

#define op_clamp min(max(x, y), z)
#define op_addcmul x + p * y * z

#endif

T compute(COMPUTE(A) x, T y, T z, T p, T q, T r) { return OP; }
