// out = beta * bias + alpha * (a @ b), by tiles of a and b that a group of work items brings to local memory in runs of
// RUN elements. The grid's third dimension is the batch.

// `count` of the elements are there, the others count as 0.
#define BRING(dtype, to, to_step, from, from_step, count)                                       \
  if ((from_step) == 1 && (count) >= RUN) {                                                     \
    for (int i = 0; i < RUN; ++i) (to)[i * (to_step)] = LOAD(dtype, from, i);                   \
  } else {                                                                                      \
    for (int i = 0; i < RUN; ++i) {                                                             \
      (to)[i * (to_step)] = i < (count) ? LOAD(dtype, from, i * (from_step)) : (COMPUTE(dtype))0; \
    }                                                                                           \
  }

__kernel void matmul(long rows, long columns, long inner, T alpha, T beta, __global STORAGE(OUT) * out,
                     Strides out_strides, __global const STORAGE(A) * a, Strides a_strides,
                     __global const STORAGE(B) * b, Strides b_strides, __global const STORAGE(OUT) * bias,
                     Strides bias_strides) {
  __local T a_tile[ROWS][RUN];
  __local T b_tile[RUN][COLUMNS];
  const int x = get_local_id(0);
  const int y = get_local_id(1);
  const int member = y * (COLUMNS / WIDE) + x;
  const long first_column = get_group_id(0) * COLUMNS;
  const long first_row = get_group_id(1) * ROWS;
  const long batch = get_group_id(2);
  a += batch * a_strides.batch + first_row * a_strides.row;
  b += batch * b_strides.batch + first_column * b_strides.column;
  Vector sums[HIGH];
  for (int i = 0; i < HIGH; ++i) sums[i] = 0;
  for (long start = 0; start < inner; start += RUN) {
    // Runs lie the way that has the stride of 1.
    for (int run = member; run < ROWS; run += MEMBERS) {
#ifdef A_DOWN
      const int row = run % (ROWS / RUN) * RUN;
      const int k = run / (ROWS / RUN);
      const long count = start + k < inner ? rows - first_row - row : 0;
      BRING(A, &a_tile[row][k], RUN, a + row * a_strides.row + (start + k) * a_strides.column, a_strides.row, count)
#else
      const long count = first_row + run < rows ? inner - start : 0;
      BRING(A, a_tile[run], 1, a + run * a_strides.row + start * a_strides.column, a_strides.column, count)
#endif
    }
    for (int run = member; run < COLUMNS; run += MEMBERS) {
#ifdef B_DOWN
      const long count = first_column + run < columns ? inner - start : 0;
      BRING(B, &b_tile[0][run], COLUMNS, b + start * b_strides.row + run * b_strides.column, b_strides.row, count)
#else
      const int column = run % (COLUMNS / RUN) * RUN;
      const int k = run / (COLUMNS / RUN);
      const long count = start + k < inner ? columns - first_column - column : 0;
      BRING(B, &b_tile[k][column], 1, b + (start + k) * b_strides.row + column * b_strides.column, b_strides.column,
            count)
#endif
    }
    add_product(sums, a_tile, b_tile, x, y);
  }
  out += batch * out_strides.batch;
  bias += batch * bias_strides.batch;
  for (int i = 0; i < HIGH; ++i) {
    const long row = first_row + y * HIGH + i;
    T results[WIDE];
    PASTE(vstore, WIDE)(sums[i], 0, results);
    for (int j = 0; j < WIDE; ++j) {
      const long column = first_column + x * WIDE + j;
      if (row >= rows || column >= columns) continue;
      T result = alpha * results[j];
#ifdef HAS_BIAS
      result += beta * LOAD(OUT, bias, row * bias_strides.row + column * bias_strides.column);
#endif
      STORE(OUT, out, row * out_strides.row + column * out_strides.column, result);
    }
  }
}
