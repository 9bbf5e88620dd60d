// A work item for each element of the result. Planes have three dimensions; those that are missing come first.
typedef COMPUTE(DTYPE) T;
#ifdef FLOATING
typedef T Sum;
#define LEAST (T)-INFINITY
#else
typedef long Sum;
#define LEAST (T)0
#endif

typedef struct {
  long channels;
  long in[3], out[3], size[3], stride[3], padding[3], dilation[3];
  long include_padding, divisor;
} Windows;

typedef struct {
  long batch, channel, place[3];
} Strides;

typedef struct {
  long begin, end, step;  // of the window's elements in the input
  long padded;            // elements with the padding
} Extent;

typedef struct {
  long batch, channel, place[3];
} Position;

Position find_position(const Windows* w, const long* sizes, long number) {
  Position at;
  for (int i = 2; i >= 0; --i) {
    at.place[i] = number % sizes[i];
    number /= sizes[i];
  }
  at.channel = number % w->channels;
  at.batch = number / w->channels;
  return at;
}

long plane_start(Position at, Strides strides) { return at.batch * strides.batch + at.channel * strides.channel; }

long offset(const long* place, Strides strides) {
  return place[0] * strides.place[0] + place[1] * strides.place[1] + place[2] * strides.place[2];
}

Extent find_extent(const Windows* w, int i, long o) {
#ifdef ADAPTIVE
  Extent extent = {o * w->in[i] / w->out[i], ((o + 1) * w->in[i] + w->out[i] - 1) / w->out[i], 1, 0};
  extent.padded = extent.end - extent.begin;
#else
  const long step = w->dilation[i];
  const long start = o * w->stride[i] - w->padding[i];
  Extent extent = {start, min(start + (w->size[i] - 1) * step + 1, w->in[i]), step, 0};
  if (start < 0) extent.begin += (-start + step - 1) / step * step;
  extent.padded = min(start + w->size[i], w->in[i] + w->padding[i]) - start;
#endif
  return extent;
}

// What an average is divided by.
Sum find_divisor(const Windows* w, const Extent* extents) {
  if (w->divisor != 0) return w->divisor;
  long count = 1;
  for (int i = 0; i < 3; ++i) {
    count *= w->include_padding ? extents[i].padded : max(extents[i].end - extents[i].begin, 0L);
  }
  return count;
}

#define FOR_WINDOW(at, extents)                                                                     \
  for (at[0] = extents[0].begin; at[0] < extents[0].end; at[0] += extents[0].step)                  \
    for (at[1] = extents[1].begin; at[1] < extents[1].end; at[1] += extents[1].step)                \
      for (at[2] = extents[2].begin; at[2] < extents[2].end; at[2] += extents[2].step)

#ifndef BACKWARD

__kernel void pool(Windows w, long count, __global STORAGE(DTYPE) * out, Strides out_strides,
                   __global const STORAGE(DTYPE) * in, Strides in_strides, __global long* indices,
                   Strides index_strides) {
  const long number = get_global_id(0);
  if (number >= count) return;
  const Position to = find_position(&w, w.out, number);
  Extent extents[3];
  for (int i = 0; i < 3; ++i) extents[i] = find_extent(&w, i, to.place[i]);
  in += plane_start(to, in_strides);
  long at[3];
#ifdef MAXIMUM
  T result = LEAST;
  long index = -1;
  FOR_WINDOW(at, extents) {
    const T x = LOAD(DTYPE, in, offset(at, in_strides));
    if (index >= 0 && !(x > result) && !IS_NAN(x)) continue;
    result = x;
    index = (at[0] * w.in[1] + at[1]) * w.in[2] + at[2];
  }
  indices[plane_start(to, index_strides) + offset(to.place, index_strides)] = index;
#else
  Sum sum = 0;
  FOR_WINDOW(at, extents) sum += LOAD(DTYPE, in, offset(at, in_strides));
  const Sum divisor = find_divisor(&w, extents);
#ifdef FLOATING
  const T result = sum / divisor;
#else
  const T result = divisor == 0 ? 0 : sum / divisor;
#endif
#endif
  STORE(DTYPE, out, plane_start(to, out_strides) + offset(to.place, out_strides), result);
}

#else

// The windows that an element of the input is in.
Extent find_windows(const Windows* w, int i, long place) {
#ifdef ADAPTIVE
  const Extent extent = {place * w->out[i] / w->in[i], ((place + 1) * w->out[i] + w->in[i] - 1) / w->in[i], 1, 0};
#else
  const long last = place + w->padding[i];
  const long before = last - (w->size[i] - 1) * w->dilation[i];
  const long begin = before <= 0 ? 0 : (before + w->stride[i] - 1) / w->stride[i];
  const Extent extent = {begin, min(last / w->stride[i] + 1, w->out[i]), 1, 0};
#endif
  return extent;
}

__kernel void pool_backward(Windows w, long count, __global STORAGE(DTYPE) * grad_in, Strides in_strides,
                            __global const STORAGE(DTYPE) * grad_out, Strides out_strides,
                            __global const long* indices, Strides index_strides) {
  const long number = get_global_id(0);
  if (number >= count) return;
  const Position to = find_position(&w, w.in, number);
  const long place = (to.place[0] * w.in[1] + to.place[1]) * w.in[2] + to.place[2];
  Extent windows[3];
  for (int i = 0; i < 3; ++i) windows[i] = find_windows(&w, i, to.place[i]);
  grad_out += plane_start(to, out_strides);
  indices += plane_start(to, index_strides);
  Sum sum = 0;
  long at[3];
  FOR_WINDOW(at, windows) {
    const Sum gradient = LOAD(DTYPE, grad_out, offset(at, out_strides));
#ifdef MAXIMUM
    if (indices[offset(at, index_strides)] == place) sum += gradient;
#else
    Extent extents[3];
    for (int i = 0; i < 3; ++i) extents[i] = find_extent(&w, i, at[i]);
    const Sum divisor = find_divisor(&w, extents);
    if (divisor != 0) sum += gradient / divisor;
#endif
  }
  STORE(DTYPE, grad_in, plane_start(to, in_strides) + offset(to.place, in_strides), sum);
}

#endif
