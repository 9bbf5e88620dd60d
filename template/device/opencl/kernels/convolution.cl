// Columns, by which a convolution becomes a product of matrices: for each position of the output, the elements of the
// input that it meets, or zeros where it meets none. A row is one tap of one channel.
typedef struct {
  long positions[3];  // the sizes of the output
  long taps[3], sizes[3], strides[3];
  long batch_stride, channel_stride;
  long step[3], padding[3], dilation[3];
} Geometry;

#ifdef FILL

typedef STORAGE(DTYPE) Element;
#define IS_INSIDE(place, i) ((place) >= 0 && (place) < g.sizes[i])

// Positions are counted in the order of batch and place. A work item has a run of them, in one row.
__kernel void fill_columns(Geometry g, long run, long first, long count, __global Element* columns,
                           __global const Element* input) {
  const long begin = get_global_id(0) * run;
  if (begin >= count) return;
  const long end = min(count, begin + run);
  const long row = get_global_id(1);
  const long taps = g.taps[0] * g.taps[1] * g.taps[2];
  const long tap = row % taps;
  const long shift_x = tap % g.taps[2] * g.dilation[2] - g.padding[2];
  const long shift_y = tap / g.taps[2] % g.taps[1] * g.dilation[1] - g.padding[1];
  const long shift_z = tap / g.taps[2] / g.taps[1] * g.dilation[0] - g.padding[0];
  long rest = first + begin;
  long x = rest % g.positions[2];
  rest /= g.positions[2];
  long y = rest % g.positions[1];
  rest /= g.positions[1];
  long z = rest % g.positions[0];
  input += rest / g.positions[0] * g.batch_stride + row / taps * g.channel_stride;
  columns += row * count;
  for (long i = begin; i < end;) {
    const long place_z = z * g.step[0] + shift_z;
    const long place_y = y * g.step[1] + shift_y;
    const bool inside = IS_INSIDE(place_z, 0) && IS_INSIDE(place_y, 1);
    __global const Element* line = input + place_z * g.strides[0] + place_y * g.strides[1];
    const long length = min(end - i, g.positions[2] - x);
    for (long j = 0; j < length; ++j) {
      const long place = (x + j) * g.step[2] + shift_x;
      columns[i + j] = inside && IS_INSIDE(place, 2) ? line[place * g.strides[2]] : (Element)0;
    }
    i += length;
    x = 0;
    if (++y < g.positions[1]) continue;
    y = 0;
    if (++z < g.positions[0]) continue;
    z = 0;
    input += g.batch_stride;
  }
}

#else

// The positions that meet a place in dimension i: from the first on, up to the end. With dilation some of them do not.
long first_position(const Geometry* g, int i, long place) {
  const long before = place + g->padding[i] - (g->taps[i] - 1) * g->dilation[i];
  return before <= 0 ? 0 : (before + g->step[i] - 1) / g->step[i];
}

long end_position(const Geometry* g, int i, long place) {
  return min(g->positions[i], (place + g->padding[i]) / g->step[i] + 1);
}

#define FOR_POSITIONS(i, position, place)                                                                \
  for (long position = first_position(&g, i, place), end_##position = end_position(&g, i, place); \
       position < end_##position; ++position)

// By which tap; -1 if by none.
long find_tap(const Geometry* g, int i, long position, long place) {
  const long distance = place + g->padding[i] - position * g->step[i];
#ifdef DILATED
  return distance % g->dilation[i] == 0 ? distance / g->dilation[i] : -1;
#else
  return distance;
#endif
}

// A work item for each element of some images: the sum of what columns have for it.
__kernel void add_columns(Geometry g, long channels, long elements, long count, __global const COMPUTE(DTYPE) * columns,
                          __global STORAGE(DTYPE) * input) {
  const long number = get_global_id(0);
  if (number >= elements) return;
  const long x = number % g.sizes[2];
  long rest = number / g.sizes[2];
  const long y = rest % g.sizes[1];
  rest /= g.sizes[1];
  const long z = rest % g.sizes[0];
  rest /= g.sizes[0];
  const long channel = rest % channels;
  const long image = rest / channels;
  columns += channel * (g.taps[0] * g.taps[1] * g.taps[2]) * count;
  COMPUTE(DTYPE) sum = 0;
  FOR_POSITIONS(0, at_z, z) {
    const long tap_z = find_tap(&g, 0, at_z, z);
    if (tap_z < 0) continue;
    FOR_POSITIONS(1, at_y, y) {
      const long tap_y = find_tap(&g, 1, at_y, y);
      if (tap_y < 0) continue;
      const long line = ((image * g.positions[0] + at_z) * g.positions[1] + at_y) * g.positions[2];
      FOR_POSITIONS(2, at_x, x) {
        const long tap_x = find_tap(&g, 2, at_x, x);
        if (tap_x >= 0) sum += columns[((tap_z * g.taps[1] + tap_y) * g.taps[2] + tap_x) * count + line + at_x];
      }
    }
  }
  const long offset = z * g.strides[0] + y * g.strides[1] + x * g.strides[2];
  STORE(DTYPE, input, image * g.batch_stride + channel * g.channel_stride + offset, sum);
}

#endif
