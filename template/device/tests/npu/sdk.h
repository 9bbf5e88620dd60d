// The SDK of an NPU in the small, as a vendor's might be: buffers by handle, commands in lists, fences that are used
// once, kernels that a compiler makes. What is behind it is threads and host memory; who uses it cannot tell.
//
// Functions of handles that are not valid do what they like. All may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tiny {

inline constexpr size_t kMemory = size_t{256} << 20;
// Copies between the host and the device are of whole lines that begin at a line, on both sides.
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

// Null where there is no room. The device's, or the host's: page-locked, and known to the host at host_address.
Buffer create_buffer(size_t lines);
Buffer create_host_buffer(size_t lines);
std::byte* host_address(Buffer buffer);
void destroy_buffer(Buffer buffer);
size_t memory_in_use();

// --- Kernels ---

// What a kernel does with its arrays, each in row-major order, and with its parameters. Where others have a language,
// this SDK has functions.
using Source = void (*)(std::span<std::byte* const> arrays, const void* parameters);

// Takes 5 ms. A kernel is for arrays of certain types; their sizes are among its parameters.
Kernel compile(Source source);
// When the lists that it is in have run.
void destroy_kernel(Kernel kernel);
uint64_t compilations();

// --- Commands ---

List begin_list(int queue);
void add_kernel(List list, Kernel kernel, std::vector<Place> arrays, std::shared_ptr<const void> parameters);
void add_copy(List list, Place to, Place from, size_t bytes);

// Within the device: elements of one, two, four, eight or sixteen bytes, whose strides are in elements.
struct Move {
  size_t element_bytes;
  int rank;
  int64_t sizes[kMaxRank];
  int64_t to_strides[kMaxRank];
  int64_t from_strides[kMaxRank];
};
void add_move(List list, Place to, Place from, const Move& move);
// The time at which the commands before it are done, in nanoseconds of the device's clock.
void add_time(List list, std::shared_ptr<uint64_t> time);

// --- Queues: a list runs behind those of its queue and behind the fences' ---

// Takes the list, and gives its fence.
Fence submit(int queue, List list, const std::vector<Fence>& behind);
bool is_signalled(Fence fence);
void wait(Fence fence);
void destroy_fence(Fence fence);
// A fence that no list signals, but the host.
Fence create_fence();
void signal(Fence fence);

}  // namespace tiny
