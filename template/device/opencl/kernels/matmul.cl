// out = beta * bias + alpha * (a @ b): a group of work items makes a tile of out, HIGH x WIDE elements each, from tiles of
// a and b that it brings to local memory, a run of RUN elements each. The third dimension is the batch.
#define ROWS 64
#define COLUMNS 64
#define RUN 16
#define HIGH 4
#define WIDE 16
typedef COMPUTE(OUT) T;
typedef PASTE(COMPUTE(OUT), WIDE) Vector;

typedef struct {
  long batch, row, column;
} Strides;

#ifdef FLOATING
#define ADD_PRODUCT(sum, x, y) sum = fma(x, y, sum)
#else
#define ADD_PRODUCT(sum, x, y) sum += (x) * (y)
#endif

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
  // Which way the runs lie: the one with the stride of 1.
#ifdef A_DOWN
  const int a_row = member % (ROWS / RUN) * RUN;
  const int a_inner = member / (ROWS / RUN);
#else
  const int a_row = member;
  const int a_inner = 0;
#endif
#ifdef B_DOWN
  const int b_column = member;
  const int b_inner = 0;
#else
  const int b_column = member % (COLUMNS / RUN) * RUN;
  const int b_inner = member / (COLUMNS / RUN);
#endif
  a += batch * a_strides.batch + (first_row + a_row) * a_strides.row + a_inner * a_strides.column;
  b += batch * b_strides.batch + b_inner * b_strides.row + (first_column + b_column) * b_strides.column;
  const long a_rows = rows - first_row - a_row;
  const long b_columns = columns - first_column - b_column;
  Vector sums[HIGH];
  for (int i = 0; i < HIGH; ++i) sums[i] = 0;
  for (long start = 0; start < inner; start += RUN) {
    const long a_left = inner - start - a_inner;
    const long b_left = inner - start - b_inner;
#ifdef A_DOWN
    const long a_count = a_left > 0 ? a_rows : 0;
    BRING(A, &a_tile[a_row][a_inner], RUN, a, a_strides.row, a_count)
#else
    const long a_count = a_rows > 0 ? a_left : 0;
    BRING(A, a_tile[a_row], 1, a, a_strides.column, a_count)
#endif
#ifdef B_DOWN
    const long b_count = b_columns > 0 ? b_left : 0;
    BRING(B, &b_tile[0][b_column], COLUMNS, b, b_strides.row, b_count)
#else
    const long b_count = b_left > 0 ? b_columns : 0;
    BRING(B, &b_tile[b_inner][b_column], 1, b, b_strides.column, b_count)
#endif
    a += RUN * a_strides.column;
    b += RUN * b_strides.row;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < RUN; ++k) {
      const Vector factors = PASTE(vload, WIDE)(x, b_tile[k]);
      for (int i = 0; i < HIGH; ++i) ADD_PRODUCT(sums[i], (Vector)a_tile[y * HIGH + i][k], factors);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
