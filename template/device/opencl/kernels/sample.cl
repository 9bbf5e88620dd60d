// A team for each row of logits. SORTED says that they come in falling order, with the tokens that they belong to: then
// what top_k and top_p leave is the beginning of a row.
typedef COMPUTE(IN) T;

typedef struct {
  T top;  // the greatest logit
  T temperature;
  ACC min_p;
} Request;

ACC weight_of(T logit, Request request) { return exp(((ACC)logit - request.top) / request.temperature); }

// What RandomOp::kExponential with rate 1 draws for a float32 element.
float exponential_of(ulong seed, ulong offset, ulong element) {
  const uint4 lanes = philox_block(seed, offset + element / 4);
  const uint of[4] = {lanes.x, lanes.y, lanes.z, lanes.w};
  return fmax(-log1p(-(((float)(of[element % 4] >> 9) + 0.5f) * 0x1p-23f)), FLT_MIN);
}

// The token with the best score of the members', of equal ones the first; `otherwise` where nobody has one.
long find_best(ACC score, long token, long otherwise, __local ACC* shares) {
  const ACC best = greatest_of_team(score, shares);
  const ACC first = greatest_of_team(score == best && token >= 0 ? -(ACC)token : (ACC)-INFINITY, shares);
  return first == -INFINITY ? otherwise : (long)-first;
}

#ifdef SORTED

// How many logits at the beginning of a row have a weight of at least `least`, and more than 0.
long count_weights(__global const STORAGE(IN) * logits, long end, ACC least, Request request) {
  long begin = 0;
  while (begin < end) {
    const long middle = (begin + end) / 2;
    const ACC weight = weight_of(LOAD(IN, logits, middle), request);
    if (weight > 0 && weight >= least) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// How many of the first `count` together reach `top_p`: each member adds up a stretch of them.
long count_top_p(__global const STORAGE(IN) * logits, long count, ACC top_p, Request request, __local ACC* shares) {
  const int member = get_local_id(0);
  const long stretch = (count + TEAM - 1) / TEAM;
  ACC share = 0;
  const long end = min((member + 1) * stretch, count);
  for (long i = member * stretch; i < end; ++i) share += weight_of(LOAD(IN, logits, i), request);
  const ACC wanted = top_p * sum_of_team(share, shares);
  shares[member] = share;
  barrier(CLK_LOCAL_MEM_FENCE);
  ACC reached = 0;
  long kept = 0;
  for (int i = 0; i < TEAM && kept + stretch < count && reached + shares[i] < wanted; ++i, kept += stretch) {
    reached += shares[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  while (kept < count && (kept == 0 || reached < wanted)) reached += weight_of(LOAD(IN, logits, kept++), request);
  return kept;
}

#endif

__kernel void sample(long tokens, __global long* out, long out_stride, __global const STORAGE(IN) * logits,
                     long row_stride, long stride, __global const long* places, ulong seed, ulong offset,
                     __global const ulong* state, __global const float* temperatures, long temperature_stride,
                     __global const float* min_ps, long min_p_stride, __global const int* top_ks, long top_k_stride,
                     __global const float* top_ps, long top_p_stride) {
  __local ACC shares[TEAM];
  const long row = get_group_id(0);
  logits += row * row_stride;
  out += row * out_stride;
  Request request = {0, temperatures != 0 ? temperatures[row * temperature_stride] : 1,
                     min_ps != 0 ? min_ps[row * min_p_stride] : 0};
#ifdef SORTED
  places += row * tokens;
  const long greatest = places[0];
  request.top = LOAD(IN, logits, 0);
#else
  ACC share = -INFINITY;
  long found = -1;
  FOR_SHARE(i, tokens) {
    const ACC logit = LOAD(IN, logits, i * stride);
    if (found < 0 || logit > share) {
      share = logit;
      found = i;
    }
  }
  const long greatest = find_best(share, found, 0, shares);
  request.top = LOAD(IN, logits, greatest * stride);
#endif
  long count = tokens;
#ifdef SORTED
  count = count_weights(logits, count, request.min_p, request);
  const long top_k = top_ks != 0 ? top_ks[row * top_k_stride] : 0;
  if (top_k >= 1 && top_k < count) {
    count = count_weights(logits, count, weight_of(LOAD(IN, logits, top_k - 1), request), request);
  }
  const ACC top_p = top_ps != 0 ? top_ps[row * top_p_stride] : 1;
  const long first_ones = count_top_p(logits, count, top_p, request, shares);
  if (top_p < 1) count = first_ones;
#endif
  if (request.temperature == 0 || isinf(request.top)) count = 0;
  if (state != 0) {
    seed = state[0];
    offset += state[1];
  }
  ACC best = -1;
  long chosen = -1;
  FOR_SHARE(i, count) {
    const ACC weight = weight_of(LOAD(IN, logits, i * stride), request);
#ifdef SORTED
    const long token = places[i];
#else
    const long token = i;
#endif
    const ACC score = weight / exponential_of(seed, offset, (ulong)(row * tokens + token));
    const bool stays = weight > 0 && weight >= request.min_p;
    if (stays && (score > best || (score == best && token < chosen))) {
      best = score;
      chosen = token;
    }
  }
  const long token = find_best(best, chosen, greatest, shares);
  if (get_local_id(0) == 0) *out = token;
}
