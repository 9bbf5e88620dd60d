// Packs the text of the page, and unpacks it. Each character is coded as the bits of its Huffman code, and each bit by
// an arithmetic coder with a probability that a neural mixer makes of what many contexts have seen before. build.py
// packs by the very packer.wasm that the page unpacks by, and all is integers: both compute the same probabilities. An
// instance packs or unpacks once. On Debian 12 packer.wasm is made by
//
//   apt-get install clang-14 lld-14
//   clang-14 --target=wasm32 -std=c17 -O2 -msimd128 -mbulk-memory -ffreestanding -nostdlib -Wall -Wextra \
//     -Wl,--no-entry,--strip-all -o packer.wasm packer.c

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((export_name(#name)))

enum {
  kPage = 1 << 16,
  kAlignment = 64,
  kSymbols = 1 << 12,  // Characters are below.
  kPadding = 16,       // Zeros ahead of the text, for contexts at its start.

  kContexts = 7,
  kMatches = 2,
  kInputs = (2 * (kContexts + kMatches) + 1 + 7) / 8 * 8,  // Eight fit into a register.
  kSlots = 1 << 22,
  kSlot = 16,  // A check, and the histories of the nodes of four bits.
  kSets = 3,
  kLengths = 48,  // Classes of lengths of a match.
  kStarts = 1 << 18,
};

// Begins where the data and the stack end that the linker has placed.
extern uint8_t __heap_base;
static uint8_t* unused = &__heap_base;

// Returns `size` zeros that are never given back, or NULL where there is no more memory.
EXPORT(allocate) void* allocate(size_t size) {
  uint8_t* const found = (uint8_t*)(((size_t)unused + kAlignment - 1) & -(size_t)kAlignment);
  const size_t end = (size_t)found + size;
  const size_t there = __builtin_wasm_memory_size(0);
  const size_t needed = (end + kPage - 1) / kPage;
  if (needed > there && __builtin_wasm_memory_grow(0, needed - there) == (size_t)-1) return NULL;
  unused = (uint8_t*)end;
  return found;
}

// Returns room for a text of `count` characters, after zeros that stand ahead of it.
EXPORT(allocate_text) uint16_t* allocate_text(size_t count) {
  uint16_t* const room = allocate((count + kPadding) * sizeof(uint16_t));
  return room ? room + kPadding : NULL;
}

static int limited(int value, int limit) { return value > limit ? limit : value < -limit ? -limit : value; }

static uint32_t hash(uint32_t a, uint32_t b) {
  uint32_t mixed = a * 0x2F0B4C47u + b * 0x9E3779B1u + 0x7F4A7C15u;
  mixed = (mixed ^ mixed >> 15) * 0x85EBCA6Bu;
  return mixed ^ mixed >> 13;
}

// ---- Probabilities, of 4096, and their logits, of 256

static int16_t logits[4096];
static uint16_t probabilities[4096];

static int probability(int logit) { return probabilities[logit + 2048]; }

static void fill_logits(void) {
  static const uint16_t points[] = {1,    2,    3,    6,    10,   16,   27,   45,   73,   120,  194,  310,
                                    488,  747,  1101, 1546, 2047, 2549, 2994, 3348, 3607, 3785, 3901, 3975,
                                    4024, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094, 4094};
  for (int at = 0; at < 4096; ++at) {
    const int part = at & 127;
    probabilities[at] = (points[at >> 7] * (128 - part) + points[(at >> 7) + 1] * part + 64) >> 7;
  }
  int next = 0;
  for (int logit = -2047; logit < 2048; ++logit) {
    while (next <= probability(logit)) logits[next++] = logit;
  }
  while (next < 4096) logits[next++] = 2047;
}

// A probability that follows bits: 22 bits of it, and 10 that count them, so that it moves less and less.
static uint16_t steps[256];

static void follow(uint32_t* followed, int bit, int limit) {
  const uint32_t count = *followed & 1023;
  const int32_t before = *followed >> 10;
  const int32_t step = ((bit << 22) - before) >> 3;
  *followed += (((uint32_t)step * steps[count]) & ~1023u) + (count < (uint32_t)limit);
}

// ---- Histories: how many zeros and ones a context has seen, and, if both, which was last

enum { kMostFew = 5, kMost = 40 };
static uint8_t following[256][2];
static uint32_t seen[kContexts][256];

static bool is_history(int zeros, int ones) {
  static const uint8_t limits[] = {kMost, 24, 12, 8, 6, 5};
  const int few = zeros < ones ? zeros : ones;
  return few <= kMostFew && zeros + ones - few <= limits[few];
}

static void fill_histories(void) {
  static uint8_t known[kMost + 2][kMost + 2][2];
  static uint8_t counts[256][2];
  int histories = 0;
  for (int total = 0; total <= kMost; ++total) {
    for (int ones = 0; ones <= total; ++ones) {
      const int zeros = total - ones;
      for (int last = 0; is_history(zeros, ones) && last < 2; ++last) {
        const bool same = last && (zeros == 0 || ones == 0);
        if (!same) {
          counts[histories][0] = zeros;
          counts[histories++][1] = ones;
        }
        known[zeros][ones][last] = histories - 1;
      }
    }
  }
  for (int at = 0; at < histories; ++at) {
    for (int bit = 0; bit < 2; ++bit) {
      int count[] = {counts[at][0], counts[at][1]};
      // Much of one bit says less once the other has come.
      const int other = count[!bit];
      count[!bit] = other < 6 ? other : other < 7 ? 5 : other < 10 ? 6 : 7;
      ++count[bit];
      while (!is_history(count[0], count[1])) --count[bit];
      following[at][bit] = known[count[0]][count[1]][bit];
    }
    const uint32_t zeros = counts[at][0], ones = counts[at][1];
    for (int context = 0; context < kContexts; ++context) {
      seen[context][at] = ((2 * ones + 1) << 22) / (2 * (zeros + ones + 1)) << 10;
    }
  }
}

// ---- The contexts of the next character, and where their histories are

static uint8_t* slots;
static uint8_t* slot[kContexts];
static uint32_t contexts[kContexts];

static const uint16_t* text;  // What is known of it ends at `position`.
static int32_t position;

// The part of the text that is like what was last: where its next character stands, and how long it is.
typedef struct {
  uint32_t* starts;
  int32_t at, length;
  uint32_t expected;  // The character and one more bit, 0 if there is none.
  uint32_t seen[kLengths][2];
  uint32_t* used;
} Match;
static Match matches[kMatches];

static void extend(Match* match, uint32_t key, int32_t least) {
  const bool goes_on = match->length > 0 && text[match->at] == text[position - 1];
  match->length = goes_on ? match->length + 1 : 0;
  ++match->at;
  uint32_t* const start = &match->starts[key % kStarts];
  if (!goes_on && *start > 0) {
    match->at = *start;
    while (match->length < 400 && match->length < match->at &&
           text[match->at - 1 - match->length] == text[position - 1 - match->length]) {
      ++match->length;
    }
    if (match->length < least) match->length = 0;
  }
  *start = position;
  match->expected = match->length ? text[match->at] | kSymbols : 0;
}

// What the words and the line say of the next character.
static struct {
  uint32_t word;
  uint32_t first, indent;
} line;

static void read_character(uint32_t character) {
  const bool letter = character >= 128 || (character | 32) - 'a' < 26 || character - '0' < 10 || character == '_';
  if (letter) {
    line.word = hash(line.word, character);
  } else if (character > 2 && line.word) {
    line.word = 0;
  }
  if (character == '\n') {
    line.first = line.indent = 0;
  } else if (!line.first) {
    if (character == ' ')
      ++line.indent;
    else
      line.first = character;
  }
}

static uint32_t length_class(int32_t length) {
  return length < 32 ? length : length < 64 ? 32 : length < 128 ? 33 : length < 256 ? 34 : 35;
}

static void find_contexts(void) {
  const uint16_t* const c = text + position;
  if (position) read_character(c[-1]);
  uint32_t orders[13] = {0};
  for (int order = 1; order <= 12; ++order) orders[order] = hash(orders[order - 1], c[-order] + 1u);
  if (position) {
    extend(&matches[0], orders[10], 8);
    extend(&matches[1], orders[5], 4);
  }
  const uint32_t found[kContexts] = {
      orders[3],
      orders[4],
      orders[6],
      hash(line.word, c[-1]),
      hash(hash(line.first, line.indent), c[-1]),
      hash(hash(line.first, line.indent), orders[2]),
      hash(hash(matches[1].expected, orders[2]), 1),
  };
  for (uint32_t at = 0; at < kContexts; ++at) contexts[at] = hash(found[at], at + 1);
}

// Finds each context's slot of the four bits that follow a node.
static void find_slots(uint32_t node) {
  // Those of one character are close to each other, for the processor to find their page once.
  const uint32_t part = (node * 5 & 63) << 2;
  const uint8_t check_part = node * 29;
  uint8_t found[kContexts];
  // The memory is read ahead of all comparisons, so that it is waited for once.
  for (int at = 0; at < kContexts; ++at) {
    slot[at] = slots + ((contexts[at] % kSlots) ^ part) * kSlot;
    found[at] = *slot[at];
  }
  for (int at = 0; at < kContexts; ++at) {
    const uint8_t check = (contexts[at] >> 24) + check_part;
    if (found[at] == check) continue;
    uint8_t* const first = slot[at];
    uint8_t* const second = slots + ((first - slots) ^ kSlot);
    uint8_t* const third = slots + ((first - slots) ^ 2 * kSlot);
    if (*second == check) {
      slot[at] = second;
    } else if (*third == check) {
      slot[at] = third;
    } else {
      // Its first history is short where little is lost.
      uint8_t* least = first;
      if (second[1] < least[1]) least = second;
      if (third[1] < least[1]) least = third;
      wasm_v128_store(least, wasm_i64x2_const(0, 0));
      *least = check;
      slot[at] = least;
    }
  }
}

// ---- The mixer: sets of weights for what contexts say, one row of each chosen by other contexts

static _Alignas(16) int16_t inputs[kInputs];
static _Alignas(16) int16_t weights[kSets][kSymbols][kInputs];
static int16_t* rows[kSets];
static int outputs[kSets];
static int32_t final_weights[kSymbols][kSets];
static uint16_t corrections[kSymbols][24];

static int weighted(const int16_t* row) {
  v128_t sum = wasm_i64x2_const(0, 0);
  for (int at = 0; at < kInputs; at += 8) {
    const v128_t products = wasm_i32x4_dot_i16x8(wasm_v128_load(inputs + at), wasm_v128_load(row + at));
    sum = wasm_i32x4_add(sum, wasm_i32x4_shr(products, 4));
  }
  const int total = wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1) +
                    wasm_i32x4_extract_lane(sum, 2) + wasm_i32x4_extract_lane(sum, 3);
  return limited(total >> 13, 2047);
}

static void train(int16_t* row, int error) {
  const v128_t step = wasm_i16x8_splat(limited(error, 32767));
  for (int at = 0; at < kInputs; at += 8) {
    const v128_t change = wasm_i16x8_q15mulr_sat(wasm_v128_load(inputs + at), step);
    wasm_v128_store(row + at, wasm_i16x8_add_sat(wasm_v128_load(row + at), change));
  }
}

// ---- The arithmetic coder

static bool packing;
static uint32_t low, high = -1u, coded;
static uint8_t* bytes;
static const uint8_t* bytes_end;

static uint32_t next_byte(void) { return bytes == bytes_end ? 0 : *bytes++; }

// Writes or reads a bit whose probability to be 1 is given, of 65536.
static int code(int bit, uint32_t one) {
  const uint32_t middle = low + (uint32_t)((uint64_t)(high - low) * one >> 16);
  if (!packing) bit = coded <= middle;
  if (bit)
    high = middle;
  else
    low = middle + 1;
  while ((low ^ high) >> 24 == 0) {
    if (packing)
      *bytes++ = high >> 24;
    else
      coded = coded << 8 | next_byte();
    low <<= 8;
    high = high << 8 | 255;
  }
  return bit;
}

// ---- The Huffman code

static uint32_t lengths[kSymbols], codes[kSymbols];
static uint16_t children[kSymbols][2];
static uint16_t leaves[kSymbols][2];

// Gives each symbol of the text the length of its code: below 32 where the text has less than five million characters.
static void measure(const uint16_t* symbols, size_t count) {
  static uint32_t weight[2 * kSymbols], parent[2 * kSymbols];
  for (size_t at = 0; at < count; ++at) ++weight[symbols[at]];
  int last = kSymbols;
  for (;; ++last) {
    uint32_t least[2] = {0, 0};
    int pair[2] = {-1, -1};
    for (int at = 0; at < last; ++at) {
      if (!weight[at] || parent[at]) continue;
      if (pair[0] < 0 || weight[at] < least[0]) {
        least[1] = least[0], pair[1] = pair[0];
        least[0] = weight[at], pair[0] = at;
      } else if (pair[1] < 0 || weight[at] < least[1]) {
        least[1] = weight[at], pair[1] = at;
      }
    }
    if (pair[1] < 0) break;
    parent[pair[0]] = parent[pair[1]] = last;
    weight[last] = least[0] + least[1];
  }
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    for (int at = symbol; parent[at]; at = parent[at]) ++lengths[symbol];
    // The only symbol there is.
    if (weight[symbol] && !lengths[symbol]) lengths[symbol] = 1;
  }
}

// Codes the lengths themselves, each by those before.
static void code_lengths(void) {
  static uint16_t ones[32][32];
  uint32_t before = 0;
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    uint32_t node = 1;
    for (int at = 4; at >= 0; --at) {
      uint16_t* const one = &ones[before][node];
      if (!*one) *one = 1 << 15;
      const int bit = code(lengths[symbol] >> at & 1, *one);
      *one += ((bit << 16) - bit - *one) >> 4;
      if (*one < 64) *one = 64;
      node = node * 2 + bit;
    }
    before = lengths[symbol] = node & 31;
  }
}

