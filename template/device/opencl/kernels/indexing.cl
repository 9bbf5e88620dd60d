// Elements at places that index arrays name. `fixed` is the shape of the dimensions that no index decides, `indexed` that
// of the others; their arrays are the list, the table, and the index array. Several of those become one, of places in the
// table's memory: SUMS.
typedef struct {
  long size, stride;  // of the dimension of the table that the index array stands for
} Axis;

long to_place(long index, Axis axis, __global Fault* fault) {
  const long given = index;
#ifdef WRAPS
  if (index < 0) index += axis.size;
#endif
  // An index beyond the end must not leave the memory.
  const long nearest = clamp(index, 0L, axis.size - 1);
  if (index != nearest) report(fault, given, axis.size);
  return nearest * axis.stride;
}

#ifdef SUMS

__kernel void add_places(Shape shape, long count, int first, __global long* sums, __global const STORAGE(INDEX) * index,
                         Axis axis, __global Fault* fault) {
  const long i = get_global_id(0);
  if (i < count) sums[i] = (first ? 0 : sums[i]) + to_place(index[find_offsets(&shape, i).of[0]], axis, fault);
}

#else

Offsets add(Offsets a, Offsets b) {
  for (int array = 0; array < 4; ++array) a.of[array] += b.of[array];
  return a;
}

#ifdef GATHER

__kernel void gather(Shape fixed, Shape indexed, long fixed_count, long indexed_count, __global STORAGE(DTYPE) * list,
                     __global const STORAGE(DTYPE) * table, __global const STORAGE(INDEX) * index, Axis axis,
                     __global Fault* fault) {
  const long i = get_global_id(0);
  if (i >= fixed_count * indexed_count) return;
  const Offsets at = add(find_offsets(&fixed, i % fixed_count), find_offsets(&indexed, i / fixed_count));
  list[at.of[0]] = table[at.of[1] + to_place(index[at.of[2]], axis, fault)];
}

#else

#ifdef FLOATING
#define LESSER(x, y) (isnan(x) || (x) < (y) ? (x) : (y))
#define GREATER(x, y) (isnan(x) || (x) > (y) ? (x) : (y))
#else
#define LESSER min
#define GREATER max
#endif
#define mode_assign(x, y) (y)
#define mode_add(x, y) ((x) + (y))
#define mode_multiply product
#define mode_min(x, y) LESSER(x, y)
#define mode_max(x, y) GREATER(x, y)

// One work item does, one after the other and in row-major order, all that the indices decide: no two meet at an element.
__kernel void scatter(Shape fixed, Shape indexed, long fixed_count, long indexed_count,
                      __global const STORAGE(LIST) * list, __global STORAGE(DTYPE) * table,
                      __global const STORAGE(INDEX) * index, Axis axis, __global Fault* fault) {
  const long i = get_global_id(0);
  if (i >= fixed_count) return;
  const Offsets start = find_offsets(&fixed, i);
  for (long j = 0; j < indexed_count; ++j) {
    const Offsets at = add(start, find_offsets(&indexed, j));
    const long place = at.of[1] + to_place(index[at.of[2]], axis, fault);
    const COMPUTE(DTYPE) x = LOAD(DTYPE, table, place);
    const COMPUTE(DTYPE) y = LOAD(LIST, list, at.of[0]);
    STORE(DTYPE, table, place, MODE(x, y));
  }
}

#endif

#endif
