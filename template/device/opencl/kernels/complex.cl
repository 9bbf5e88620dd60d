// The operations of unary.cl, binary.cl and ternary.cl on complex numbers, which are pairs of double.
typedef double2 T;

T make(double real, double imaginary) { return (T)(real, imaginary); }
T conjugate(T x) { return make(x.x, -x.y); }
T times_i(T x) { return make(-x.y, x.x); }
T over_i(T x) { return make(x.y, -x.x); }
double size(T x) { return hypot(x.x, x.y); }

// Scaled by the divisor's larger part, so that squares neither overflow nor vanish (Smith).
T quotient(T x, T y) {
  if (y.x == 0 && y.y == 0) return x / fabs(y.x);
  if (fabs(y.x) >= fabs(y.y)) {
    const double ratio = y.y / y.x;
    return make(x.x + x.y * ratio, x.y - x.x * ratio) / (y.x + y.y * ratio);
  }
  const double ratio = y.x / y.y;
  return make(x.x * ratio + x.y, x.y * ratio - x.x) / (y.x * ratio + y.y);
}

T root(T x) {
  if (x.x == 0 && x.y == 0) return make(0, x.y);
  if (isinf(x.y)) return make(INFINITY, x.y);
  const double larger = sqrt(fabs(x.x) / 2 + size(x) / 2);
  const double smaller = fabs(x.y) / larger / 2;
  return x.x >= 0 ? make(larger, copysign(smaller, x.y)) : make(smaller, copysign(larger, x.y));
}

T exponential(T x) {
  if (x.y == 0) return make(exp(x.x), x.y);
  // Without an angle there is still a size.
  if (isinf(x.x) && !isfinite(x.y)) return x.x < 0 ? make(0, 0) : make(x.x, NAN);
  return exp(x.x) * make(cos(x.y), sin(x.y));
}

T exponential_less_one(T x) {
  const double half_sine = sin(x.y / 2);
  return make(expm1(x.x) * cos(x.y) - 2 * half_sine * half_sine, exp(x.x) * sin(x.y));
}

// `growth` is |x|^2 - 1, without the cancellation of sizes near 1.
T logarithm_by(T x, double growth) {
  return make(fabs(growth) < 0.5 ? log1p(growth) / 2 : log(size(x)), atan2(x.y, x.x));
}

T logarithm(T x) { return logarithm_by(x, (x.x - 1) * (x.x + 1) + x.y * x.y); }

T logarithm_plus_one(T x) { return logarithm_by(make(1 + x.x, x.y), x.x * (2 + x.x) + x.y * x.y); }

T power(T base, T exponent) {
  if (!IS_TRUE(exponent)) return UNITY;
  if (!IS_TRUE(base) && exponent.y == 0 && exponent.x > 0) return 0;
  return exponential(product(exponent, logarithm(base)));
}

T hyperbolic_sine(T x) { return make(sinh(x.x) * cos(x.y), cosh(x.x) * sin(x.y)); }
T hyperbolic_cosine(T x) { return make(cosh(x.x) * cos(x.y), sinh(x.x) * sin(x.y)); }

// By the tangent and the hyperbolic sine, which do not cancel (Kahan).
T hyperbolic_tangent(T x) {
  if (fabs(x.x) > 20) return make(copysign(1.0, x.x), 4 * sin(x.y) * cos(x.y) * exp(-2 * fabs(x.x)));
  const double tangent = tan(x.y);
  const double slope = 1 + tangent * tangent;
  const double sine = sinh(x.x);
  return make(slope * sqrt(1 + sine * sine) * sine, tangent) / (1 + slope * sine * sine);
}

// The inverses are Kahan's too.
T arc_sine(T x) {
  const T below = root(make(1 - x.x, -x.y));
  const T above = root(make(1 + x.x, x.y));
  return make(atan2(x.x, product(below, above).x), asinh(product(conjugate(below), above).y));
}

T arc_cosine(T x) {
  const T below = root(make(1 - x.x, -x.y));
  const T above = root(make(1 + x.x, x.y));
  return make(2 * atan2(below.x, above.x), asinh(product(conjugate(above), below).y));
}

