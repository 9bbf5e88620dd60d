// What every kernel begins with: element types and strides.
//
// An element type DTYPE is four macros, found by its name: STORAGE, what memory holds; COMPUTE, what kernels calculate in;
// LOAD and STORE, the ways between them. They are those of reference/element.h. A raw type moves bits that nobody reads.
#pragma OPENCL FP_CONTRACT OFF

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define STORAGE(dtype) PASTE(STORAGE_, dtype)
#define COMPUTE(dtype) PASTE(COMPUTE_, dtype)
#define LOAD(dtype, from, i) PASTE(LOAD_, dtype)(from, i)
#define STORE(dtype, to, i, value) PASTE(STORE_, dtype)(to, i, value)

#define STORAGE_bool uchar
#define STORAGE_uint8 uchar
#define STORAGE_int8 char
#define STORAGE_int16 short
#define STORAGE_uint16 ushort
#define STORAGE_int32 int
#define STORAGE_uint32 uint
#define STORAGE_int64 long
#define STORAGE_uint64 ulong
#define STORAGE_float16 half
#define STORAGE_bfloat16 ushort
#define STORAGE_float32 float
#define STORAGE_float64 double
#define STORAGE_complex64 float2
#define STORAGE_complex128 double2
#define STORAGE_raw1 uchar
#define STORAGE_raw2 ushort
#define STORAGE_raw4 uint
#define STORAGE_raw8 ulong
#define STORAGE_raw16 ulong2

#define COMPUTE_bool int
#define COMPUTE_uint8 int
#define COMPUTE_int8 int
#define COMPUTE_int16 int
#define COMPUTE_uint16 int
#define COMPUTE_int32 int
#define COMPUTE_uint32 long
#define COMPUTE_int64 long
#define COMPUTE_uint64 ulong
#define COMPUTE_float16 float
#define COMPUTE_bfloat16 float
#define COMPUTE_float32 float
#define COMPUTE_float64 double
#define COMPUTE_complex64 double2
#define COMPUTE_complex128 double2
#define COMPUTE_raw1 uchar
#define COMPUTE_raw2 ushort
#define COMPUTE_raw4 uint
#define COMPUTE_raw8 ulong
#define COMPUTE_raw16 ulong2

#define LOAD_plain(from, i) (from)[i]
#define LOAD_bool(from, i) ((from)[i] != 0)
#define LOAD_uint8 LOAD_plain
#define LOAD_int8 LOAD_plain
#define LOAD_int16 LOAD_plain
#define LOAD_uint16 LOAD_plain
#define LOAD_int32 LOAD_plain
#define LOAD_uint32 LOAD_plain
#define LOAD_int64 LOAD_plain
#define LOAD_uint64 LOAD_plain
#define LOAD_float16(from, i) vload_half(i, from)
#define LOAD_bfloat16(from, i) as_float((uint)(from)[i] << 16)
#define LOAD_float32 LOAD_plain
#define LOAD_float64 LOAD_plain
#define LOAD_complex64(from, i) convert_double2((from)[i])
#define LOAD_complex128 LOAD_plain
#define LOAD_raw1 LOAD_plain
#define LOAD_raw2 LOAD_plain
#define LOAD_raw4 LOAD_plain
#define LOAD_raw8 LOAD_plain
#define LOAD_raw16 LOAD_plain

