// Attention row by row, a team for each query of each head: for sequences of any lengths, caches, windows, caps, sinks
// and slopes, which products of whole matrices do not know. Scores are (rows, heads, room), counted by their keys' numbers.
typedef COMPUTE(DTYPE) T;
#define FOUND(dtype) __global const STORAGE(dtype)

typedef struct {
  long batch, head, row, element;
} Strides;

typedef struct {
  long sequence, head;
} Pair;

// Where a sequence lies: in the arrays of queries, and in those of keys, unless a block table says where.
typedef struct {
  long first_query, queries, first_key, keys;
} Sequence;

// The same as Problem in attention_rows.cpp.
typedef struct {
  long first_row, rows;  // of queries, over all batches, that are worked on at once
  long heads, kv_heads, queries, width, value_width, room;
  long block_size, blocks, table_row, table_column;  // 0 without a block table
  long causal, top_left, window_left, window_right, has_query_starts, has_key_starts, drawn_keys;
  ulong seed, offset, kept;
} Problem;

// Reads what lies on the device about the sequences, and writes down whose each row is. What is wrong is reported, and
// counts as nothing.
__kernel void find_sequences(long count, long queries, long keys, long room, long most, __global Sequence* sequences,
                             __global int* of_query, __global int* of_key, __global const int* query_starts,
                             long query_step, __global const int* key_starts, long key_step,
                             __global const int* key_counts, long count_step, __global Fault* wrong_starts,
                             __global Fault* wrong_counts) {
  const long number = get_global_id(0);
  if (number >= count) return;
  Sequence sequence = {0, queries, 0, keys};
  if (query_starts != 0) {
    sequence.first_query = query_starts[number * query_step];
    const long end = query_starts[(number + 1) * query_step];
    sequence.queries = end - sequence.first_query;
    if (sequence.first_query < 0 || end < sequence.first_query || end > queries) {
      report_three(wrong_starts, end, queries, sequence.first_query);
      sequence.queries = 0;
    }
    for (long i = 0; i < sequence.queries; ++i) of_query[sequence.first_query + i] = (int)number;
  }
  if (key_starts != 0) {
    sequence.first_key = key_starts[number * key_step];
    const long end = key_starts[(number + 1) * key_step];
    sequence.keys = end - sequence.first_key;
    if (sequence.first_key < 0 || end < sequence.first_key || end > keys) {
      report_three(wrong_starts, end, keys, sequence.first_key);
      sequence.keys = 0;
    }
    for (long i = 0; i < sequence.keys; ++i) of_key[sequence.first_key + i] = (int)number;
  }
  if (key_counts != 0) {
    const long there = key_starts != 0 ? sequence.keys : room;
    sequence.keys = key_counts[number * count_step];
    if (sequence.keys < 0 || sequence.keys > there) {
      report(wrong_counts, sequence.keys, there);
      sequence.keys = 0;
    }
  }
  sequence.keys = min(sequence.keys, most);
  sequences[number] = sequence;
}

// One query of one head.
typedef struct {
  long batch, head, row;  // in the arrays of queries
  long number;            // of its sequence; -1 for none
  long query, position;   // in the sequence, and among its keys
  long keys, begin, end;  // of which it sees some
  long scores;            // where its scores begin
} Row;

Row find_row(const Problem* problem, __global const Sequence* sequences, __global const int* of_query) {
  const long at = get_group_id(0) / problem->heads;
  Row row = {(problem->first_row + at) / problem->queries, get_group_id(0) % problem->heads,
             (problem->first_row + at) % problem->queries};
  row.number = of_query != 0 ? of_query[row.row] : row.batch;
  row.scores = get_group_id(0) * problem->room;
  if (row.number < 0) return row;
  const Sequence sequence = sequences[row.number];
  row.query = row.row - sequence.first_query;
  row.keys = sequence.keys;
  row.position = problem->top_left ? row.query : row.query + sequence.keys - sequence.queries;
  row.end = row.keys;
  if (problem->causal) row.end = min(row.end, row.position + 1);
  if (problem->window_right >= 0 && problem->window_right < row.keys - row.position) {
    row.end = min(row.end, row.position + problem->window_right + 1);
  }
  row.end = max(row.end, 0L);
  if (problem->window_left >= 0) {
    row.begin = row.position - min(problem->window_left, sequence.keys + sequence.queries);
  }
  row.begin = clamp(row.begin, 0L, row.end);
  return row;
}

