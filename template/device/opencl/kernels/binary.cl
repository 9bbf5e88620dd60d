// OP is one of these, an expression of x, y and the parameters p, q, r.
typedef COMPUTE(B) T;

#define op_add x + p * y
#define op_sub x - p * y
#define op_mul x * y
#define op_eq x == y
#define op_ne x != y
#define op_lt x < y
#define op_le x <= y
#define op_gt x > y
#define op_ge x >= y
#define op_logical_and x != 0 && y != 0
#define op_logical_or x != 0 || y != 0
#define op_logical_xor (x != 0) != (y != 0)
#define op_relu_grad y <= p ? (T)0 : x
#define op_heaviside x == 0 ? y : (T)(x > 0)
#define op_squared_difference (x - y) * (x - y)

#ifdef FLOATING

T remainder_of(T x, T y) {
  const T rest = fmod(x, y);
  return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
}

// The quotient that belongs to that remainder. floor(x / y) can be one too large, since x / y is rounded.
T divide_floor(T x, T y) {
  if (y == 0) return x / y;
  const T rest = fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign((T)0, x / y);
  const T whole = floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}

T sigmoid(T x) { return 1 / (1 + exp(-x)); }

T gelu_slope(T x) {
  const T factor = (T)(M_2_SQRTPI / 2 * M_SQRT1_2);
  if (sizeof(T) == sizeof(float)) {
    float density;
    const float share = normal_share_of_float(x, &density);
    return share + x * factor * density;
  }
  return erfc(x * (T)-M_SQRT1_2) / 2 + x * factor * exp(x * x / -2);
}

T gelu_tanh_slope(T x) {
  const T scale = (T)(2 * M_SQRT2 * (M_2_SQRTPI / 2));
  const T share = sigmoid(scale * (x + (T)0.044715 * x * x * x));
  return share + x * share * (1 - share) * scale * (1 + (T)(3 * 0.044715) * x * x);
}

T silu_slope(T x) {
  const T share = sigmoid(x);
  return share * (1 + x * (1 - share));
}

T mish_slope(T x) {
  const T squashed = tanh(log1p(exp(x)));
  return squashed + x / (1 + exp(-x)) * (1 - squashed * squashed);
}

T log_add(T x, T y) {
  if (x == y && isinf(x)) return x;
  return isnan(x) || isnan(y) ? x + y : fmax(x, y) + log1p(exp(-fabs(x - y)));
}

T log_add2(T x, T y) {
  if (x == y && isinf(x)) return x;
  return isnan(x) || isnan(y) ? x + y : fmax(x, y) + log1p(exp2(-fabs(x - y))) * (T)M_LOG2E;
}

T smooth_l1(T distance, T beta) {
  return distance < beta ? (T)0.5 * distance * distance / beta : distance - (T)0.5 * beta;
}

T huber(T distance, T delta) {
  return distance <= delta ? (T)0.5 * distance * distance : delta * (distance - (T)0.5 * delta);
}

T logit_slope(T x, T eps) {
  const bool clamped = eps < 0 ? x < 0 || x > 1 : x < eps || x > 1 - eps;
  if (clamped) return eps < 0 ? (T)NAN : (T)0;
  return 1 / (x * (1 - x));
}

#if NARROW(OUT)

ushort to_bits(T x) {
  ushort bits;
  STORE(OUT, (STORAGE(OUT)*)&bits, 0, x);
  return bits;
}

T from_bits(ushort bits) { return LOAD(OUT, (STORAGE(OUT)*)&bits, 0); }

T next(T x, T y) {
  if (isnan(x) || isnan(y) || x == y) return isnan(x) ? x : y;
  if (x == 0) return from_bits(y < 0 ? 0x8001 : 1);
  return from_bits(to_bits(x) + ((y > x) == (x > 0) ? 1 : -1));
}

// As PyTorch has it: rounded to the element type before, so that 99.9 can become 100.
#define op_div_trunc trunc(from_bits(to_bits(x / y)))
#define op_nextafter next(x, y)
#else
#define op_div_trunc trunc(x / y)
#define op_nextafter nextafter(x, y)
#endif