// To the nearest, ties to even.
ushort round_to_bfloat16(float value) {
  const uint bits = as_uint(value);
  return isnan(value) ? (ushort)(0x7fc0 | (bits >> 16 & 0x8000)) : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define STORE_plain(to, i, value) (to)[i] = (value)
#define STORE_bool(to, i, value) (to)[i] = (value) != 0
#define STORE_uint8(to, i, value) (to)[i] = (uchar)(int)(value)
#define STORE_int8(to, i, value) (to)[i] = (char)(int)(value)
#define STORE_int16(to, i, value) (to)[i] = (short)(int)(value)
#define STORE_uint16(to, i, value) (to)[i] = (ushort)(int)(value)
#define STORE_int32(to, i, value) (to)[i] = (int)(value)
#define STORE_uint32(to, i, value) (to)[i] = (uint)(long)(value)
#define STORE_int64(to, i, value) (to)[i] = (long)(value)
#define STORE_uint64 STORE_plain
#define STORE_float16(to, i, value) vstore_half_rte((float)(value), i, to)
#define STORE_bfloat16(to, i, value) (to)[i] = round_to_bfloat16(value)
#define STORE_float32 STORE_plain
#define STORE_float64 STORE_plain
#define STORE_complex64(to, i, value) (to)[i] = convert_float2(value)
#define STORE_complex128 STORE_plain
#define STORE_raw1 STORE_plain
#define STORE_raw2 STORE_plain
#define STORE_raw4 STORE_plain
#define STORE_raw8 STORE_plain
#define STORE_raw16 STORE_plain

// Complex numbers are pairs. COMPLEX says that a kernel calculates with them.
#ifdef COMPLEX
double2 product(double2 x, double2 y) { return (double2)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); }
#define UNITY ((double2)(1, 0))
#define IS_TRUE convert_pair_to_truth
#else
#define product(x, y) ((x) * (y))
#define UNITY 1
#define IS_TRUE convert_to_truth
#endif

// CONVERT is one of these: from the type of what is read to the one that is asked for.
#define convert_same(x) (x)
#define convert_to_truth(x) ((x) != 0)
#define convert_real_part(pair) (pair).x
#define convert_to_pair(x) ((double2)(x, 0))
#define convert_pair_to_size(pair) hypot((pair).x, (pair).y)
#define convert_pair_to_truth(pair) ((pair).x != 0 || (pair).y != 0)

// Of any type: integers are none.
#define IS_NAN(x) ((x) != (x))

// What a kernel finds wrong with its input: faults.h. Null where the device cannot report.
typedef struct {
  int is_found;
  long value, limit, before;
} Fault;

void report_three(__global Fault* fault, long value, long limit, long before) {
  if (fault == 0 || atomic_cmpxchg(&fault->is_found, 0, 1) != 0) return;
  fault->value = value;
  fault->limit = limit;
  fault->before = before;
}

void report(__global Fault* fault, long value, long limit) { report_three(fault, value, limit, 0); }

// Whether an element type is a floating one narrower than float: what has no such name is 0.
#define NARROW(dtype) PASTE(IS_NARROW_, dtype)
#define IS_NARROW_float16 1
#define IS_NARROW_bfloat16 1

// The sizes of a shape and, in elements, the strides of up to four arrays of it: geometry.h.
#define MAX_RANK 16
typedef struct {
  long rank;
  long sizes[MAX_RANK];
  long strides[4][MAX_RANK];
} Shape;

// Where the element with this row-major number lies in each array.
typedef struct {
  long of[4];
} Offsets;

Offsets find_offsets(const Shape* shape, long index) {
  Offsets offsets = {{0, 0, 0, 0}};
  for (int dim = (int)shape->rank - 1; dim >= 0; --dim) {
    const long size = shape->sizes[dim];
    const long place = dim > 0 ? index % size : index;
    if (dim > 0) index /= size;
    for (int array = 0; array < 4; ++array) offsets.of[array] += place * shape->strides[array][dim];
  }
  return offsets;
}

// The share of a normal distribution below x, which keeps its digits for negative x, and exp(-x^2 / 2). By a fit to erfc
// with an error of 1.2e-7 of its value, as drivers' own erfc branches for each element.
float normal_share_of_float(float x, float* density) {
  const float size = fmin(fabs(x) * M_SQRT1_2_F, 20.0f);  // of infinities too
  const float near = 1 / (1 + size / 2);
  const float fit =
      near * (1.00002368f + near * (0.37409196f + near * (0.09678418f + near * (-0.18628806f +
      near * (0.27886807f + near * (-1.13520398f + near * (1.48851587f + near * (-0.82215223f +
      near * 0.17087277f))))))));
  const float square = size * size;
  const float lost = fma(size, size, -square);
  *density = exp(-square) * (1 - lost);
  const float beyond = near / 2 * *density * exp(fit - 1.26551223f);
  return x < 0 ? beyond : 1 - beyond;
}