T hyperbolic_arc_cosine(T x) {
  const T below = root(make(x.x - 1, x.y));
  const T above = root(make(x.x + 1, x.y));
  return make(asinh(product(conjugate(below), above).x), 2 * atan2(below.y, above.x));
}

T hyperbolic_arc_tangent(T x) {
  const double real = fabs(x.x);
  const double less = 1 - real;
  return make(copysign(log1p(4 * real / (less * less + x.y * x.y)) / 4, x.x),
              atan2(2 * x.y, less * (1 + real) - x.y * x.y) / 2);
}

T direction(T x) { return IS_TRUE(x) ? x / size(x) : (T)0; }

T sigmoid(T x) { return quotient(UNITY, UNITY + exponential(-x)); }

T silu_slope(T x) { return product(sigmoid(x), UNITY + product(x, UNITY - sigmoid(x))); }

double replace(double x, T p, T q, T r) { return isnan(x) ? p.x : !isinf(x) ? x : x > 0 ? q.x : r.x; }

T between(T x, T y, T share) {
  return size(share) < 0.5 ? x + product(share, y - x) : y - product(y - x, UNITY - share);
}

#define op_abs size(x)
#define op_neg -x
#define op_sgn direction(x)
#define op_reciprocal quotient(UNITY, x)
#define op_sqrt root(x)
#define op_rsqrt quotient(UNITY, root(x))
#define op_exp exponential(x)
#define op_exp2 exponential(x * M_LN2)
#define op_expm1 exponential_less_one(x)
#define op_log logarithm(x)
#define op_log2 logarithm(x) / M_LN2
#define op_log10 logarithm(x) / M_LN10
#define op_log1p logarithm_plus_one(x)
#define op_sin over_i(hyperbolic_sine(times_i(x)))
#define op_cos hyperbolic_cosine(times_i(x))
#define op_tan over_i(hyperbolic_tangent(times_i(x)))
#define op_asin arc_sine(x)
#define op_acos arc_cosine(x)
#define op_atan over_i(hyperbolic_arc_tangent(times_i(x)))
#define op_sinh hyperbolic_sine(x)
#define op_cosh hyperbolic_cosine(x)
#define op_tanh hyperbolic_tangent(x)
#define op_asinh over_i(arc_sine(times_i(x)))
#define op_acosh hyperbolic_arc_cosine(x)
#define op_atanh hyperbolic_arc_tangent(x)
#define op_sigmoid sigmoid(x)
#define op_silu product(x, sigmoid(x))
#define op_logical_not !IS_TRUE(x)
#define op_isnan isnan(x.x) || isnan(x.y)
#define op_isinf isinf(x.x) || isinf(x.y)
#define op_isfinite isfinite(x.x) && isfinite(x.y)
#define op_conj conjugate(x)
#define op_angle atan2(x.y, x.x)
#define op_nan_to_num make(replace(x.x, p, q, r), replace(x.y, p, q, r))

#define op_add x + product(p, y)
#define op_sub x - product(p, y)
#define op_mul product(x, y)
#define op_div quotient(x, y)
#define op_pow power(x, y)
#define op_eq x.x == y.x && x.y == y.y
#define op_ne x.x != y.x || x.y != y.y
#define op_logical_and IS_TRUE(x) && IS_TRUE(y)
#define op_logical_or IS_TRUE(x) || IS_TRUE(y)
#define op_logical_xor IS_TRUE(x) != IS_TRUE(y)
#define op_sigmoid_grad product(x, conjugate(product(UNITY - y, y)))
#define op_tanh_grad product(x, conjugate(UNITY - product(y, y)))
#define op_silu_grad product(x, silu_slope(y))
#define op_squared_difference product(x - y, x - y)

#define op_where x != 0 ? y : z
#define op_lerp between(x, y, z)
#define op_addcmul x + product(product(p, y), z)
#define op_addcdiv x + quotient(product(p, y), z)

COMPUTE(OUT) compute(COMPUTE(A) x, T y, T z, T p, T q, T r) { return OP; }
