// A small example of a vendor's SDK for an NPU: buffers are handles, commands are in lists, fences
// are used once, and kernels are compiled. Threads and host memory implement it.
//
// Calls with invalid handles are undefined. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tiny {

inline constexpr size_t kMemory = size_t{256} << 20;
// Copies between the host and the device are whole lines, aligned to lines on both sides.
inline constexpr size_t kLine = 64;
inline constexpr int kQueues = 16;
inline constexpr int kMaxRank = 16;

using Buffer = struct BufferObject*;
using Kernel = struct KernelObject*;
using List = struct ListObject*;
using Fence = struct FenceObject*;

// A place in a buffer.
struct Place {
  Buffer buffer;
  uint64_t offset;  // in bytes
};

// --- Memory ---

// Return null if there is no memory. The memory is on the device, or page-locked on the host, where
// its address is host_address.
Buffer create_buffer(size_t lines);
Buffer create_host_buffer(size_t lines);
std::byte* host_address(Buffer buffer);
void destroy_buffer(Buffer buffer);
size_t memory_in_use();

// --- Kernels ---

// The source of a kernel: a function of row-major arrays and parameters, in place of a language.
using Source = void (*)(std::span<std::byte* const> arrays, const void* parameters);

// Takes 5 ms. A kernel is for arrays of given types. Their sizes are among its parameters.
Kernel compile(Source source);
// Only after the lists that contain the kernel have run.
void destroy_kernel(Kernel kernel);
uint64_t compilations();

// --- Commands ---

List begin_list(int queue);
void add_kernel(List list, Kernel kernel, std::vector<Place> arrays, std::shared_ptr<const void> parameters);
void add_copy(List list, Place to, Place from, size_t bytes);

// A copy within the device of elements of 1, 2, 4, 8 or 16 bytes. Strides are in elements.
struct Move {
  size_t element_bytes;
  int rank;
  int64_t sizes[kMaxRank];
  int64_t to_strides[kMaxRank];
  int64_t from_strides[kMaxRank];
};
void add_move(List list, Place to, Place from, const Move& move);
// Writes the time at which the previous commands are done, in nanoseconds of the device's clock.
void add_time(List list, std::shared_ptr<uint64_t> time);

// --- Queues: a list runs after the earlier lists of its queue and those of the fences ---

// Takes ownership of the list, and returns its fence.
Fence submit(int queue, List list, const std::vector<Fence>& behind);
bool is_signalled(Fence fence);
void wait(Fence fence);
void destroy_fence(Fence fence);
// A fence that the host signals.
Fence create_fence();
void signal(Fence fence);

}  // namespace tiny