static void fill_codes(void) {
  uint32_t next = 0, nodes = 1;
  for (uint32_t length = 1; length < 32; ++length, next <<= 1) {
    for (uint32_t symbol = 0; symbol < kSymbols; ++symbol) {
      if (lengths[symbol] != length) continue;
      codes[symbol] = next++;
      uint32_t node = 0;
      for (uint32_t left = length - 1; left > 0; --left) {
        uint16_t* const child = &children[node][codes[symbol] >> left & 1];
        if (!*child) *child = nodes++ % kSymbols;
        node = *child;
      }
      leaves[node][codes[symbol] & 1] = symbol + 1;
    }
  }
}

// ---- A bit

static void listen(int at, uint32_t said, int scale) {
  const int one = said >> 20;
  inputs[at] = logits[one] * 4;
  inputs[at + 1] = (one - 2048) * scale;
}

// Makes inputs of what contexts and matches say of the bit at a node of the Huffman code, which `depth` bits have led
// to.
static void listen_to_all(uint32_t depth, uint32_t path, uint32_t within) {
  for (int at = 0; at < kContexts; ++at) {
    const uint8_t history = slot[at][within];
    if (history)
      listen(2 * at, seen[at][history], 2);
    else
      inputs[2 * at] = inputs[2 * at + 1] = 0;
  }
  for (int at = 0; at < kMatches; ++at) {
    Match* const match = &matches[at];
    const uint32_t symbol = match->expected % kSymbols;
    match->used = NULL;
    inputs[2 * (kContexts + at)] = inputs[2 * (kContexts + at) + 1] = 0;
    if (!match->expected) continue;
    if (depth >= lengths[symbol] || codes[symbol] >> (lengths[symbol] - depth) != path) {
      match->expected = match->length = 0;
      continue;
    }
    const uint32_t next = codes[symbol] >> (lengths[symbol] - depth - 1) & 1;
    match->used = &match->seen[length_class(match->length)][next];
    listen(2 * (kContexts + at), *match->used, 4);
  }
  inputs[2 * (kContexts + kMatches)] = 1024;
}

