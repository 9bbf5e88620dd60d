// What the products of matmul.cl and scaled_matmul.cl have in common: a group of work items makes a tile of the result of
// ROWS x COLUMNS elements, HIGH x WIDE of them each, from tiles of both factors in local memory, RUN elements deep.
#define RUN 16
#define WIDE 16
#define MEMBERS (ROWS / HIGH * (COLUMNS / WIDE))
typedef COMPUTE(COMPUTED) T;
typedef PASTE(COMPUTE(COMPUTED), WIDE) Vector;

typedef struct {
  long batch, row, column;
} Strides;

#ifdef FLOATING
#define ADD_PRODUCT(sum, x, y) sum = fma(x, y, sum)
#else
#define ADD_PRODUCT(sum, x, y) sum += (x) * (y)
#endif

// Adds the product of both tiles to the sums of the work item at (x, y) of its group, once all have brought their parts.
void add_product(Vector* sums, __local const T a_tile[ROWS][RUN], __local const T b_tile[RUN][COLUMNS], int x, int y) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < RUN; ++k) {
    const Vector factors = PASTE(vload, WIDE)(x, b_tile[k]);
    for (int i = 0; i < HIGH; ++i) ADD_PRODUCT(sums[i], (Vector)a_tile[y * HIGH + i][k], factors);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
