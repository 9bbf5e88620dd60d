// Shared virtual memory for Oclgrind, which does not support it. The library is loaded before
// Oclgrind. An address represents a place in a buffer. The host cannot access it, and a kernel gets
// the place in the buffer.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>

namespace {

// The next function of this name, which would be called without this library.
template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Piece {
  size_t bytes;
  cl_mem buffer;
  std::map<size_t, cl_mem> parts;  // the rest of the buffer from an offset on
};

// By their first addresses. Leaked, because the host may exit while work is running.
auto& pieces = *new std::map<std::byte*, Piece>;
auto& pieces_mutex = *new std::mutex;

struct Place {
  Piece* piece = nullptr;  // null for memory of the host
  size_t offset = 0;
};

Place find(const void* address) {
  const auto* const place = static_cast<const std::byte*>(address);
  auto after = pieces.upper_bound(const_cast<std::byte*>(place));
  if (after == pieces.begin()) return {};
  auto& [base, piece] = *--after;
  const auto offset = static_cast<size_t>(place - base);
  return offset < piece.bytes ? Place{&piece, offset} : Place{};
}

cl_mem rest_of_buffer(const Place& place) {
  if (place.offset == 0) return place.piece->buffer;
  cl_mem& part = place.piece->parts[place.offset];
  if (part == nullptr) {
    const cl_buffer_region region = {place.offset, place.piece->bytes - place.offset};
    part = clCreateSubBuffer(place.piece->buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, nullptr);
  }
  return part;
}

cl_int copy_on_host(cl_command_queue queue, void* to, const void* from, size_t bytes, cl_event* event) {
  const cl_int status = clFinish(queue);
  if (status != CL_SUCCESS) return status;
  std::memcpy(to, from, bytes);
  return clEnqueueMarkerWithWaitList(queue, 0, nullptr, event);
}

}  // namespace

extern "C" {

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t capacity, void* value, size_t* bytes) {
  constexpr cl_device_svm_capabilities kCapabilities = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
  if (what != CL_DEVICE_SVM_CAPABILITIES) {
    return next(clGetDeviceInfo, "clGetDeviceInfo")(device, what, capacity, value, bytes);
  }
  if (bytes != nullptr) *bytes = sizeof(kCapabilities);
  if (value == nullptr) return CL_SUCCESS;
  if (capacity < sizeof(kCapabilities)) return CL_INVALID_VALUE;
  std::memcpy(value, &kCapabilities, sizeof(kCapabilities));
  return CL_SUCCESS;
}

void* clSVMAlloc(cl_context context, cl_svm_mem_flags, size_t bytes, cl_uint) {
  if (bytes == 0) return nullptr;
  cl_int status = CL_SUCCESS;
  const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  void* const base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    clReleaseMemObject(buffer);
    return nullptr;
  }
  const std::lock_guard lock(pieces_mutex);
  pieces[static_cast<std::byte*>(base)] = {bytes, buffer, {}};
  return base;
}

void clSVMFree(cl_context, void* address) {
  const std::lock_guard lock(pieces_mutex);
  const auto found = pieces.find(static_cast<std::byte*>(address));
  if (found == pieces.end()) return;
  for (const auto& [offset, part] : found->second.parts) clReleaseMemObject(part);
  clReleaseMemObject(found->second.buffer);
  munmap(address, found->second.bytes);
  pieces.erase(found);
}

cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void* address) {
  const std::lock_guard lock(pieces_mutex);
  // No piece is found for the end of a piece, where an array without elements may begin.
  const Place place = find(address);
  const cl_mem buffer = place.piece != nullptr ? rest_of_buffer(place) : nullptr;
  return clSetKernelArg(kernel, index, sizeof(buffer), &buffer);
}

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* to, const void* from, size_t bytes,
                          cl_uint count, const cl_event* awaited, cl_event* event) {
  const std::lock_guard lock(pieces_mutex);
  const Place target = find(to);
  const Place source = find(from);
  if (target.piece == nullptr && source.piece == nullptr) return copy_on_host(queue, to, from, bytes, event);
  if (target.piece == nullptr) {
    return clEnqueueReadBuffer(queue, source.piece->buffer, blocking, source.offset, bytes, to, count, awaited, event);
  }
  if (source.piece == nullptr) {
    return clEnqueueWriteBuffer(queue, target.piece->buffer, blocking, target.offset, bytes, from, count, awaited,
                                event);
  }
  return clEnqueueCopyBuffer(queue, source.piece->buffer, target.piece->buffer, source.offset, target.offset, bytes,
                             count, awaited, event);
}

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* to, const void* pattern, size_t pattern_bytes, size_t bytes,
                           cl_uint count, const cl_event* awaited, cl_event* event) {
  const std::lock_guard lock(pieces_mutex);
  const Place place = find(to);
  if (place.piece == nullptr) return CL_INVALID_VALUE;
  return clEnqueueFillBuffer(queue, place.piece->buffer, pattern, pattern_bytes, place.offset, bytes, count, awaited,
                             event);
}

}  // extern "C"
