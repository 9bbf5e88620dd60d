// A team for each row: the elements that share their statistics or, for the gradients of weight and bias, those of a
// channel. All arrays have four dimensions, the two that tell rows apart and a row's own; where an array does not
// depend on one, its stride is 0.
typedef COMPUTE(DTYPE) T;
#define NUMBER(dtype) __global STORAGE(dtype)

long row_start(long4 sizes, long4 strides) {
  const long row = get_group_id(0);
  return row / sizes.y * strides.x + row % sizes.y * strides.y;
}

#define FOR_ROW(sizes)                              \
  for (long slow = 0; slow < (sizes).z; ++slow) \
    FOR_SHARE(fast, (sizes).w)
#define HERE(strides) (slow * (strides).z + fast * (strides).w)

#ifdef HAS_MEAN
#define MEAN_AT(i) LOAD(STATISTIC, mean, i)
#else
#define MEAN_AT(i) 0
#endif
#ifdef HAS_WEIGHT
#define WEIGHT_HERE (T) LOAD(WEIGHT, weight, HERE(weight_strides))
#else
#define WEIGHT_HERE (T)1
#endif
#ifdef HAS_BIAS
#define BIAS_HERE (T) LOAD(BIAS, bias, HERE(bias_strides))
#else
#define BIAS_HERE (T)0
#endif

#if defined(FORWARD)

__kernel void normalize_rows(long4 sizes, ACC eps, NUMBER(DTYPE) * out, long4 out_strides, const NUMBER(DTYPE) * in,
                        long4 in_strides, NUMBER(STATISTIC) * mean, long4 mean_strides, NUMBER(STATISTIC) * rstd,
                        long4 rstd_strides, const NUMBER(WEIGHT) * weight, long4 weight_strides,
                        const NUMBER(BIAS) * bias, long4 bias_strides) {
  __local ACC shares[TEAM];
  out += row_start(sizes, out_strides);
  in += row_start(sizes, in_strides);
  mean += row_start(sizes, mean_strides);
  rstd += row_start(sizes, rstd_strides);
  weight += row_start(sizes, weight_strides);
  bias += row_start(sizes, bias_strides);
#ifdef GIVEN
  const T row_mean = MEAN_AT(0);
  const T row_rstd = LOAD(STATISTIC, rstd, 0);
#else
  const ACC count = (ACC)(sizes.z * sizes.w);
  T row_mean = 0;
#ifdef HAS_MEAN
  // Relative to the first element, so that a row of equal ones has exactly their value as mean.
  const ACC first = LOAD(DTYPE, in, 0);
  ACC offsets = 0;
  FOR_ROW(sizes) offsets += LOAD(DTYPE, in, HERE(in_strides)) - first;
  row_mean = first + sum_of_team(offsets, shares) / count;
#endif
  ACC squares = 0;
  FOR_ROW(sizes) {
    const ACC distance = (ACC)LOAD(DTYPE, in, HERE(in_strides)) - row_mean;
    squares += distance * distance;
  }
  const T row_rstd = 1 / sqrt(sum_of_team(squares, shares) / count + eps);
  if (get_local_id(0) == 0) {
#ifdef HAS_MEAN
    STORE(STATISTIC, mean, 0, row_mean);
#endif
    STORE(STATISTIC, rstd, 0, row_rstd);
  }
#endif
  FOR_ROW(sizes) {
    const T x = (LOAD(DTYPE, in, HERE(in_strides)) - row_mean) * row_rstd;
    STORE(DTYPE, out, HERE(out_strides), x * WEIGHT_HERE + BIAS_HERE);
  }
}

#elif defined(BACKWARD)

__kernel void normalize_backward(long4 sizes, NUMBER(DTYPE) * grad_in, long4 grad_in_strides,
                                 const NUMBER(DTYPE) * grad_out, long4 grad_out_strides, const NUMBER(DTYPE) * in,
                                 long4 in_strides, const NUMBER(STATISTIC) * mean, long4 mean_strides,
                                 const NUMBER(STATISTIC) * rstd, long4 rstd_strides, const NUMBER(WEIGHT) * weight,
                                 long4 weight_strides) {
  __local ACC shares[TEAM];
  grad_in += row_start(sizes, grad_in_strides);
  grad_out += row_start(sizes, grad_out_strides);
  in += row_start(sizes, in_strides);
  weight += row_start(sizes, weight_strides);
  const T row_mean = MEAN_AT(row_start(sizes, mean_strides));
  const T row_rstd = LOAD(STATISTIC, rstd, row_start(sizes, rstd_strides));
  T from_mean = 0;
  T from_rstd = 0;
#ifndef GIVEN
  ACC gradients = 0;
  ACC products = 0;
  FOR_ROW(sizes) {
    const ACC gradient = LOAD(DTYPE, grad_out, HERE(grad_out_strides)) * WEIGHT_HERE;
    gradients += gradient;
    products += gradient * ((LOAD(DTYPE, in, HERE(in_strides)) - row_mean) * row_rstd);
  }
  const ACC count = (ACC)(sizes.z * sizes.w);
#ifdef HAS_MEAN
  from_mean = sum_of_team(gradients, shares) / count;
#endif
  from_rstd = sum_of_team(products, shares) / count;
#endif
  FOR_ROW(sizes) {
    const T gradient = LOAD(DTYPE, grad_out, HERE(grad_out_strides)) * WEIGHT_HERE;
    const T x = (LOAD(DTYPE, in, HERE(in_strides)) - row_mean) * row_rstd;
    STORE(DTYPE, grad_in, HERE(grad_in_strides), row_rstd * (gradient - from_mean - x * from_rstd));
  }
}

#else

__kernel void sum_channels(long4 sizes, NUMBER(WEIGHT) * grad_weight, long4 grad_weight_strides,
                           NUMBER(BIAS) * grad_bias, long4 grad_bias_strides, const NUMBER(DTYPE) * grad_out,
                           long4 grad_out_strides, const NUMBER(DTYPE) * in, long4 in_strides,
                           const NUMBER(STATISTIC) * mean, long4 mean_strides, const NUMBER(STATISTIC) * rstd,
                           long4 rstd_strides) {
  __local ACC shares[TEAM];
  grad_out += row_start(sizes, grad_out_strides);
  in += row_start(sizes, in_strides);
  mean += row_start(sizes, mean_strides);
  rstd += row_start(sizes, rstd_strides);
  ACC gradients = 0;
  ACC products = 0;
  FOR_ROW(sizes) {
    const ACC gradient = LOAD(DTYPE, grad_out, HERE(grad_out_strides));
    gradients += gradient;
    const T distance = LOAD(DTYPE, in, HERE(in_strides)) - MEAN_AT(HERE(mean_strides));
    products += gradient * (distance * LOAD(STATISTIC, rstd, HERE(rstd_strides)));
  }
  gradients = sum_of_team(gradients, shares);
  products = sum_of_team(products, shares);
  if (get_local_id(0) != 0) return;
#ifdef HAS_WEIGHT
  STORE(WEIGHT, grad_weight, row_start(sizes, grad_weight_strides), products);
#endif
#ifdef HAS_BIAS
  STORE(BIAS, grad_bias, row_start(sizes, grad_bias_strides), gradients);
#endif
}

#endif
