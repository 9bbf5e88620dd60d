// Numbers become those of a quantized type, or come from it: a work item for each element of out, which is two numbers
// where out is packed. T is what is calculated in.
typedef COMPUTE(COMPUTED) T;

typedef struct {
  long matrix, row, column;
} Strides;

typedef struct {
  long rows, columns;
} Block;

#define NUMBER_OF_BLOCK(dtype, from, strides, at, otherwise)                                             \
  (from != 0 ? (T)LOAD(dtype, from, (at).matrix * (strides).matrix + (at).row / block.rows * (strides).row + \
                                        (at).column / block.columns * (strides).column)                   \
             : (T)(otherwise))

#define ARGUMENTS                                                                                              \
  long count, long rows, long columns, Block block, __global STORAGE(OUT) *out, Strides out_strides,           \
      __global const STORAGE(IN) *in, Strides in_strides, __global const STORAGE(SCALE) *scale,                \
      Strides scale_strides, __global const STORAGE(ZERO) *zero, Strides zero_strides

#ifdef QUANTIZE

__kernel void quantize(ARGUMENTS, T least, T most) {
  const long id = get_global_id(0);
  if (id >= count) return;
  Strides at = {id / columns / rows, id / columns % rows, id % columns};
  out += at.matrix * out_strides.matrix + at.row * out_strides.row + at.column * out_strides.column;
  in += at.matrix * in_strides.matrix + at.row * in_strides.row;
#if PACKED(OUT)
  at.column *= 2;
  uint codes = 0;
  for (int half_number = 0; half_number < 2; ++half_number, ++at.column) {
#endif
    const T inverse = 1 / NUMBER_OF_BLOCK(SCALE, scale, scale_strides, at, 1);
    T number = (T)LOAD(IN, in, at.column * in_strides.column) * inverse;
#ifdef LIMIT
    STORE(OUT, out, 0, LIMITED(number));
#else
    number = rint(number) + NUMBER_OF_BLOCK(ZERO, zero, zero_strides, at, 0);
    // NaN is what the host's instructions make of it.
    const int whole = isnan(number) ? INT_MIN : (int)clamp(number, least, most);
#if PACKED(OUT)
    codes |= ((uint)whole & 15) << half_number * 4;
  }
  out[0] = (uchar)codes;
#else
    STORE(OUT, out, 0, whole);
#endif
#endif
}

#else

__kernel void dequantize(ARGUMENTS) {
  const long id = get_global_id(0);
  if (id >= count) return;
  const Strides at = {id / columns / rows, id / columns % rows, id % columns};
  in += at.matrix * in_strides.matrix + at.row * in_strides.row;
#if PACKED(IN)
  const T number = PACKED_NUMBER(IN, in, at.column, in_strides.column);
#else
  const T number = LOAD(IN, in, at.column * in_strides.column);
#endif
  const T result = (number - NUMBER_OF_BLOCK(ZERO, zero, zero_strides, at, 0)) *
                   NUMBER_OF_BLOCK(SCALE, scale, scale_strides, at, 1);
  STORE(OUT, out, at.matrix * out_strides.matrix + at.row * out_strides.row + at.column * out_strides.column, result);
}

#endif
