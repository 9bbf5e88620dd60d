// Element types that OpenCL has no name for: float8, and two numbers of four bits in a byte. They round as
// reference/element.h says. A number of a packed type is found by `NUMBER`: LOAD and STORE have no name for a half.
#define STORAGE_float8_e4m3fn uchar
#define STORAGE_float8_e5m2 uchar
#define STORAGE_float8_e4m3fnuz uchar
#define STORAGE_float8_e5m2fnuz uchar
#define STORAGE_float8_e8m0fnu uchar
#define STORAGE_float4_e2m1fn_x2 uchar
#define STORAGE_int4x2 uchar

#define COMPUTE_float8_e4m3fn float
#define COMPUTE_float8_e5m2 float
#define COMPUTE_float8_e4m3fnuz float
#define COMPUTE_float8_e5m2fnuz float
#define COMPUTE_float8_e8m0fnu float
#define COMPUTE_float4_e2m1fn_x2 float
#define COMPUTE_int4x2 int

// A finite number of seven bits and a sign, of which `mantissa` bits are the fraction.
float load_finite(uint bits, uint mantissa, uint bias) {
  const uint magnitude = bits & 0x7f;
  const float subnormal = (float)magnitude * as_float((128 - bias - mantissa) << 23);
  const float normal = as_float((magnitude << (23 - mantissa)) + ((127 - bias) << 23));
  return copysign(magnitude >> mantissa == 0 ? subnormal : normal, (bits & 0x80) != 0 ? -1.0f : 1.0f);
}

float load_e4m3fn(uint bits) { return (bits & 0x7f) == 0x7f ? (float)NAN : load_finite(bits, 3, 7); }
float load_e5m2(uint bits) {
  const uint magnitude = bits & 0x7f;
  const float special = magnitude == 0x7c ? copysign((float)INFINITY, (bits & 0x80) != 0 ? -1.0f : 1.0f) : (float)NAN;
  return magnitude >= 0x7c ? special : load_finite(bits, 2, 15);
}
float load_unsigned_zero(uint bits, uint mantissa, uint bias) {
  return bits == 0x80 ? (float)NAN : load_finite(bits, mantissa, bias);
}
float load_e8m0(uint bits) { return bits == 0xff ? (float)NAN : as_float(bits == 0 ? 0x00400000u : bits << 23); }

#define LOAD_float8_e4m3fn(from, i) load_e4m3fn((from)[i])
#define LOAD_float8_e5m2(from, i) load_e5m2((from)[i])
#define LOAD_float8_e4m3fnuz(from, i) load_unsigned_zero((from)[i], 3, 8)
#define LOAD_float8_e5m2fnuz(from, i) load_unsigned_zero((from)[i], 2, 16)
#define LOAD_float8_e8m0fnu(from, i) load_e8m0((from)[i])

// To the nearest, ties to even. A pattern from `top` on becomes `too_large`.
uchar store_float8(float value, uint mantissa, uint bias, uint top, uint no_number, uint too_large) {
  const uint shift = 23 - mantissa;
  const uint magnitude = as_uint(value) & 0x7fffffff;
  const uint sign = as_uint(value) >> 24 & 0x80;
  if (magnitude > 0x7f800000) return (uchar)(no_number | sign);
  if (magnitude < (128 - bias) << 23) {
    return (uchar)((uint)rint(fabs(value) * as_float((126 + bias + mantissa) << 23)) | sign);
  }
  const uint rounded = (magnitude - ((127 - bias) << 23) + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
  return (uchar)((rounded < top ? rounded : too_large) | sign);
}

// Without -0, of which the pattern is NaN's.
uchar store_unsigned_zero(float value, uint mantissa, uint bias) {
  const uchar small = store_float8(value, mantissa, bias, 0x80, 0x80, 0x80);
  return small == 0x80 && fabs(value) < 1 ? 0 : small;
}

// Half is rounded up, the sign dropped, infinity made NaN.
uchar store_e8m0(float value) {
  const uint magnitude = as_uint(value) & 0x7fffffff;
  const uint exponent = magnitude >> 23;
  return (uchar)(exponent == 0xff ? 0xff : exponent + ((magnitude & 0x7fffff) + (exponent > 0 ? 1 : 0) > 0x400000));
}

#define STORE_float8_e4m3fn(to, i, value) (to)[i] = store_float8((float)(value), 3, 7, 0x7f, 0x7f, 0x7e)
#define STORE_float8_e5m2(to, i, value) (to)[i] = store_float8((float)(value), 2, 15, 0x7c, 0x7e, 0x7c)
#define STORE_float8_e4m3fnuz(to, i, value) (to)[i] = store_unsigned_zero((float)(value), 3, 8)
#define STORE_float8_e5m2fnuz(to, i, value) (to)[i] = store_unsigned_zero((float)(value), 2, 16)
#define STORE_float8_e8m0fnu(to, i, value) (to)[i] = store_e8m0((float)(value))

// The largest number of a float8 type, which takes what is larger. Where T has infinities nothing is limited.
#define LIMITED(x) ((x) > LIMIT ? (T)LIMIT : (x) < -LIMIT ? (T)-LIMIT : (x))

// Whether an element is two numbers: what has no such name is 0.
#define PACKED(dtype) PASTE(IS_PACKED_, dtype)
#define IS_PACKED_float4_e2m1fn_x2 1
#define IS_PACKED_int4x2 1

__constant float float4_numbers[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

float load_float4_e2m1fn_x2(uint code) { return (code & 8) != 0 ? -float4_numbers[code & 7] : float4_numbers[code & 7]; }
int load_int4x2(uint code) { return (int)(code ^ 8) - 8; }

// The number `i` of a line of packed elements that lie `step` apart.
#define PACKED_NUMBER(dtype, line, i, step) PASTE(load_, dtype)((line)[(i) / 2 * (step)] >> (uint)((i) % 2 * 4) & 15)
