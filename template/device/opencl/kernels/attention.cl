// What becomes of a block of scores between the products of matrices: a team for each row, one query of one head.
// Scores are dense and hold `limit` keys; `block` says which they are.
typedef COMPUTE(DTYPE) T;
#define FOUND(dtype) __global const STORAGE(dtype)

typedef struct {
  long queries;  // in the block, of each head
  long first_query, keys, limit, causal;
  // Of the scores that dropout counts: the block's first, and how far one head is from the next.
  long first_score, head_step;
  ulong seed, offset, kept;  // a score is kept if its lane is below `kept`
} Block;

typedef struct {
  long head, query, key;
} Strides;

typedef struct {
  long head, query;  // the query's number in the block
  long seen;         // keys
} Row;

Row find_row(const Block* block) {
  const long number = get_group_id(0);
  Row row = {number / block->queries, number % block->queries, block->limit};
  if (block->causal) row.seen = min(block->limit, block->first_query + row.query + 1);
  return row;
}

long row_start(Row row, Strides strides) { return row.head * strides.head + row.query * strides.query; }

#ifdef DROPOUT
T keep(const Block* block, Row row, long key, T factor, __global const ulong* state) {
  const ulong score = block->first_score + row.head * block->head_step + row.query * block->keys + key;
  const ulong seed = state != 0 ? state[0] : block->seed;
  const ulong offset = block->offset + (state != 0 ? state[1] : 0);
  const uint4 lanes = philox_block(seed, offset + score / 4);
  const uint of[4] = {lanes.x, lanes.y, lanes.z, lanes.w};
  return of[score % 4] < block->kept ? factor : (T)0;
}
#else
#define keep(block, row, key, factor, state) (T)1
#endif

#if defined(TRUTH)
#define MASKED(score, i) (mask[(i) * mask_strides.key] != 0 ? (score) : (T)-INFINITY)
#elif defined(ADDED)
#define MASKED(score, i) (score) + LOAD(DTYPE, mask, (i) * mask_strides.key)
#else
#define MASKED(score, i) (score)
#endif

#define MASK_ARGUMENT __global const STORAGE(MASK) *mask, Strides mask_strides

#ifdef FORWARD

// Makes scores probabilities.
__kernel void make_probabilities(Block block, T factor, __global const ulong* state, __global T* scores,
                                 __global T* logsumexp, Strides logsumexp_strides, MASK_ARGUMENT) {
  __local ACC shares[TEAM];
  const Row row = find_row(&block);
  scores += get_group_id(0) * block.limit;
  mask += row_start(row, mask_strides);
  ACC share = -INFINITY;
  FOR_SHARE(i, row.seen) {
    const T score = MASKED(scores[i], i);
    scores[i] = score;
    share = greater_of(share, score);
  }
  const T greatest = greatest_of_team(share, shares);
  share = 0;
  FOR_SHARE(i, row.seen) {
    const T power = greatest == -INFINITY ? (T)0 : exp(scores[i] - greatest);
    scores[i] = power;
    share += power;
  }
  const ACC sum = sum_of_team(share, shares);
  const T scale = sum == 0 ? (T)0 : (T)(1 / sum);
  FOR_SHARE(i, block.limit) scores[i] = i < row.seen ? scores[i] * scale * keep(&block, row, i, factor, state) : (T)0;
  if (get_local_id(0) == 0) {
    logsumexp[row_start(row, logsumexp_strides)] = sum == 0 ? (T)INFINITY : (T)(greatest + log(sum));
  }
}

#else

// Makes scores the probabilities that the values were multiplied by, and the gradients of those the scores' gradients.
__kernel void make_gradients(Block block, T factor, __global const ulong* state, __global T* scores,
                             __global T* gradients, __global const T* logsumexp, Strides logsumexp_strides,
                             FOUND(DTYPE) * out, Strides out_strides, FOUND(DTYPE) * grad_out,
                             Strides grad_out_strides, long width, __global STORAGE(DTYPE) * grad_mask,
                             Strides grad_mask_strides, MASK_ARGUMENT) {
  __local ACC shares[TEAM];
  const Row row = find_row(&block);
  scores += get_group_id(0) * block.limit;
  gradients += get_group_id(0) * block.limit;
  mask += row_start(row, mask_strides);
  out += row_start(row, out_strides);
  grad_out += row_start(row, grad_out_strides);
  ACC share = 0;
  FOR_SHARE(i, width) {
    share += (ACC)LOAD(DTYPE, out, i * out_strides.key) * LOAD(DTYPE, grad_out, i * grad_out_strides.key);
  }
  const T product = sum_of_team(share, shares);
  const T logarithm = logsumexp[row_start(row, logsumexp_strides)];
  FOR_SHARE(i, block.limit) {
    const T probability = i < row.seen ? exp(MASKED(scores[i], i) - logarithm) : (T)0;
    const T kept = keep(&block, row, i, factor, state);
    gradients[i] = probability * (gradients[i] * kept - product);
    scores[i] = probability * kept;
  }
#ifdef GRAD_MASK
  grad_mask += row_start(row, grad_mask_strides);
  FOR_SHARE(i, block.keys) {
    const T gradient = i < row.seen ? gradients[i] : (T)0;
    STORE(DTYPE, grad_mask, i * grad_mask_strides.key, gradient);
  }
#endif
}

#endif
