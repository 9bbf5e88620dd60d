// Columns, by which a convolution becomes a product of matrices: for each position of the result, the elements of the
// source that it meets, or zeros where it meets none. A row is one tap of one channel.
typedef STORAGE(DTYPE) Element;

typedef struct {
  long positions[3];  // the sizes of the result
  long taps[3], sizes[3], strides[3];
  long batch_stride, channel_stride;
  // In each dimension position p meets the source's element (p * scale + tap * step + shift) / divisor, without a rest.
  long scale[3], step[3], shift[3], divisor[3];
} Geometry;

#ifdef DIVIDES
#define IS_INSIDE(place, i) ((place) >= 0 && (place) % g.divisor[i] == 0 && (place) / g.divisor[i] < g.sizes[i])
#define OFFSET(place, i) ((place) / g.divisor[i] * g.strides[i])
#else
#define IS_INSIDE(place, i) ((place) >= 0 && (place) < g.sizes[i])
#define OFFSET(place, i) ((place) * g.strides[i])
#endif

// Positions are counted in the order of batch and place. A work item has a run of them, in one row.
__kernel void fill_columns(Geometry g, long run, long first, long count, __global Element* columns,
                           __global const Element* source) {
  const long begin = get_global_id(0) * run;
  if (begin >= count) return;
  const long end = min(count, begin + run);
  const long row = get_global_id(1);
  const long taps = g.taps[0] * g.taps[1] * g.taps[2];
  const long tap = row % taps;
  const long shift_x = g.shift[2] + tap % g.taps[2] * g.step[2];
  const long shift_y = g.shift[1] + tap / g.taps[2] % g.taps[1] * g.step[1];
  const long shift_z = g.shift[0] + tap / g.taps[2] / g.taps[1] * g.step[0];
  long rest = first + begin;
  long x = rest % g.positions[2];
  rest /= g.positions[2];
  long y = rest % g.positions[1];
  rest /= g.positions[1];
  long z = rest % g.positions[0];
  source += rest / g.positions[0] * g.batch_stride + row / taps * g.channel_stride;
  columns += row * count;
  for (long i = begin; i < end;) {
    const long place_z = z * g.scale[0] + shift_z;
    const long place_y = y * g.scale[1] + shift_y;
    const bool inside = IS_INSIDE(place_z, 0) && IS_INSIDE(place_y, 1);
    __global const Element* line = source + OFFSET(place_z, 0) + OFFSET(place_y, 1);
    const long length = min(end - i, g.positions[2] - x);
    for (long j = 0; j < length; ++j) {
      const long place = (x + j) * g.scale[2] + shift_x;
      columns[i + j] = inside && IS_INSIDE(place, 2) ? line[OFFSET(place, 2)] : (Element)0;
    }
    i += length;
    x = 0;
    if (++y < g.positions[1]) continue;
    y = 0;
    if (++z < g.positions[0]) continue;
    z = 0;
    source += g.batch_stride;
  }
}
