// out[i] = start + i * step. Integers are counted in uint64, so as to wrap around.
__kernel void sequence(long count, long stride, __global STORAGE(OUT) * out, COMPUTE(COUNTER) start,
                       COMPUTE(COUNTER) step) {
  const long i = get_global_id(0);
  if (i < count) STORE(OUT, out, i * stride, start + (COMPUTE(COUNTER))i * step);
}
