// out = scale_out * (factor * activation(alpha * (a @ b) + beta * bias) + addend), of numbers that are
// scale * (element - zero) + shift. Elements come to the tiles as such numbers. Both factors are seen as
// lines along the inner dimension: L, the rows of a, and R, the columns of b. The grid's third dimension is the batch, or
// the groups.
typedef struct {
  long batch, line, inner;
} LineStrides;

typedef struct {
  long lines, inner;
} Block;

#if PACKED(TYPE_L)
#define NUMBER_L(line, i, step) PACKED_NUMBER(TYPE_L, line, i, step)
#else
#define NUMBER_L(line, i, step) LOAD(TYPE_L, line, (i) * (step))
#endif
#if PACKED(TYPE_R)
#define NUMBER_R(line, i, step) PACKED_NUMBER(TYPE_R, line, i, step)
#else
#define NUMBER_R(line, i, step) LOAD(TYPE_R, line, (i) * (step))
#endif

#define ARRAY(dtype, name) __global const STORAGE(dtype)*name, LineStrides name##_strides
#define FACTOR(x) \
  ARRAY(TYPE_##x, numbers_##x), ARRAY(SCALE_##x, scale_##x), ARRAY(ZERO_##x, zero_##x), ARRAY(SHIFT_##x, shift_##x), \
      Block block_##x
#define GIVEN(x)                                                                                            \
  numbers_##x, numbers_##x##_strides, scale_##x, scale_##x##_strides, zero_##x, zero_##x##_strides, shift_##x, \
      shift_##x##_strides, block_##x

#define OF_BLOCK(dtype, name, otherwise)                                                               \
  (name != 0 ? (T)LOAD(dtype, name, batch * name##_strides.batch + block_line * name##_strides.line + \
                                        block * name##_strides.inner)                                  \
             : (T)(otherwise))

// Brings numbers of one line to local memory, `to_step` apart: those from `start` on, which counts from `first`, of
// which `count` are there. WHOLE_RUNS says that they all are of one block.
#define DEFINE_BRING(x)                                                                               \
  void bring_##x(__local T* to, int to_step, long batch, long line, long first, long start, long count, FACTOR(x)) { \
    const long block_line = line / block_##x.lines;                                                   \
    T scale = 1, zero = 0, shift = 0;                                                                 \
    numbers_##x += batch * numbers_##x##_strides.batch + line * numbers_##x##_strides.line;           \
    for (int i = 0; i < RUN; ++i) {                                                                   \
      if (i >= count) {                                                                               \
        to[i * to_step] = 0;                                                                          \
        continue;                                                                                     \
      }                                                                                               \
      if (i == 0 || !WHOLE_RUNS_##x) {                                                                \
        const long block = (start + i) / block_##x.inner;                                             \
        scale = OF_BLOCK(SCALE_##x, scale_##x, 1);                                                    \
        zero = OF_BLOCK(ZERO_##x, zero_##x, 0);                                                       \
        shift = OF_BLOCK(SHIFT_##x, shift_##x, 0);                                                    \
      }                                                                                               \
      const T number = NUMBER_##x(numbers_##x, first + start + i, numbers_##x##_strides.inner);       \
      to[i * to_step] = (number - zero) * scale + shift;                                              \
    }                                                                                                 \
  }
DEFINE_BRING(L)
DEFINE_BRING(R)

// The part of the ragged dimension that is a group's: nothing where the ends are wrong, which is reported.
typedef struct {
  long begin, end;
} Part;

Part find_part(long size, __global const int* ends, long ends_stride, __global Fault* fault) {
  const long group = get_group_id(2);
  const Part part = {group > 0 ? ends[(group - 1) * ends_stride] : 0, ends[group * ends_stride]};
  if (part.begin >= 0 && part.end >= part.begin && part.end <= size) return part;
  report_three(fault, part.end, size, part.begin);
  const Part nothing = {0, 0};
  return nothing;
}

#define RESULT(dtype, name) __global const STORAGE(dtype)*name, Strides name##_strides
#define OF_RESULT(dtype, name) LOAD(dtype, name, row * name##_strides.row + column * name##_strides.column)

__kernel void scaled_matmul(long rows, long columns, long inner, T alpha, T beta, __global STORAGE(OUT) * out,
                            Strides out_strides, FACTOR(L), FACTOR(R), RESULT(BIAS, bias), RESULT(TIMES, factor),
                            RESULT(ADDEND, addend), RESULT(SCALE_OUT, scale_out), __global const int* ends,
                            long ends_stride, __global Fault* fault) {
  __local T a_tile[ROWS][RUN];
  __local T b_tile[RUN][COLUMNS];
  const long batch = get_group_id(2);
  Part all_rows = {0, rows}, all_columns = {0, columns}, all_inner = {0, inner};
#ifdef RAGGED
  RAGGED = find_part(RAGGED.end, ends, ends_stride, fault);
  if (all_rows.end <= all_rows.begin || all_columns.end <= all_columns.begin) return;
#endif
  const int x = get_local_id(0);
  const int y = get_local_id(1);
  const int member = y * (COLUMNS / WIDE) + x;
  const long first_column = all_columns.begin + get_group_id(0) * COLUMNS;
  const long first_row = all_rows.begin + get_group_id(1) * ROWS;
  if (first_column >= all_columns.end || first_row >= all_rows.end) return;
  const long length = all_inner.end - all_inner.begin;
  Vector sums[HIGH];
  for (int i = 0; i < HIGH; ++i) sums[i] = 0;
  for (long start = 0; start < length; start += RUN) {
    for (int run = member; run < ROWS; run += MEMBERS) {
      const long count = first_row + run < all_rows.end ? length - start : 0;
      bring_L(a_tile[run], 1, batch, first_row + run, all_inner.begin, start, count, GIVEN(L));
    }
    for (int run = member; run < COLUMNS; run += MEMBERS) {
      const long count = first_column + run < all_columns.end ? length - start : 0;
      bring_R(&b_tile[0][run], COLUMNS, batch, first_column + run, all_inner.begin, start, count, GIVEN(R));
    }
    add_product(sums, a_tile, b_tile, x, y);
  }
  out += batch * out_strides.batch;
  bias += batch * bias_strides.batch;
  factor += batch * factor_strides.batch;
  addend += batch * addend_strides.batch;
  scale_out += batch * scale_out_strides.batch;
  for (int i = 0; i < HIGH; ++i) {
    const long row = first_row + y * HIGH + i;
    T results[WIDE];
    PASTE(vstore, WIDE)(sums[i], 0, results);
    for (int j = 0; j < WIDE; ++j) {
      const long column = first_column + x * WIDE + j;
      if (row >= all_rows.end || column >= all_columns.end) continue;
      T result = alpha * results[j];
#ifdef HAS_BIAS
      result += beta * OF_RESULT(BIAS, bias);
#endif
#ifdef FLOATING
      result = ACTIVATE(result);
#ifdef HAS_FACTOR
      result *= OF_RESULT(TIMES, factor);
#endif
#ifdef HAS_ADDEND
      result += OF_RESULT(ADDEND, addend);
#endif
#ifdef HAS_SCALE_OUT
      result *= OF_RESULT(SCALE_OUT, scale_out);
#endif
#ifdef LIMIT
      result = LIMITED(result);
#endif
#endif
      STORE(OUT, out, row * out_strides.row + column * out_strides.column, result);
    }
  }
}
