// A team for each row. Its members read of the residual what they have written there themselves.
typedef COMPUTE(DTYPE) T;

__kernel void add_rms_norm(Shape rows, long width, ACC eps, __global STORAGE(DTYPE) * out, long out_stride,
                           __global STORAGE(DTYPE) * residual, long residual_stride,
                           __global const STORAGE(DTYPE) * in, long in_stride,
                           __global const STORAGE(WEIGHT) * weight, long weight_stride) {
  __local ACC shares[TEAM];
  const Offsets at = find_offsets(&rows, get_group_id(0));
  out += at.of[0];
  residual += at.of[1];
  in += at.of[2];
  ACC share = 0;
  FOR_SHARE(i, width) {
    const T sum = LOAD(DTYPE, in, i * in_stride) + LOAD(DTYPE, residual, i * residual_stride);
    STORE(DTYPE, residual, i * residual_stride, sum);
    const T rounded = LOAD(DTYPE, residual, i * residual_stride);
    share += rounded * rounded;
  }
  const T factor = (T)(1 / sqrt(sum_of_team(share, shares) / width + eps));
  FOR_SHARE(i, width) {
    const T result = LOAD(DTYPE, residual, i * residual_stride) * factor * LOAD(WEIGHT, weight, i * weight_stride);
    STORE(DTYPE, out, i * out_stride, result);
  }
}
