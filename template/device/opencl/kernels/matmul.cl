// out = beta * bias + alpha * (a @ b): a group of TILE x TILE work items makes a tile of out, one element each, from tiles
// of a and b that it brings to local memory. The third dimension is the batch.
#define TILE 16
typedef COMPUTE(DTYPE) T;

typedef struct {
  long batch, row, column;
} Strides;

__kernel void matmul(long rows, long columns, long inner, __global STORAGE(DTYPE) * out, Strides out_strides,
                     __global const STORAGE(DTYPE) * a, Strides a_strides, __global const STORAGE(DTYPE) * b,
                     Strides b_strides, __global const STORAGE(DTYPE) * bias, Strides bias_strides, T alpha, T beta) {
  __local T a_tile[TILE][TILE];
  __local T b_tile[TILE][TILE];
  const int x = get_local_id(0);
  const int y = get_local_id(1);
  const long column = get_global_id(0);
  const long row = get_global_id(1);
  const long batch = get_global_id(2);
  a += batch * a_strides.batch;
  b += batch * b_strides.batch;
  T sum = 0;
  for (long start = 0; start < inner; start += TILE) {
    a_tile[y][x] = row < rows && start + x < inner ? LOAD(DTYPE, a, row * a_strides.row + (start + x) * a_strides.column)
                                                   : (T)0;
    b_tile[y][x] = column < columns && start + y < inner
                       ? LOAD(DTYPE, b, (start + y) * b_strides.row + column * b_strides.column)
                       : (T)0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row >= rows || column >= columns) return;
  T result = alpha * sum;
#ifdef HAS_BIAS
  bias += batch * bias_strides.batch;
  result += beta * LOAD(DTYPE, bias, row * bias_strides.row + column * bias_strides.column);
#endif
  STORE(DTYPE, out, batch * out_strides.batch + row * out_strides.row + column * out_strides.column, result);
}