long offset_of(Row row, Strides strides) {
  return row.batch * strides.batch + row.head * strides.head + row.row * strides.row;
}

// Where a key or value lies in its array; -1 where the block table is wrong.
long find_key(const Problem* problem, Row row, long first_key, long key, Strides strides, __global const int* table,
              __global Fault* wrong_blocks) {
  const long head = row.head / (problem->heads / problem->kv_heads) * strides.head;
  if (table == 0) {
    const long batch = problem->has_key_starts ? 0 : row.number;
    return batch * strides.batch + head + (first_key + key) * strides.row;
  }
  const long block = table[row.number * problem->table_row + key / problem->block_size * problem->table_column];
  if (block < 0 || block >= problem->blocks) {
    report(wrong_blocks, block, problem->blocks);
    return -1;
  }
  return block * strides.batch + head + key % problem->block_size * strides.row;
}

// What dropout makes of a score's probability.
T keep(const Problem* problem, Row row, long key, T factor, __global const ulong* state) {
  if (problem->kept > 0xffffffffUL) return 1;
  const long line = (row.batch * problem->heads + row.head) * problem->queries + row.row;
  const ulong element = line * problem->drawn_keys + key;
  const ulong seed = state != 0 ? state[0] : problem->seed;
  const ulong offset = problem->offset + (state != 0 ? state[1] : 0);
  const uint4 lanes = philox_block(seed, offset + element / 4);
  const uint of[4] = {lanes.x, lanes.y, lanes.z, lanes.w};
  return of[element % 4] < problem->kept ? factor : (T)0;
}

// A score from a product: capped, and changed by its distance and the mask. The derivative is the cap's.
typedef struct {
  T score, derivative;
} Score;

Score finish_score(T product, T soft_cap, Row row, long key, T slope, FOUND(MASK) * mask, Strides mask_strides) {
  Score result = {product, 1};
  if (soft_cap != 0) {
    const T part = tanh(product / soft_cap);
    result.score = soft_cap * part;
    result.derivative = 1 - part * part;
  }
  result.score -= slope * (T)abs(row.position - key);
#if defined(TRUTH)
  if (mask[offset_of(row, mask_strides) + key * mask_strides.element] == 0) result.score = -INFINITY;
#elif defined(ADDED)
  result.score += LOAD(MASK, mask, offset_of(row, mask_strides) + key * mask_strides.element);
#endif
  return result;
}

#define COMMON                                                                                                 \
  Problem problem, T scale, T soft_cap, T factor, __global const ulong *state, __global const Sequence *sequences, \
      __global const int *of_query, __global T *scores, FOUND(DTYPE) * q, Strides q_strides, FOUND(KEYS) * k,  \
      Strides k_strides, FOUND(VALUES) * v, Strides v_strides, FOUND(MASK) * mask, Strides mask_strides,       \
      __global const float *slopes, Pair slope_strides

#ifdef FORWARD

