// OP is one of these, an expression of x and the parameters p, q, r.
typedef COMPUTE(A) T;

#define op_relu x < 0 ? (T)0 : x
#define op_threshold x <= p ? q : x
#define op_logical_not x == 0
#define op_conj x

#ifdef FLOATING

T clamp_number(T x, T low, T high) {
  const T raised = x < low || isnan(low) ? low : x;
  return raised > high || isnan(high) ? high : raised;
}

T sigmoid(T x) { return 1 / (1 + exp(-x)); }

T normal_share(T x) {
  float density;
  return sizeof(T) == sizeof(float) ? (T)normal_share_of_float(x, &density) : erfc(x * (T)-M_SQRT1_2) / 2;
}

#ifdef HAS_FLOAT64
// In double for every type: OpenCL has no bounds for the errors of these, or lacks them.

// From an approximation in closed form (Winitzki) by Halley's method; near 1, where erf has no digits left, on erfc.
double erfinv(double x) {
  const double size = fabs(x);
  if (!(size < 1)) return size == 1 ? copysign((double)INFINITY, x) : NAN;
  if (x == 0) return x;
  const double shape = 0.147;
  const double logarithm = log1p(-size * size);
  const double middle = M_2_PI / shape + logarithm / 2;
  double result = sqrt(sqrt(middle * middle - logarithm / shape) - middle);
  for (int round = 0; round < 3; ++round) {
    const double excess = size < 0.5 ? erf(result) - size : (1 - size) - erfc(result);
    const double step = excess / (M_2_SQRTPI * exp(-result * result));
    result -= step / (1 + result * step);
  }
  return copysign(result, x);
}

// Both move on to where Stirling's series is exact, after a reflection.
double log_gamma(double x) {
  if (isinf(x) || (x <= 0 && x == trunc(x))) return INFINITY;
  if (x == 1 || x == 2) return 0;
  double at = x <= 0 ? 1 - x : x;
  double passed = 1;
  for (; at < 10; at += 1) passed *= at;
  const double square = 1 / (at * at);
  const double series =
      (((((-691.0 / 360360 * square + 1.0 / 1188) * square - 1.0 / 1680) * square + 1.0 / 1260) * square - 1.0 / 360) *
           square + 1.0 / 12) / at;
  const double result = (at - 0.5) * log(at) - at + 0.91893853320467274178 + series - log(passed);
  return x <= 0 ? log(M_PI) - log(fabs(sinpi(x))) - result : result;
}

double digamma(double x) {
  if (x == 0) return copysign((double)INFINITY, -x);
  if (x < 0 && (isinf(x) || x == trunc(x))) return NAN;
  double at = x < 0 ? 1 - x : x;
  double passed = x < 0 ? M_PI / tan(M_PI * (x - trunc(x))) : 0;
  for (; at < 10; at += 1) passed += 1 / at;
  const double square = 1 / (at * at);
  const double series =
      ((((((square / 12 - 691.0 / 32760) * square + 1.0 / 132) * square - 1.0 / 240) * square + 1.0 / 252) * square -
        1.0 / 120) * square + 1.0 / 12) * square;
  return log(at) - 0.5 / at - series - passed;
}

double erfcx(double x) {
  if (x < -27) return INFINITY;
  if (x < 12) {
    // The square as two numbers, since exp makes a relative error of an absolute one.
    const double square = x * x;
    return exp(square) * (1 + fma(x, x, -square)) * erfc(x);
  }
  const double step = -0.5 / (x * x);
  double series = 1;
  for (int odd = 17; odd > 0; odd -= 2) series = 1 + odd * step * series;
  return series * (M_2_SQRTPI / 2) / x;
}

#define op_erfcx (T)erfcx(x)
#define op_erfinv (T)erfinv(x)
#define op_lgamma (T)log_gamma(x)
#define op_digamma (T)digamma(x)
#endif

#define op_abs fabs(x)
#define op_neg -x
#define op_sign (T)((x > 0) - (x < 0))
#define op_sgn op_sign
#define op_reciprocal 1 / x
#define op_sqrt sqrt(x)
#define op_rsqrt 1 / sqrt(x)
#define op_exp exp(x)
#define op_exp2 exp2(x)
#define op_expm1 expm1(x)
#define op_log log(x)
#define op_log2 log2(x)
#define op_log10 log10(x)
#define op_log1p log1p(x)
#define op_sin sin(x)
#define op_cos cos(x)
#define op_tan tan(x)
#define op_asin asin(x)
#define op_acos acos(x)
#define op_atan atan(x)
#define op_sinh sinh(x)
#define op_cosh cosh(x)
#define op_tanh tanh(x)
#define op_asinh asinh(x)
#define op_acosh acosh(x)
#define op_atanh atanh(x)
#define op_erf erf(x)
#define op_erfc erfc(x)
#define op_sigmoid sigmoid(x)
#define op_floor floor(x)
#define op_ceil ceil(x)
#define op_trunc trunc(x)
#define op_round rint(x)
#define op_frac x - trunc(x)
#define op_clamp clamp_number(x, p, q)
#define op_leaky_relu x > 0 ? x : p * x
#define op_elu x < 0 ? q * p * expm1(r * x) : q * x
#define op_gelu x * normal_share(x)
#define op_gelu_tanh x * sigmoid((T)(2 * M_SQRT2 * (M_2_SQRTPI / 2)) * (x + (T)0.044715 * x * x * x))
#define op_silu x * sigmoid(x)
#define op_softplus p * x > q ? x : log1p(exp(p * x)) / p
#define op_isnan isnan(x)
#define op_isinf isinf(x)
#define op_isfinite isfinite(x)
#define op_signbit signbit(x)
#define op_logit log((p < 0 ? x : x < p ? p : x > 1 - p ? 1 - p : x) / (1 - (p < 0 ? x : x < p ? p : x > 1 - p ? 1 - p : x)))
#define op_hardsigmoid clamp_number(x + 3, 0, 6) / 6
#define op_hardswish x * clamp_number(x + 3, 0, 6) / 6
#define op_hardshrink x >= -p && x <= p ? (T)0 : x
#define op_softshrink x > p ? x - p : x < -p ? x + p : 0 * x
#define op_mish x * tanh(log1p(exp(x)))
#define op_log_sigmoid (x < 0 ? x : (T)0) - log1p(exp(-fabs(x)))
#define op_isposinf x == (T)INFINITY
#define op_isneginf x == (T)-INFINITY
#define op_angle x < 0 ? (T)M_PI : isnan(x) ? x : (T)0
#define op_nan_to_num isnan(x) ? p : x == (T)INFINITY ? q : x == (T)-INFINITY ? r : x

#else

#define op_abs x < 0 ? -x : x
#define op_neg -x
#define op_sign (x > 0) - (x < 0)
#define op_sgn op_sign
#define op_floor x
#define op_ceil x
#define op_trunc x
#define op_round x
#define op_nan_to_num x
#define op_clamp min(max(x, p), q)
#ifdef BOOLEAN
#define op_bitwise_not x == 0
#else
#define op_bitwise_not ~x
#endif
#define op_isnan 0
#define op_isinf 0
#define op_isposinf 0
#define op_isneginf 0
#define op_isfinite 1
#define op_signbit x < 0

#endif

COMPUTE(OUT) compute(T x, T y, T z, T p, T q, T r) { return OP; }
