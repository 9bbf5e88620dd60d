// A work item for each element of the new tokens' keys, or values.
typedef COMPUTE(DTYPE) T;

typedef struct {
  long token, head, element;
} Strides;

typedef struct {
  long block, head, row, element;
} CacheStrides;

__kernel void append(long count, long heads, long width, long blocks, long block_size,
                     __global STORAGE(CACHE) * cache, CacheStrides cache_strides, __global const STORAGE(DTYPE) * in,
                     Strides in_strides, __global const long* slots, long slot_stride, __global const float* scale,
                     long scale_stride, __global Fault* fault) {
  const long id = get_global_id(0);
  if (id >= count) return;
  const long token = id / width / heads;
  const long head = id / width % heads;
  const long i = id % width;
  const long slot = slots[token * slot_stride];
  if (slot < 0) return;
  if (slot >= blocks * block_size) {
    report(fault, slot, blocks * block_size);
    return;
  }
  T value = LOAD(DTYPE, in, token * in_strides.token + head * in_strides.head + i * in_strides.element);
#ifdef HAS_SCALE
  value /= scale[head * scale_stride];
#endif
#ifdef LIMIT
  value = LIMITED(value);
#endif
  const long row = slot / block_size * cache_strides.block + head * cache_strides.head +
                   slot % block_size * cache_strides.row;
  STORE(CACHE, cache, row + i * cache_strides.element, value);
}
