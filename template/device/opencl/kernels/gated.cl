// out[...] = activation(gate[...]) * up[...]
typedef COMPUTE(DTYPE) T;
#define FOUND __global const STORAGE(DTYPE)

__kernel void dense(long count, __global STORAGE(DTYPE) * out, FOUND* gate, FOUND* up) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const T x = LOAD(DTYPE, gate, i);
  STORE(DTYPE, out, i, ACTIVATE(x) * LOAD(DTYPE, up, i));
}

__kernel void strided(long count, Shape shape, __global STORAGE(DTYPE) * out, FOUND* gate, FOUND* up) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const Offsets at = find_offsets(&shape, i);
  const T x = LOAD(DTYPE, gate, at.of[1]);
  STORE(DTYPE, out, at.of[0], ACTIVATE(x) * LOAD(DTYPE, up, at.of[2]));
}
