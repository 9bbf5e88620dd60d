// data[...] *= the number at `factor`, and 1 at `found` if an element was not finite.
#ifdef DTYPE
#define UNSCALE_ARGUMENTS \
  __global STORAGE(DTYPE) *data, __global float *found, __global const float *factor

void unscale_one(long i, UNSCALE_ARGUMENTS) {
  const COMPUTE(DTYPE) x = LOAD(DTYPE, data, i);
  // Whoever writes writes the same.
  if (!isfinite(x)) *found = 1;
  STORE(DTYPE, data, i, x * *factor);
}

__kernel void dense(long count, UNSCALE_ARGUMENTS) {
  const long i = get_global_id(0);
  if (i < count) unscale_one(i, data, found, factor);
}

__kernel void strided(long count, Shape shape, UNSCALE_ARGUMENTS) {
  const long i = get_global_id(0);
  if (i < count) unscale_one(find_offsets(&shape, i).of[0], data, found, factor);
}

#else

__kernel void update_scale(__global float* scale, __global int* tracker, __global const float* found, ACC growth,
                           ACC backoff, int interval) {
  if (*found != 0) {
    *scale = *scale * backoff;
    *tracker = 0;
  } else if (++*tracker >= interval) {
    const float grown = *scale * growth;
    if (isfinite(grown)) *scale = grown;
    *tracker = 0;
  }
}

#endif
