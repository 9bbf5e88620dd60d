// The first kernel family, for contiguous tensors of one-byte elements: an example that needs only fill_bytes.
#include <@name@/device/kernels.h>

namespace torch_@name@::device {
namespace {

bool is_dense(const TensorView& view) {
  int64_t stride = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    if (view.sizes[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.sizes[i];
  }
  return true;
}

size_t element_count(const TensorView& view) {
  size_t count = 1;
  for (int i = 0; i < view.rank; ++i) count *= static_cast<size_t>(view.sizes[i]);
  return count;
}

}  // namespace

Answer fill(const Launch& launch, const TensorView& out, const Scalar& value) {
  if (!is_dense(out)) return Answer::unsupported("a tensor that is not contiguous");
  switch (out.dtype) {
    case DType::kBool:
      // A probe only asks for the answer, and must do nothing.
      if (launch.probe) return Answer::done();
      fill_bytes(launch.stream, out.data, value.to<bool>() ? 1 : 0, element_count(out));
      return Answer::done();
    case DType::kUInt8:
      if (launch.probe) return Answer::done();
      fill_bytes(launch.stream, out.data, static_cast<uint8_t>(value.to<int64_t>()), element_count(out));
      return Answer::done();
    default:
      // Declined operators run on the CPU.
      return Answer::unsupported("element type");
  }
}

}  // namespace torch_@name@::device
