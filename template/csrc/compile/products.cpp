#include <ATen/core/Tensor.h>
#include <ATen/ops/_int_mm.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include "compile/shim.h"

using torch::aot_inductor::pointer_to_optional;

static at::Tensor& at_handle(AtenTensorHandle handle) {
  return *torch::aot_inductor::tensor_handle_to_tensor_pointer(handle);
}

AOTITorchError aoti_torch_privateuse1_mm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ at::mm_out(at_handle(out), at_handle(self), at_handle(mat2)); });
}

AOTITorchError aoti_torch_privateuse1__int_mm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ at::_int_mm_out(at_handle(out), at_handle(self), at_handle(mat2)); });
}

AOTITorchError aoti_torch_privateuse1_bmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ at::bmm_out(at_handle(out), at_handle(self), at_handle(mat2)); });
}

AOTITorchError aoti_torch_privateuse1_addmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat1,
                                                AtenTensorHandle mat2, double beta, double alpha) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { at::addmm_out(at_handle(out), at_handle(self), at_handle(mat1), at_handle(mat2), beta, alpha); });
}

AOTITorchError aoti_torch_privateuse1_baddbmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle batch1,
                                                  AtenTensorHandle batch2, double beta, double alpha) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { at::baddbmm_out(at_handle(out), at_handle(self), at_handle(batch1), at_handle(batch2), beta, alpha); });
}

AOTITorchError aoti_torch_privateuse1__scaled_mm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2,
                                                     AtenTensorHandle scale_a, AtenTensorHandle scale_b,
                                                     AtenTensorHandle* bias, AtenTensorHandle* scale_result,
                                                     int32_t* out_dtype, int32_t use_fast_accum) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    at::_scaled_mm_out(at_handle(out), at_handle(self), at_handle(mat2), at_handle(scale_a), at_handle(scale_b),
                       pointer_to_optional<at::Tensor>(bias), pointer_to_optional<at::Tensor>(scale_result),
                       pointer_to_optional<at::ScalarType>(out_dtype), use_fast_accum != 0);
  });
}
