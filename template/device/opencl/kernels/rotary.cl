// A work item for each point of each head, which it turns, and for each element behind the points, which it copies.
typedef COMPUTE(DTYPE) T;

typedef struct {
  long token, head, element;
} Strides;

typedef struct {
  long position, element;
} TableStrides;

__kernel void rotary(long count, long heads, long width, long points, long positions, __global STORAGE(DTYPE) * out,
                     Strides out_strides, __global const STORAGE(DTYPE) * in, Strides in_strides,
                     __global const long* places, long place_stride, __global const STORAGE(TABLE) * table,
                     TableStrides table_strides, __global Fault* fault) {
  const long items = width - points;  // of a head
  const long id = get_global_id(0);
  if (id >= count) return;
  const long token = id / items / heads;
  const long head = id / items % heads;
  const long item = id % items;
  out += token * out_strides.token + head * out_strides.head;
  in += token * in_strides.token + head * in_strides.head;
  const long position = places[token * place_stride];
  if (position < 0 || position >= positions) {
    report(fault, position, positions);
    return;
  }
  if (item >= points) {
    const long i = item + points;
    STORE(DTYPE, out, i * out_strides.element, LOAD(DTYPE, in, i * in_strides.element));
    return;
  }
#ifdef PAIRS
  const long first = 2 * item;
  const long second = first + 1;
#else
  const long first = item;
  const long second = first + points;
#endif
  table += position * table_strides.position;
  const T cosine = LOAD(TABLE, table, item * table_strides.element);
  const T sine = SIGN LOAD(TABLE, table, (item + points) * table_strides.element);
  const T x = LOAD(DTYPE, in, first * in_strides.element);
  const T y = LOAD(DTYPE, in, second * in_strides.element);
  STORE(DTYPE, out, first * out_strides.element, x * cosine - y * sine);
  STORE(DTYPE, out, second * out_strides.element, y * cosine + x * sine);
}
