// A team of work items finds each extreme and its place, the first one of several. BEFORE(x, y): whether x is further out.
#ifdef op_max
#define BEFORE(x, y) ((x) > (y))
#else
#define BEFORE(x, y) ((x) < (y))
#endif

typedef struct {
  COMPUTE(IN) value;
  long place;  // -1 for none
} Extreme;

bool precedes(Extreme one, Extreme other) {
  if (one.place < 0 || other.place < 0) return other.place < 0;
  if (IS_NAN(one.value) != IS_NAN(other.value)) return IS_NAN(one.value);
  if (BEFORE(one.value, other.value) || BEFORE(other.value, one.value)) return BEFORE(one.value, other.value);
  return one.place < other.place;
}

__kernel void arg_reduce(Shape outer, long length, long stride, __global long* indices, __global STORAGE(IN) * values,
                         __global const STORAGE(IN) * in) {
  __local Extreme shares[TEAM];
  const int member = get_local_id(0);
  const Offsets at = find_offsets(&outer, get_group_id(0));
  Extreme best = {0, -1};
  for (long i = member; i < length; i += TEAM) {
    const Extreme found = {LOAD(IN, in, at.of[1] + i * stride), i};
    if (precedes(found, best)) best = found;
  }
  shares[member] = best;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (member != 0) return;
  for (int other = 1; other < TEAM; ++other) {
    if (precedes(shares[other], best)) best = shares[other];
  }
  indices[at.of[0]] = best.place;
  if (values) STORE(IN, values, at.of[2], best.value);
}