#define op_div x / y
#define op_div_floor divide_floor(x, y)
#define op_remainder remainder_of(x, y)
#define op_fmod fmod(x, y)
#define op_pow pow(x, y)
#define op_atan2 atan2(x, y)
#define op_maximum isnan(x) || x > y ? x : y
#define op_minimum isnan(x) || x < y ? x : y
#define op_sigmoid_grad x * (1 - y) * y
#define op_tanh_grad x * (1 - y * y)
#define op_gelu_grad x * gelu_slope(y)
#define op_gelu_tanh_grad x * gelu_tanh_slope(y)
#define op_silu_grad x * silu_slope(y)
#define op_hypot hypot(x, y)
#define op_copysign copysign(x, y)
#define op_fmax isnan(y) || x > y ? x : y
#define op_fmin isnan(y) || x < y ? x : y
#define op_logaddexp log_add(x, y)
#define op_logaddexp2 log_add2(x, y)
#define op_xlogy x == 0 && !isnan(y) ? (T)0 : x * log(y)
#define op_smooth_l1 smooth_l1(fabs(x - y), p)
#define op_huber huber(fabs(x - y), p)
#define op_leaky_relu_grad y > 0 ? x : x * p
#define op_elu_grad x * q * (y > 0 ? (T)1 : p * r * exp(r * y))
#define op_elu_grad_from_result y > 0 ? x * q : x * r * (y + q * p)
#define op_mish_grad x * mish_slope(y)
#define op_hardswish_grad y <= -3 ? (T)0 : y < 3 ? x * (y / 3 + (T)0.5) : x
#define op_hardsigmoid_grad y > -3 && y < 3 ? x / 6 : (T)0
#define op_hardtanh_grad y <= p || y >= q ? (T)0 : x
#define op_shrink_grad y >= -p && y <= p ? (T)0 : x
#define op_softplus_grad p * y > q ? x : x / (1 + exp(-p * y))
#define op_log_sigmoid_grad x / (1 + exp(y))
#define op_logit_grad x * logit_slope(y, p)

#else

// Whatever a division by zero gives, it ends: processors stop there.
T divide(T x, T y) { return y == 0 ? 0 : y == -1 ? -x : x / y; }
T modulo(T x, T y) { return y == 0 || y == -1 ? 0 : x % y; }

T remainder_of(T x, T y) {
  const T rest = modulo(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

T power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent % 2 == 0 ? 1 : -1;
  T result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) result *= base;
  }
  return result;
}

T divisor(T x, T y) {
  while (y != 0) {
    const T rest = modulo(x, y);
    x = y;
    y = rest;
  }
  return x < 0 ? -x : x;
}

T multiple(T x, T y) {
  const T shared = divisor(x, y);
  const T result = shared == 0 ? 0 : x / shared * y;
  return result < 0 ? -result : result;
}

#define IS_SHIFT(y) ((y) >= 0 && (y) < (T)(8 * sizeof(T)))

#define op_div_trunc divide(x, y)
#define op_div_floor divide(x, y) - (modulo(x, y) != 0 && (x < 0) != (y < 0))
#define op_remainder remainder_of(x, y)
#define op_fmod modulo(x, y)
#define op_pow power(x, y)
#define op_maximum max(x, y)
#define op_minimum min(x, y)
#define op_fmax max(x, y)
#define op_fmin min(x, y)
#define op_bitwise_and x & y
#define op_bitwise_or x | y
#define op_bitwise_xor x ^ y
#define op_gcd divisor(x, y)
#define op_lcm multiple(x, y)
#define op_shift_left IS_SHIFT(y) ? x << y : (T)0
#define op_shift_right IS_SHIFT(y) ? x >> y : x < 0 ? (T)-1 : (T)0

#endif

COMPUTE(OUT) compute(T x, T y, T z, T p, T q, T r) { return OP; }