__kernel void attend(COMMON, __global STORAGE(DTYPE) * out, Strides out_strides, __global T* logsumexp,
                     Strides logsumexp_strides, __global const int* table, __global const float* k_scale,
                     Pair k_scale_strides, __global const float* v_scale, Pair v_scale_strides,
                     FOUND(SINKS) * sinks, long sink_stride, __global Fault* wrong_blocks) {
  __local ACC shares[TEAM];
  const Row row = find_row(&problem, sequences, of_query);
  const long number = max(row.number, 0L);
  const long first_key = sequences[number].first_key;
  const long kv_head = row.head / (problem.heads / problem.kv_heads);
  const T slope = slopes != 0 ? slopes[number * slope_strides.sequence + row.head * slope_strides.head] : 0;
  if (k_scale != 0) scale *= k_scale[number * k_scale_strides.sequence + kv_head * k_scale_strides.head];
  q += offset_of(row, q_strides);
  scores += row.scores;
  ACC share = -INFINITY;
  for (long key = row.begin + get_local_id(0); key < row.end; key += TEAM) {
    const long at = find_key(&problem, row, first_key, key, k_strides, table, wrong_blocks);
    T product = 0;
    for (long i = 0; at >= 0 && i < problem.width; ++i) {
      product += LOAD(DTYPE, q, i * q_strides.element) * LOAD(KEYS, k, at + i * k_strides.element);
    }
    const T score = finish_score(scale * product, soft_cap, row, key, slope, mask, mask_strides).score;
    scores[key] = score;
    share = greater_of(share, score);
  }
  T greatest = greatest_of_team(share, shares);
  const T sink = sinks != 0 ? LOAD(SINKS, sinks, row.head * sink_stride) : (T)-INFINITY;
  greatest = greater_of(greatest, sink);
  const bool sees_nothing = greatest == (T)-INFINITY;
  share = 0;
  for (long key = row.begin + get_local_id(0); key < row.end; key += TEAM) {
    const T power = sees_nothing ? (T)0 : exp(scores[key] - greatest);
    scores[key] = power;
    share += power;
  }
  ACC sum = sum_of_team(share, shares);
  if (!sees_nothing) sum += exp((ACC)(sink - greatest));
  const T whole = sees_nothing ? (T)0 : (T)(1 / sum);
  for (long key = row.begin + get_local_id(0); key < row.end; key += TEAM) {
    scores[key] *= whole * keep(&problem, row, key, factor, state);
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  const bool is_there = row.number >= 0;
  const T by = v_scale != 0 ? v_scale[number * v_scale_strides.sequence + kv_head * v_scale_strides.head] : 1;
  for (long i = get_local_id(0); is_there && i < problem.value_width; i += TEAM) {
    T result = 0;
    for (long key = row.begin; key < row.end; ++key) {
      const long at = find_key(&problem, row, first_key, key, v_strides, table, wrong_blocks);
      if (at >= 0) result += scores[key] * LOAD(VALUES, v, at + i * v_strides.element);
    }
    STORE(DTYPE, out, offset_of(row, out_strides) + i * out_strides.element, by * result);
  }
  if (is_there && get_local_id(0) == 0) {
    logsumexp[offset_of(row, logsumexp_strides)] = sees_nothing ? (T)INFINITY : (T)(greatest + log(sum));
  }
}

#else

// Leaves the probabilities that values were multiplied by, and the gradients of the products of queries and keys.
__kernel void differentiate(COMMON, __global T* gradients, FOUND(DTYPE) * out, Strides out_strides,
                            FOUND(DTYPE) * grad_out, Strides grad_out_strides, __global const T* logsumexp,
                            Strides logsumexp_strides, __global STORAGE(DTYPE) * grad_q, Strides grad_q_strides,
                            __global STORAGE(DTYPE) * grad_mask, Strides grad_mask_strides) {
  __local ACC shares[TEAM];
  const Row row = find_row(&problem, sequences, of_query);
  const bool is_there = row.number >= 0;
  const long number = max(row.number, 0L);
  const long first_key = sequences[number].first_key;
  const T slope = slopes != 0 ? slopes[number * slope_strides.sequence + row.head * slope_strides.head] : 0;
  q += offset_of(row, q_strides);
  out += offset_of(row, out_strides);
  grad_out += offset_of(row, grad_out_strides);
  grad_mask += offset_of(row, grad_mask_strides);
  scores += row.scores;
  gradients += row.scores;
  ACC share = 0;
  FOR_SHARE(i, is_there ? problem.value_width : 0) {
    share += (ACC)LOAD(DTYPE, out, i * out_strides.element) * LOAD(DTYPE, grad_out, i * grad_out_strides.element);
  }
  const T product = sum_of_team(share, shares);
  const T logarithm = is_there ? logsumexp[offset_of(row, logsumexp_strides)] : (T)0;
  FOR_SHARE(key, row.keys) {
    const bool is_seen = key >= row.begin && key < row.end;
    T probability = 0, gradient = 0, derivative = 1;
    const T kept = keep(&problem, row, key, factor, state);
    if (is_seen) {
      const long k_at = find_key(&problem, row, first_key, key, k_strides, 0, 0);
      const long v_at = find_key(&problem, row, first_key, key, v_strides, 0, 0);
      T score = 0, along = 0;
      for (long i = 0; i < problem.width; ++i) {
        score += LOAD(DTYPE, q, i * q_strides.element) * LOAD(KEYS, k, k_at + i * k_strides.element);
      }
      for (long i = 0; i < problem.value_width; ++i) {
        along += LOAD(DTYPE, grad_out, i * grad_out_strides.element) * LOAD(VALUES, v, v_at + i * v_strides.element);
      }
      const Score finished = finish_score(scale * score, soft_cap, row, key, slope, mask, mask_strides);
      probability = exp(finished.score - logarithm);
      gradient = probability * (along * kept - product);
      derivative = finished.derivative;
    }
#ifdef GRAD_MASK
    STORE(DTYPE, grad_mask, key * grad_mask_strides.element, gradient);
#endif
    scores[key] = probability * kept;
    gradients[key] = gradient * derivative;
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  FOR_SHARE(i, is_there ? problem.width : 0) {
    T result = 0;
    for (long key = row.begin; key < row.end; ++key) {
      const long at = find_key(&problem, row, first_key, key, k_strides, 0, 0);
      result += gradients[key] * LOAD(KEYS, k, at + i * k_strides.element);
    }
    STORE(DTYPE, grad_q, offset_of(row, grad_q_strides) + i * grad_q_strides.element, scale * result);
  }
}

// factors^T @ rows, of the rows that are worked on: the gradients of keys, or of values. A work item for each element,
// whose sums wait in `sums` until all rows have been there.
__kernel void add_up(long count, Problem problem, T scale, __global const Sequence* sequences,
                     __global const int* of_key, __global const T* factors, FOUND(DTYPE) * rows, Strides rows_strides,
                     __global T* sums, long keys, long width, int is_first, int is_last,
                     __global STORAGE(DTYPE) * grad, Strides grad_strides) {
  const long id = get_global_id(0);
  if (id >= count) return;
  const long i = id % width;
  const long at = id / width % keys;
  const long head = id / width / keys % problem.kv_heads;
  const long batch = id / width / keys / problem.kv_heads;
  const long number = of_key != 0 ? of_key[at] : batch;
  if (number < 0) return;
  const Sequence sequence = sequences[number];
  const long key = at - sequence.first_key;
  const long group = problem.heads / problem.kv_heads;
  // The sequence's queries, as rows over all batches.
  const long start = sequence.first_query + (problem.has_query_starts ? 0 : number * problem.queries);
  const long begin = max(start, problem.first_row);
  const long end = min(start + sequence.queries, problem.first_row + problem.rows);
  T sum = is_first ? (T)0 : sums[id];
  for (long row = begin; row < end; ++row) {
    for (long h = head * group; h < (head + 1) * group; ++h) {
      const long offset = row / problem.queries * rows_strides.batch + h * rows_strides.head +
                          row % problem.queries * rows_strides.row;
      sum += factors[((row - problem.first_row) * problem.heads + h) * problem.room + key] *
             LOAD(DTYPE, rows, offset + i * rows_strides.element);
    }
  }
  if (!is_last) {
    sums[id] = sum;
    return;
  }
  grad += batch * grad_strides.batch + head * grad_strides.head + at * grad_strides.row;
  STORE(DTYPE, grad, i * grad_strides.element, scale * sum);
}

#endif
