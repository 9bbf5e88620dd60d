// out[...] = a number, as bits.
__kernel void dense(long count, __global STORAGE(OUT) * out, STORAGE(OUT) value) {
  const long i = get_global_id(0);
  if (i < count) out[i] = value;
}

__kernel void strided(long count, Shape shape, __global STORAGE(OUT) * out, STORAGE(OUT) value) {
  const long i = get_global_id(0);
  if (i < count) out[find_offsets(&shape, i).of[0]] = value;
}