// Tells those that were listened to which bit it was.
static void tell_all(int bit, uint32_t within) {
  for (int at = 0; at < kContexts; ++at) {
    uint8_t* const history = &slot[at][within];
    follow(&seen[at][*history], bit, 255);
    *history = following[*history][bit];
  }
  for (int at = 0; at < kMatches; ++at) {
    if (matches[at].used) follow(matches[at].used, bit, 255);
  }
}

static int code_bit(int bit, uint32_t node, uint32_t depth, uint32_t path, uint32_t within) {
  listen_to_all(depth, path, within);
  const uint32_t chosen[kSets] = {
      node,
      length_class(matches[0].length) * 16 + (depth < 15 ? depth : 15),
      text[position - 1],
  };
  int32_t sum = 0;
  for (int set = 0; set < kSets; ++set) {
    rows[set] = weights[set][chosen[set]];
    outputs[set] = weighted(rows[set]);
    sum += outputs[set] * final_weights[node][set] >> 8;
  }
  const int logit = limited(sum >> 8, 2047);
  const int mixed = probability(logit);
  // What has come of such a probability where such a character was expected.
  const uint32_t place = (uint32_t)(logit + 2304) * 64 / 3;
  uint16_t* const correction = &corrections[matches[0].expected % kSymbols ^ node][place >> 12];
  const uint32_t part = place & 4095;
  const uint32_t corrected = (correction[0] * (4096 - part) + correction[1] * part) >> 12;
  bit = code(bit, limited(((int)(mixed * 16 + corrected) >> 1) - 32768, 32768 - 24) + 32768);

  correction[part >> 11] += ((bit << 16) - bit - correction[part >> 11]) >> 6;
  for (int set = 0; set < kSets; ++set) {
    train(rows[set], ((bit << 12) - probability(outputs[set])) * 3 >> 2);
    final_weights[node][set] += (outputs[set] * ((bit << 12) - mixed) + 0x1000) >> 13;
  }
  tell_all(bit, within);
  return bit;
}

