// A matrix's part on one side of a diagonal, UPPER or the lower one, and zeros on the other.
__kernel void triangular(Shape shape, long count, long rows, long columns, long diagonal, __global STORAGE(OUT) * out,
                         __global const STORAGE(OUT) * in) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const long place = i % columns - i / columns % rows;
#ifdef UPPER
  const bool stays = place >= diagonal;
#else
  const bool stays = place <= diagonal;
#endif
  const Offsets at = find_offsets(&shape, i);
  out[at.of[0]] = stays ? in[at.of[1]] : (STORAGE(OUT))0;
}
