#pragma once

// For a function whose loops should use the widest vectors of the processor. The function is
// compiled for processors with AVX2 too, and the code is chosen at run time. All functions that it
// calls must be inlined. It must be static or in an unnamed namespace: g++ 13 and 14 crash on
// clones of other functions.
//
// Not with ThreadSanitizer: the code that chooses would call the sanitizer before it is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif
