#pragma once

// Before a function whose loops are worth the machine's widest vectors: compiled for processors with AVX2 too, the
// processor at hand deciding which code runs. What the function calls has to be inlined, and the function has to be one
// of a single file (static, or in an unnamed namespace): g++ 13 and 14 crash on clones of others.
//
// Not under ThreadSanitizer: GCC makes the code that chooses call the sanitizer, which is not loaded yet when it runs.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif
