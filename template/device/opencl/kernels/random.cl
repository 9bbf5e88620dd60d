// Each work item draws the elements of one block: kernels.h says which lanes are whose, and what becomes of them.
//
// PARAMETER is the type of a and b: the one that is calculated in, or uint64, and then each draw says what they are.
typedef COMPUTE(PARAMETER) NUMBER;

#if defined(OUT_float64) && !defined(op_bernoulli) || defined(op_integers) || defined(op_bits)
#define PER_BLOCK 2
typedef ulong BITS;
#else
#define PER_BLOCK 4
typedef uint BITS;
#endif

// How the bits of an element become a number, by the output's type: UNIT in [0, 1), CENTRE in (0, 1], INTERIOR in (0, 1).
#ifdef OUT_float64
#define UNIT(x) ((double)(x >> 11) * 0x1p-53)
#define CENTRE(x) ((double)x * 0x1p-64 + 0x1p-65)
#define INTERIOR(x) (((double)(x >> 12) + 0.5) * 0x1p-52)
#define SMALLEST DBL_MIN
#define LARGEST DBL_MAX
#define PI M_PI
#else
#define CENTRE(x) ((float)x * 0x1p-32f + 0x1p-33f)
#define INTERIOR(x) (((float)(x >> 9) + 0.5f) * 0x1p-23f)
#define UNIT(x) ((float)(x >> 8) * 0x1p-24f)
#define PI M_PI_F
#if defined(OUT_float16)
#define SMALLEST 0x1p-14f
#define LARGEST 65504.0f
#elif defined(OUT_bfloat16)
#define SMALLEST FLT_MIN
#define LARGEST 0x1.fep+127f
#else
#define SMALLEST FLT_MIN
#define LARGEST FLT_MAX
#endif
#endif

__kernel void draw(long count, Shape shape, __global STORAGE(OUT) * out, ulong seed, ulong offset,
                   __global const ulong* state, NUMBER a, NUMBER b) {
  const long block = get_global_id(0);
  if (block * PER_BLOCK >= count) return;
  const uint4 lanes = philox_block(state ? state[0] : seed, (state ? state[1] : 0) + offset + block);
  BITS bits[PER_BLOCK];
#if PER_BLOCK == 2
  vstore2(as_ulong2(lanes), 0, bits);
#else
  vstore4(lanes, 0, bits);
#endif
#ifdef op_normal
  NUMBER radius = 0, angle = 0;
#endif
  for (int element = 0; element < PER_BLOCK && block * PER_BLOCK + element < count; ++element) {
    const long at = find_offsets(&shape, block * PER_BLOCK + element).of[0];
    const BITS x = bits[element];
#if defined(op_uniform)
    STORE(OUT, out, at, a + UNIT(x) * (b - a));
    // Rounding may have gone beyond.
    if (LOAD(OUT, out, at) >= b) STORE(OUT, out, at, a);
#elif defined(op_normal)
    if (element % 2 == 0) {
      radius = sqrt(-2 * log(CENTRE(x)));
      angle = 2 * PI * CENTRE(bits[element + 1]);
    }
    STORE(OUT, out, at, a + b * radius * (element % 2 == 0 ? cos(angle) : sin(angle)));
#elif defined(op_exponential)
    STORE(OUT, out, at, clamp(-log1p(-INTERIOR(x)) / a, (NUMBER)SMALLEST, (NUMBER)LARGEST));
#elif defined(op_bernoulli)
    STORE(OUT, out, at, x < a ? 1 : 0);  // a times 2^32
#elif defined(op_integers)
    STORE(OUT, out, at, (long)(a + mul_hi(x, b)));  // the first one, and how many there are
#else
    STORE(OUT, out, at, (long)x);
#endif
  }
}
