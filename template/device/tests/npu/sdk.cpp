// The NPU itself: a thread for each queue, and host memory in place of device memory.
#include "sdk.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace tiny {

struct BufferObject {
  size_t bytes;
  bool is_host;
  std::unique_ptr<std::byte[]> storage;  // its lines begin at `lines`
  std::byte* lines;
};

struct KernelObject {
  Source source;
};

struct ListObject {
  std::vector<std::function<void()>> commands;
};

struct FenceObject {
  std::atomic<bool> signalled{false};
};

namespace {

struct Submitted {
  std::unique_ptr<ListObject> list;
  Fence fence;
  std::vector<Fence> behind;
};

// All state for which threads wait, under one lock.
struct Npu {
  std::mutex mutex;
  std::condition_variable changed;
  std::array<std::deque<Submitted>, kQueues> queues;
  std::array<bool, kQueues> started{};
  std::atomic<size_t> in_use{0};
  std::atomic<uint64_t> compilations{0};

  void run(size_t queue) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return !queues[queue].empty(); });
      Submitted next = std::move(queues[queue].front());
      queues[queue].pop_front();
      for (const Fence fence : next.behind) changed.wait(lock, [&] { return fence->signalled.load(); });
      lock.unlock();
      for (const auto& command : next.list->commands) command();
      next.list.reset();
      lock.lock();
      next.fence->signalled = true;
      changed.notify_all();
    }
  }
};

// Leaked, because the queues' threads may run while the process exits.
Npu& npu() {
  static Npu& result = *new Npu;
  return result;
}

Buffer create(size_t lines, bool is_host) {
  const size_t bytes = lines * kLine;
  auto storage = std::make_unique_for_overwrite<std::byte[]>(bytes + kLine);
  const auto first = reinterpret_cast<uintptr_t>(storage.get());
  std::byte* const begin = storage.get() + (kLine - first % kLine) % kLine;
  return new BufferObject{bytes, is_host, std::move(storage), begin};
}

std::byte* at(Place place) { return place.buffer->lines + place.offset; }

template <class Element>
void move_run(int64_t count, std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride) {
  auto* out = reinterpret_cast<Element*>(to);
  const auto* in = reinterpret_cast<const Element*>(from);
  for (int64_t i = 0; i < count; ++i) out[i * to_stride] = in[i * from_stride];
}

struct Wide {
  uint64_t low, high;
};

void move_dimension(const Move& move, int dim, std::byte* to, const std::byte* from) {
  const auto bytes = static_cast<int64_t>(move.element_bytes);
  if (dim >= move.rank) {
    std::memcpy(to, from, move.element_bytes);
    return;
  }
  const int64_t count = move.sizes[dim], to_stride = move.to_strides[dim], from_stride = move.from_strides[dim];
  if (dim + 1 < move.rank) {
    for (int64_t i = 0; i < count; ++i) {
      move_dimension(move, dim + 1, to + i * to_stride * bytes, from + i * from_stride * bytes);
    }
  } else if (to_stride == 1 && from_stride == 1) {
    std::memmove(to, from, static_cast<size_t>(count * bytes));
  } else {
    const auto run = bytes == 1   ? move_run<uint8_t>
                     : bytes == 2 ? move_run<uint16_t>
                     : bytes == 4 ? move_run<uint32_t>
                     : bytes == 8 ? move_run<uint64_t>
                                  : move_run<Wide>;
    run(count, to, to_stride, from, from_stride);
  }
}

}  // namespace

Buffer create_buffer(size_t lines) {
  if (lines > kMemory / kLine) return nullptr;
  size_t before = npu().in_use;
  do {
    if (lines * kLine > kMemory - before) return nullptr;
  } while (!npu().in_use.compare_exchange_weak(before, before + lines * kLine));
  return create(lines, false);
}

Buffer create_host_buffer(size_t lines) { return create(lines, true); }

std::byte* host_address(Buffer buffer) { return buffer->is_host ? buffer->lines : nullptr; }

void destroy_buffer(Buffer buffer) {
  if (!buffer->is_host) npu().in_use -= buffer->bytes;
  delete buffer;
}

size_t memory_in_use() { return npu().in_use; }

Kernel compile(Source source) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ++npu().compilations;
  return new KernelObject{source};
}

void destroy_kernel(Kernel kernel) { delete kernel; }

uint64_t compilations() { return npu().compilations; }

List begin_list(int) { return new ListObject; }

void add_kernel(List list, Kernel kernel, std::vector<Place> arrays, std::shared_ptr<const void> parameters) {
  list->commands.push_back([kernel, arrays = std::move(arrays), parameters = std::move(parameters)] {
    std::vector<std::byte*> addresses;
    for (const Place& place : arrays) addresses.push_back(place.buffer != nullptr ? at(place) : nullptr);
    kernel->source(addresses, parameters.get());
  });
}

void add_copy(List list, Place to, Place from, size_t bytes) {
  list->commands.push_back([=] { std::memcpy(at(to), at(from), bytes); });
}

void add_move(List list, Place to, Place from, const Move& move) {
  list->commands.push_back([=] { move_dimension(move, 0, at(to), at(from)); });
}

void add_time(List list, std::shared_ptr<uint64_t> time) {
  list->commands.push_back([time = std::move(time)] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    *time = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  });
}

Fence submit(int queue, List list, const std::vector<Fence>& behind) {
  const auto index = static_cast<size_t>(queue);
  const Fence fence = new FenceObject;
  const std::lock_guard lock(npu().mutex);
  if (!npu().started[index]) std::thread([index] { npu().run(index); }).detach();
  npu().started[index] = true;
  npu().queues[index].push_back({std::unique_ptr<ListObject>(list), fence, behind});
  npu().changed.notify_all();
  return fence;
}

bool is_signalled(Fence fence) { return fence->signalled; }

void wait(Fence fence) {
  std::unique_lock lock(npu().mutex);
  npu().changed.wait(lock, [&] { return fence->signalled.load(); });
}

void destroy_fence(Fence fence) { delete fence; }

Fence create_fence() { return new FenceObject; }

void signal(Fence fence) {
  const std::lock_guard lock(npu().mutex);
  fence->signalled = true;
  npu().changed.notify_all();
}

}  // namespace tiny