// Not inlined: browsers optimize a function for its next call, and code_text() is called once.
__attribute__((noinline)) static uint16_t code_character(uint32_t symbol) {
  uint32_t node = 0, path = 0, within = 1;
  find_contexts();
  for (uint32_t depth = 0;; ++depth) {
    if (depth % 4 == 0) {
      find_slots(node);
      within = 1;
    }
    const int bit =
        code_bit(packing ? codes[symbol] >> (lengths[symbol] - depth - 1) & 1 : 0, node, depth, path, within);
    if (leaves[node][bit]) return leaves[node][bit] - 1;
    node = children[node][bit];
    // No code begins so: it is no packed text.
    if (!node) return 0;
    path = path * 2 + bit;
    within = within * 2 + bit;
  }
}

// Codes all characters of a text.
static bool code_text(uint16_t* all, size_t count) {
  slots = allocate((size_t)kSlots * kSlot);
  if (!slots) return false;
  fill_logits();
  fill_histories();
  for (int at = 0; at < 256; ++at) steps[at] = 65536 / (8 * at + 13);
  for (int at = 0; at < kMatches; ++at) {
    matches[at].starts = allocate(kStarts * sizeof(uint32_t));
    if (!matches[at].starts) return false;
    for (int length = 0; length < kLengths; ++length) {
      matches[at].seen[length][0] = 1u << 29;
      matches[at].seen[length][1] = 7u << 29;
    }
  }
  for (int row = 0; row < kSymbols; ++row) {
    for (int set = 0; set < kSets; ++set) {
      for (int at = 0; at < kInputs; ++at) weights[set][row][at] = at % 2 ? 1500 : 7000;
      final_weights[row][set] = 65536 / kSets;
    }
  }
  for (int context = 0; context < kSymbols; ++context) {
    for (int at = 0; at < 24; ++at) corrections[context][at] = probability(limited((at - 12) * 192, 2047)) * 16;
  }
  text = all;
  code_lengths();
  fill_codes();
  for (position = 0; position < (int32_t)count; ++position) all[position] = code_character(all[position]);
  return true;
}

// Packs `count` characters of allocate_text() into `output`. Returns how many bytes there are then.
EXPORT(pack) size_t pack(uint16_t* characters, size_t count, uint8_t* output) {
  packing = true;
  bytes = output;
  measure(characters, count);
  if (!code_text(characters, count)) return 0;
  // So many bits tell the last interval from all others.
  for (int at = 0; at < 4; ++at, low <<= 8) *bytes++ = low >> 24;
  return bytes - output;
}

// Unpacks `count` characters into what allocate_text() has returned.
EXPORT(unpack) bool unpack(const uint8_t* packed, size_t length, uint16_t* characters, size_t count) {
  bytes = (uint8_t*)packed;
  bytes_end = packed + length;
  for (int at = 0; at < 4; ++at) coded = coded << 8 | next_byte();
  return code_text(characters, count);
}
