// What page/data.js calls of 7-Zip's decoder of PPMd7. On Debian 12 decode.wasm is made of it by
//
//   apt-get install clang-14 lld-14 && apt-get source 7zip  # 26.01
//   mkdir empty && touch empty/errno.h empty/stdlib.h empty/string.h
//   clang-14 --target=wasm32 -O2 -mbulk-memory -nostdlib -Wno-implicit-function-declaration \
//     -isystem empty -I 7zip-*/C -Wl,--no-entry,--strip-all -o decode.wasm \
//     decode.c 7zip-*/C/Ppmd7.c 7zip-*/C/Ppmd7Dec.c
//
// Nothing else of a C library is needed: the processor has instructions to fill and to copy memory.

#include "Ppmd7.h"

#define EXPORT(name) __attribute__((export_name(#name)))

enum { kPage = 65536, kAlignment = 16 };

// Begins where the data and the stack end that the linker has placed.
extern Byte __heap_base;
static Byte* unused = &__heap_base;

// Returns `size` bytes that are never given back, or NULL where the browser has no more memory.
EXPORT(allocate) void* allocate(size_t size) {
  Byte* const found = unused;
  const size_t end = ((size_t)found + size + kAlignment - 1) & -(size_t)kAlignment;
  const size_t there = __builtin_wasm_memory_size(0);
  const size_t needed = (end + kPage - 1) / kPage;
  if (needed > there && __builtin_wasm_memory_grow(0, needed - there) == (size_t)-1) return NULL;
  unused = (Byte*)end;
  return found;
}

static void* allocate_model(ISzAllocPtr self, size_t size) {
  (void)self;
  return allocate(size);
}

static void free_model(ISzAllocPtr self, void* address) {
  (void)self;
  (void)address;
}

typedef struct {
  IByteIn interface;
  const Byte *next, *end;
} Input;

static Byte read_byte(IByteInPtr self) {
  Input* const input = (Input*)self;
  return input->next == input->end ? 0 : *input->next++;
}

// Decodes `size` bytes into `output`, with a model of `order` in `memory` bytes as they were encoded
// with. Returns how many bytes there are: fewer where the input is no such stream, or memory lacks.
EXPORT(decode)
size_t decode(const Byte* bytes, size_t length, Byte* output, size_t size, unsigned order, UInt32 memory) {
  static CPpmd7 model;
  const ISzAlloc allocator = {allocate_model, free_model};
  Input input = {{read_byte}, bytes, bytes + length};
  Ppmd7_Construct(&model);
  if (!Ppmd7_Alloc(&model, memory, &allocator)) return 0;
  model.rc.dec.Stream = &input.interface;
  if (!Ppmd7z_RangeDec_Init(&model.rc.dec)) return 0;
  Ppmd7_Init(&model, order);
  for (size_t at = 0; at < size; ++at) {
    const int symbol = Ppmd7z_DecodeSymbol(&model);
    if (symbol < 0) return at;
    output[at] = (Byte)symbol;
  }
  return size;
}
