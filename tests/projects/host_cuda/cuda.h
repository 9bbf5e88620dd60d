// The part of CUDA C++ that the texts of device/shared/text use, for a host compiler. The threads of a block are host
// threads if the kernel has barriers. Blocks run one after another, so a shared array is a static one.
#pragma once

#include <math.h>

#include <array>
#include <barrier>
#include <bit>
#include <cstddef>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

struct Index {
  unsigned x = 1, y = 1, z = 1;
};
using Size = std::array<unsigned, 3>;

inline thread_local Index threadIdx, blockIdx;
inline Index blockDim, gridDim;
inline std::barrier<>* block_barrier = nullptr;

#define __global__
#define __shared__ static
#define __syncthreads() block_barrier->arrive_and_wait()

inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline int atomicCAS(int* at, int expected, int value) { return __sync_val_compare_and_swap(at, expected, value); }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return a < b ? a : b;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a > b ? a : b;
}
inline double sinpi(double x) { return sin(M_PI * (x - 2 * floor(x / 2))); }

inline Index at(unsigned place, Index size) {
  return {place % size.x, place / size.x % size.y, place / size.x / size.y};
}

// Runs a kernel. `arguments` has the address of each argument.
template <class... Parameters>
void run(void (*kernel)(Parameters...), Size grid, Size block, bool has_barriers, void** arguments) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  const unsigned members = block[0] * block[1] * block[2];
  const unsigned threads = has_barriers ? members : 1;
  std::barrier<> barrier(threads);
  block_barrier = &barrier;
  const auto work = [&](unsigned first) {
    for (unsigned group = 0; group < grid[0] * grid[1] * grid[2]; ++group) {
      blockIdx = at(group, gridDim);
      for (unsigned member = first; member < members; member += threads) {
        threadIdx = at(member, blockDim);
        [&]<size_t... kPlace>(std::index_sequence<kPlace...>) {
          kernel(*static_cast<std::remove_reference_t<Parameters>*>(arguments[kPlace])...);
        }(std::index_sequence_for<Parameters...>());
      }
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
}
