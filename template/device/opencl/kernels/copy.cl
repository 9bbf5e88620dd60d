// out[...] = in[...], converted.
__kernel void dense(long count, __global STORAGE(OUT) * out, __global const STORAGE(IN) * in) {
  const long i = get_global_id(0);
  if (i < count) STORE(OUT, out, i, CONVERT(LOAD(IN, in, i)));
}

__kernel void strided(long count, Shape shape, __global STORAGE(OUT) * out, __global const STORAGE(IN) * in) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const Offsets at = find_offsets(&shape, i);
  STORE(OUT, out, at.of[0], CONVERT(LOAD(IN, in, at.of[1])));
}
