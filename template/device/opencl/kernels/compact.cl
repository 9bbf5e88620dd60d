// Each work item has a piece of the mask, which it counts; then one item adds the counts up, and each writes what its
// piece has to where those before it end.
#define PIECE 1024

__kernel void count_pieces(Shape shape, long total, __global const STORAGE(MASK) * mask, __global long* counts) {
  const long piece = get_global_id(0);
  if (piece * PIECE >= total) return;
  long count = 0;
  for (long i = piece * PIECE; i < min(total, (piece + 1) * PIECE); ++i) {
    count += CONVERT(LOAD(MASK, mask, find_offsets(&shape, i).of[0]));
  }
  counts[piece] = count;
}

__kernel void add_up(long pieces, __global long* counts, __global long* sum) {
  if (get_global_id(0) != 0) return;
  long before = 0;
  for (long piece = 0; piece < pieces; ++piece) {
    const long count = counts[piece];
    counts[piece] = before;
    before += count;
  }
  *sum = before;
}

// PLACES: rows of `out` get the places; else its elements get those of `in`.
__kernel void pick(Shape shape, long total, __global const STORAGE(MASK) * mask, __global const long* counts, long room,
                   long row_stride, long column_stride, __global STORAGE(OUT) * out, __global const STORAGE(OUT) * in) {
  const long piece = get_global_id(0);
  if (piece * PIECE >= total) return;
  long row = counts[piece];
  for (long i = piece * PIECE; i < min(total, (piece + 1) * PIECE) && row < room; ++i) {
    const Offsets at = find_offsets(&shape, i);
    if (!CONVERT(LOAD(MASK, mask, at.of[0]))) continue;
#ifdef PLACES
    long rest = i;
    for (int dim = (int)shape.rank - 1; dim >= 0; --dim) {
      out[row * row_stride + dim * column_stride] = rest % shape.sizes[dim];
      rest /= shape.sizes[dim];
    }
#else
    out[row * row_stride] = in[at.of[1]];
#endif
    ++row;
  }
}
