// Lines are sorted by merging: runs that are in order become runs of twice the width, each work item finding the place of
// one element. Equal elements keep their order.
// The width of the first runs, each of which a work item puts in order.
#define BLOCK 16

typedef COMPUTE(IN) KEY;

// NaN is greater than any number.
bool is_less(KEY x, KEY y) { return x < y || (IS_NAN(y) && !IS_NAN(x)); }
#ifdef DESCENDING
#define PRECEDES(x, y) is_less(y, x)
#else
#define PRECEDES(x, y) is_less(x, y)
#endif

__kernel void start(Shape lines, long count, long length, long stride, __global const STORAGE(IN) * in,
                    __global KEY* keys, __global long* places) {
  const long blocks = (length + BLOCK - 1) / BLOCK;
  if (get_global_id(0) >= count * blocks) return;
  const long line = get_global_id(0) / blocks;
  const long begin = get_global_id(0) % blocks * BLOCK;
  const long end = min(begin + BLOCK, length);
  in += find_offsets(&lines, line).of[0];
  keys += line * length;
  places += line * length;
  for (long i = begin; i < end; ++i) {
    const KEY key = LOAD(IN, in, i * stride);
    long at = i;
    for (; at > begin && PRECEDES(key, keys[at - 1]); --at) {
      keys[at] = keys[at - 1];
      places[at] = places[at - 1];
    }
    keys[at] = key;
    places[at] = i;
  }
}

__kernel void merge(long total, long length, long width, __global const KEY* keys, __global const long* places,
                    __global KEY* merged_keys, __global long* merged_places) {
  const long id = get_global_id(0);
  if (id >= total) return;
  const long line = id / length * length;
  const long run = id % length / width;
  const KEY key = keys[id];
  // How many elements of the run beside it go before it.
  const long first = min((run ^ 1) * width, length);
  long begin = first;
  long end = min(first + width, length);
  while (begin < end) {
    const long middle = (begin + end) / 2;
    const KEY other = keys[line + middle];
    const bool before = run % 2 == 0 ? PRECEDES(other, key) : !PRECEDES(key, other);
    if (before) begin = middle + 1;
    else end = middle;
  }
  const long at = line + run / 2 * 2 * width + (id - line) % width + begin - first;
  merged_keys[at] = key;
  merged_places[at] = places[id];
}

// The first `kept` of each line.
__kernel void finish(Shape lines, long count, long length, long kept, long value_stride, long index_stride,
                     __global const KEY* keys, __global const long* places, __global STORAGE(IN) * values,
                     __global long* indices) {
  const long id = get_global_id(0);
  if (id >= count * kept) return;
  const Offsets at = find_offsets(&lines, id / kept);
  const long i = id % kept;
  STORE(IN, values, at.of[1] + i * value_stride, keys[id / kept * length + i]);
  indices[at.of[2] + i * index_stride] = places[id / kept * length + i];
}
