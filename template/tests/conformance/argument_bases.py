"""Valid calls of the overloads that PyTorch's samples do not reach: positional arguments, and a
dictionary of keyword arguments as the last item."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # defines its operators

E4M3 = torch.float8_e4m3fn


def real(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(sizes, generator=torch.Generator().manual_seed(len(sizes))).add(0.1).to(dtype)


def whole(*sizes: int, high: int = 4, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(0, high, sizes, generator=torch.Generator().manual_seed(1)).to(dtype)


def fp8(*sizes: int) -> torch.Tensor:
    return real(*sizes).to(E4M3)


def ends(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def serving(name: str) -> Any:
    """Return an attribute of serving_samples.py, which a project may lack."""
    return getattr(importlib.import_module("serving_samples"), name)


def attended() -> tuple[Any, ...]:
    given = serving("cached")(torch.float32)
    out = torch.empty(9, 4, 8)
    more = [torch.rand(4, 4), torch.rand(4), torch.rand(2), torch.rand(4, 2)]
    return (out, *given.values(), 5, 9, 0.5, True, 3, 0, 1.0, *more)


def turned() -> tuple[Any, ...]:
    return torch.arange(2), real(2, 24), real(2, 16), 8, serving("table")(torch.float32, 8), True


def stored() -> tuple[Any, ...]:
    given = serving("tokens")(torch.float32)
    return (*given, serving("SLOTS"), torch.rand(2), torch.rand(2))


def packed_4bit() -> torch.Tensor:
    codes = whole(64, 64, high=256, dtype=torch.uint8)
    return torch.ops.aten._dyn_quant_pack_4bit_weight(codes, real(64, 4), real(64), 32, 128, 64)


def flash(*more: Any) -> tuple[Any, ...]:
    """Return sequences of 4 and 5 queries and of 3 and 6 keys, and ``more``."""
    tensors = real(9, 4, 8), real(9, 2, 8), real(9, 2, 8)
    return (*tensors, ends(0, 4, 9), ends(0, 3, 9), 5, 6, *more)


def flash_gradient() -> tuple[Any, ...]:
    out, logsumexp = real(9, 4, 8), real(4, 9)
    state = torch.empty(0, dtype=torch.int64)
    return (out, *flash()[:3], out, logsumexp, *flash()[3:], 0.0, False, state, state)


def fused(*more: Any) -> tuple[Any, ...]:
    """Return parameters, gradients and two optimizer states, and ``more``."""
    return tuple([real(3, 2), real(4)] for _ in range(4)) + more


def steps() -> list[torch.Tensor]:
    return [torch.tensor(1.0), torch.tensor(1.0)]


ADAM = {
    "lr": 0.1,
    "beta1": 0.9,
    "beta2": 0.99,
    "weight_decay": 0.1,
    "eps": 1e-6,
    "amsgrad": False,
    "maximize": False,
}
SGD = {
    "weight_decay": 0.1,
    "momentum": 0.9,
    "lr": 0.1,
    "dampening": 0.0,
    "nesterov": False,
    "maximize": False,
    "is_first_step": False,
}
ADAGRAD = {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}
RATE = {"lr": torch.tensor(0.1)}

CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    # --- The backend's own ---
    "serving::attention_with_cache": attended,
    "serving::rotary_embedding": turned,
    "serving::reshape_and_cache": stored,
    "serving::fused_add_rms_norm": lambda: (real(3, 4), real(3, 4), real(4), 1e-6),
    "serving::silu_and_mul": lambda: (real(3, 4), real(3, 8)),
    "serving::gelu_and_mul": lambda: (real(3, 4), real(3, 8)),
    "serving::gelu_tanh_and_mul": lambda: (real(3, 4), real(3, 8)),
    "serving::top_k_top_p_sample": lambda: (
        real(3, 8), whole(3, high=8), real(3), real(3), real(3), None
    ),
    "serving::matmul_epilogue": lambda: (real(4, 3), real(3, 5), real(5), "relu"),
    "serving::philox_state": lambda: (real(3), 2),
    # --- Low precision ---
    "aten::_int_mm": lambda: (whole(20, 8, dtype=torch.int8), whole(8, 16, dtype=torch.int8)),
    "aten::_scaled_mm": lambda: (
        fp8(16, 32), fp8(16, 32).t(), torch.tensor(0.5), torch.tensor(1.5), real(16), torch.tensor(2.0), torch.float32
    ),
    "aten::_scaled_mm_v2": lambda: (
        fp8(16, 32), fp8(16, 32).t(), [real(16, 1)], [1], [], [real(1, 16)], [1], [], real(16), torch.float32
    ),
    "aten::_grouped_mm": lambda: (real(8, 16), real(2, 16, 8), ends(3, 8)),
    "aten::_scaled_grouped_mm": lambda: (fp8(8, 16), fp8(2, 8, 16).transpose(1, 2), real(8), real(2, 8), ends(3, 8)),
    "aten::_scaled_grouped_mm_v2": lambda: (
        fp8(8, 16), fp8(2, 8, 16).transpose(1, 2), [real(8)], [1], [], [real(2, 8)], [1], [], ends(3, 8)
    ),
    "aten::_weight_int8pack_mm": lambda: (real(4, 96), whole(40, 96, dtype=torch.int8), real(40)),
    "aten::_convert_weight_to_int4pack": lambda: (whole(48, 128, high=256, dtype=torch.uint8), 4),
    "aten::_convert_weight_to_int4pack_for_cpu": lambda: (whole(48, 256, high=16, dtype=torch.int32), 1),
    "aten::_weight_int4pack_mm": lambda: (
        real(4, 256), whole(6, 4, 32, 2, dtype=torch.int32), 32, real(8, 48, 2)
    ),
    "aten::_weight_int4pack_mm_for_cpu": lambda: (
        real(4, 256), whole(48, 128, dtype=torch.uint8), 32, real(8, 48, 2)
    ),
    "aten::_weight_int4pack_mm_with_scales_and_zeros": lambda: (
        real(4, 128), whole(24, 16, dtype=torch.int32), 32, real(4, 24), whole(4, 24, dtype=torch.int8)
    ),
    "aten::_dyn_quant_pack_4bit_weight": lambda: (
        whole(64, 64, high=256, dtype=torch.uint8), real(64, 4), real(64), 32, 128, 64
    ),
    "aten::_dyn_quant_matmul_4bit": lambda: (real(5, 128), packed_4bit(), 32, 128, 64),
    "quantized_decomposed::quantize_per_tensor": lambda: (real(3, 4), 0.1, 2, -128, 127, torch.int8),
    "quantized_decomposed::quantize_per_tensor.tensor": lambda: (
        real(3, 4), torch.tensor(0.1), torch.tensor(2), -128, 127, torch.int8
    ),
    "quantized_decomposed::dequantize_per_tensor": lambda: (
        whole(3, 4, dtype=torch.int8), 0.1, 2, -128, 127, torch.int8
    ),
    "quantized_decomposed::dequantize_per_tensor.tensor": lambda: (
        whole(3, 4, dtype=torch.int8), torch.tensor(0.1), torch.tensor(2), -128, 127, torch.int8
    ),
    "quantized_decomposed::quantize_per_channel": lambda: (
        real(3, 4), real(4), whole(4), 1, -128, 127, torch.int8
    ),
    "quantized_decomposed::dequantize_per_channel": lambda: (
        whole(3, 4, dtype=torch.int8), real(4), whole(4), 1, -128, 127, torch.int8
    ),
    "aten::fake_quantize_per_tensor_affine_cachemask": lambda: (real(3, 4), 0.1, 2, 0, 255),
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": lambda: (
        real(3, 4), torch.tensor([0.1]), ends(2), torch.tensor([1]), 0, 255
    ),
    "aten::fake_quantize_per_channel_affine_cachemask": lambda: (real(3, 4), real(4), whole(4).int(), 1, 0, 255),
    "aten::_fake_quantize_learnable_per_tensor_affine": lambda: (real(3, 4), real(1), real(1), 0, 255, 1.0),
    "aten::_fake_quantize_learnable_per_channel_affine": lambda: (real(3, 4), real(4), real(4), 1, 0, 255, 1.0),
    "aten::_fake_quantize_learnable_per_tensor_affine_backward": lambda: (
        real(3, 4), real(3, 4), real(1), real(1), 0, 255, 1.0
    ),
    "aten::_fake_quantize_learnable_per_channel_affine_backward": lambda: (
        real(3, 4), real(3, 4), real(4), real(4), 1, 0, 255, 1.0
    ),
    "aten::_fused_moving_avg_obs_fq_helper": lambda: (
        real(3, 4), torch.tensor([1]), torch.tensor([1]), real(3), real(3), real(3), whole(3).int(), 0.01, 0, 255, 0, True
    ),
    # --- Attention ---
    "aten::_flash_attention_forward": lambda: (
        *flash(0.0, True, False), {"window_size_left": 3, "alibi_slopes": real(2, 4)}
    ),
    "aten::_flash_attention_forward_no_dropout_inplace": lambda: (real(9, 4, 8), *flash(0.0, True, False)),
    "aten::_flash_attention_backward": flash_gradient,
    "aten::_scaled_dot_product_fused_attention_overrideable": lambda: (
        real(2, 4, 5, 8), real(2, 2, 6, 8), real(2, 2, 6, 8), real(1, 4, 5, 6)
    ),
    "aten::_scaled_dot_product_efficient_attention": lambda: (
        real(2, 4, 5, 8), real(2, 4, 6, 8), real(2, 4, 6, 8), real(1, 4, 5, 6), True
    ),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": lambda: (
        real(2, 4, 5, 8), real(2, 4, 5, 8), real(2, 4, 6, 8), real(2, 4, 6, 8), real(1, 4, 5, 6), [True] * 4,
        real(2, 4, 5, 8), real(2, 4, 5), torch.empty(0), torch.empty(0), 5, 6, 0.0, False,
        torch.tensor(1), torch.tensor(2),
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": lambda: (
        real(2, 4, 5, 8), real(2, 4, 5, 8), real(2, 4, 6, 8), real(2, 4, 6, 8), real(1, 4, 5, 6),
        real(2, 4, 5, 8), real(2, 4, 5), torch.tensor(1), torch.tensor(2), 0.0, [True] * 4,
    ),
    "aten::_fused_sdp_choice": lambda: (real(2, 4, 5, 8), real(2, 4, 6, 8), real(2, 4, 6, 8)),
    "aten::_native_multi_head_attention": lambda: (
        *(real(2, 3, 8) for _ in range(3)), 8, 2, real(24, 8), real(24), real(8, 8), real(8)
    ),
    "aten::_transformer_encoder_layer_fwd": lambda: (
        real(2, 3, 8), 8, 2, real(24, 8), real(24), real(8, 8), real(8), False, False, 1e-5,
        real(8), real(8), real(8), real(8), real(16, 8), real(16), real(8, 16), real(8),
    ),
    # --- Optimizers and mixed precision ---
    "aten::_fused_adam_": lambda: (*fused([], steps()), ADAM),
    "aten::_fused_adamw_": lambda: (*fused([], steps()), ADAM),
    "aten::_fused_adam_.tensor_lr": lambda: (*fused([], steps()), ADAM | RATE),
    "aten::_fused_adamw_.tensor_lr": lambda: (*fused([], steps()), ADAM | RATE),
    "aten::_fused_sgd_": lambda: (*fused()[:3], SGD),
    "aten::_fused_sgd_.tensor_lr": lambda: (*fused()[:3], SGD | RATE),
    "aten::_fused_adagrad_": lambda: (*fused()[:3], steps(), ADAGRAD),
    "aten::_fused_adagrad_.tensor_lr": lambda: (*fused()[:3], steps(), ADAGRAD | RATE),
    "aten::_amp_foreach_non_finite_check_and_unscale_": lambda: (
        [real(3), real(2, 2)], torch.zeros(1), torch.tensor([0.5])
    ),
    "aten::_amp_update_scale_": lambda: (torch.tensor([2.0]), ends(0), torch.zeros(1), 2.0, 0.5, 3),
    # --- Normalization, convolution, recurrence ---
    "aten::_native_batch_norm_legit.no_stats": lambda: (real(4, 3, 2), real(3), real(3), True, 0.1, 1e-5),
    "aten::_batch_norm_no_update": lambda: (real(4, 3, 2), real(3), real(3), real(3), real(3), 0.1, 1e-5),
    "aten::batch_norm_stats": lambda: (real(4, 3, 2), 1e-5),
    "aten::batch_norm_elemt": lambda: (real(4, 3, 2), *(real(3) for _ in range(4)), 1e-5),
    "aten::batch_norm_gather_stats": lambda: (
        real(4, 3, 2), real(2, 3), real(2, 3), real(3), real(3), 0.1, 1e-5, 8
    ),
    "aten::batch_norm_gather_stats_with_counts": lambda: (
        real(4, 3, 2), real(2, 3), real(2, 3), real(3), real(3), 0.1, 1e-5, real(2)
    ),
    "aten::batch_norm_backward_reduce": lambda: (
        real(4, 3, 2), real(4, 3, 2), real(3), real(3), real(3), True, True, True
    ),
    "aten::batch_norm_backward_elemt": lambda: (
        real(4, 3, 2), real(4, 3, 2), *(real(3) for _ in range(5)), ends(8)
    ),
    "aten::convolution_overrideable": lambda: (
        real(2, 3, 5, 5), real(4, 3, 3, 3), real(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    ),
    "aten::convolution_backward_overrideable": lambda: (
        real(2, 4, 5, 5), real(2, 3, 5, 5), real(4, 3, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True] * 3
    ),
    "aten::_fused_rms_norm": lambda: (real(2, 3, 4), [4], real(4), 1e-5),
    "aten::_fused_rms_norm_backward": lambda: (
        real(2, 3, 4), real(2, 3, 4), [4], real(2, 3, 1), real(4), [True, True]
    ),
    "aten::native_dropout": lambda: (real(3, 4), 0.5, True),
    "aten::adaptive_avg_pool2d.out": lambda: (real(1, 2, 5, 5), [2, 2], {"out": real(1, 2, 2, 2)}),
    "aten::adaptive_avg_pool3d.out": lambda: (
        real(1, 2, 5, 5, 5), [2, 2, 2], {"out": real(1, 2, 2, 2, 2)}
    ),
    "aten::adaptive_avg_pool3d_backward.grad_input": lambda: (
        real(1, 2, 2, 2, 2), real(1, 2, 5, 5, 5), {"grad_input": real(1, 2, 5, 5, 5)}
    ),
    "aten::_thnn_fused_lstm_cell": lambda: (real(2, 12), real(2, 12), real(2, 3), real(12), real(12)),
    "aten::_thnn_fused_lstm_cell_backward_impl": lambda: (
        real(2, 3), real(2, 3), real(2, 3), real(2, 3), real(2, 12), True
    ),
    "aten::_thnn_fused_gru_cell": lambda: (real(2, 9), real(2, 9), real(2, 3), real(9), real(9)),
    "aten::_thnn_fused_gru_cell_backward": lambda: (real(2, 3), real(2, 15), True),
    "aten::_weight_norm_interface": lambda: (real(4, 3), real(4, 1), 0),
    "aten::_weight_norm_interface_backward": lambda: (real(4, 3), real(4, 3), real(4, 1), real(4, 1), 0),
    "aten::glu_jvp": lambda: (real(2, 3), real(2, 6), real(2, 6), 1),
    "aten::glu_backward_jvp": lambda: (real(2, 6), real(2, 3), real(2, 6), real(2, 3), real(2, 6), 1),
    "aten::_addmm_activation": lambda: (real(5), real(4, 3), real(3, 5)),
    # --- Random numbers ---
    "aten::bernoulli_.Tensor": lambda: (real(3), real(3).clamp(0, 1)),
    "aten::binomial": lambda: (real(3) * 5, real(3) / 2),
    "aten::poisson": lambda: (real(3),),
    "aten::_standard_gamma": lambda: (real(3),),
    "aten::_standard_gamma_grad": lambda: (real(3), real(3)),
    "aten::_sample_dirichlet": lambda: (real(2, 3),),
    "aten::_dirichlet_grad": lambda: (real(2, 3) / 3, real(2, 3), real(2, 3) + 3),
    "aten::normal.float_Tensor": lambda: (0.5, real(3)),
    "aten::random_": lambda: (real(3),),
    "aten::random_.to": lambda: (real(3), 5),
    "aten::random_.from": lambda: (real(3), 2, 5),
    # --- Indices and order ---
    "aten::_index_put_impl_": lambda: (real(4, 3), [whole(5)], real(5, 3), True),
    "aten::_embedding_bag_forward_only": lambda: (real(4, 3), whole(6), torch.tensor([0, 2]), False, 0, False, real(6)),
    "aten::_embedding_bag_dense_backward": lambda: (
        real(2, 3), whole(6), torch.tensor([0, 0, 1, 1, 1, 1]), torch.tensor([2, 4]), whole(2, 3), 4, False, 0, None, -1
    ),
    "aten::embedding_renorm_": lambda: (real(4, 3), whole(2), 0.1, 2.0),
    "aten::index_fill_.int_Tensor": lambda: (real(4, 3), 0, whole(2), torch.tensor(1.0)),
    "aten::masked_fill_.Tensor": lambda: (real(3), real(3) > 0.5, torch.tensor(1.0)),
    "aten::fill_.Tensor": lambda: (real(3), torch.tensor(2.0)),
    "aten::repeat_interleave.Tensor": lambda: (whole(4),),
    "aten::bucketize.Scalar": lambda: (0.5, real(4).sort().values),
    "aten::searchsorted.Scalar": lambda: (real(4).sort().values, 0.5),
    "aten::isin.Scalar_Tensor": lambda: (1, whole(3)),
    "aten::isin.Tensor_Scalar": lambda: (whole(3), 1),
    "aten::median.dim_values": lambda: (real(3, 4), 1, False, {"values": real(3), "indices": whole(3)}),
    "aten::nanmedian.dim_values": lambda: (real(3, 4), 1, False, {"values": real(3), "indices": whole(3)}),
    "aten::unique_dim": lambda: (whole(4, 2), 0),
    "aten::unique_dim_consecutive": lambda: (whole(4, 2), 0),
    "aten::_cummax_helper": lambda: (real(3, 4), real(3, 4), whole(3, 4), 1),
    "aten::_cummin_helper": lambda: (real(3, 4), real(3, 4), whole(3, 4), 1),
    "aten::_logcumsumexp": lambda: (real(3, 4), 1),
    "aten::_aminmax": lambda: (real(3, 4),),
    "aten::_aminmax.dim": lambda: (real(3, 4), 1),
    "aten::count_nonzero.dim_IntList": lambda: (real(3, 4), [1]),
    "aten::all.dims": lambda: (real(3, 4), [0, 1]),
    "aten::any.dims": lambda: (real(3, 4), [0, 1]),
    "aten::scatter.reduce": lambda: (real(4), 0, whole(3), real(3), {"reduce": "add"}),
    "aten::scatter.value_reduce": lambda: (real(4), 0, whole(3), 2.0, {"reduce": "add"}),
    "aten::scatter_.reduce": lambda: (real(4), 0, whole(3), real(3), {"reduce": "add"}),
    "aten::scatter_.value_reduce": lambda: (real(4), 0, whole(3), 2.0, {"reduce": "add"}),
    # --- Others ---
    "aten::_assert_async": lambda: (torch.ones(1),),
    "aten::_assert_async.msg": lambda: (torch.ones(1), "is zero"),
    "aten::_linalg_eigvals": lambda: (real(3, 3),),
    "aten::_cholesky_solve_helper": lambda: (real(3, 2), torch.eye(3), False),
    "aten::_convert_indices_from_coo_to_csr": lambda: (whole(5).sort().values, 4),
    "aten::_convert_indices_from_csr_to_coo": lambda: (torch.tensor([0, 2, 3]), whole(3)),
    "aten::_copy_from": lambda: (real(3), real(3)),
    "aten::_copy_from_and_resize": lambda: (real(3), real(3)),
    "aten::_lazy_clone": lambda: (real(3),),
    "aten::_reshape_alias": lambda: (real(3, 4), [4, 3], [3, 1]),
    "aten::_jagged_to_padded_dense_forward": lambda: (real(5, 3), [torch.tensor([0, 2, 5])], [4], 0.0),
    "aten::_padded_dense_to_jagged_forward": lambda: (real(2, 4, 3), [torch.tensor([0, 2, 5])], 5),
    "aten::_nested_from_padded": lambda: (real(2, 4, 3), torch.tensor([[2, 3], [4, 3]])),
    "aten::_nested_tensor_from_mask": lambda: (real(2, 4, 3), torch.arange(4) < torch.tensor([[2], [4]])),
    "aten::_nested_tensor_from_mask_left_aligned": lambda: (
        real(2, 4, 3), torch.arange(4) < torch.tensor([[2], [4]])
    ),
    "aten::_to_sparse_csr": lambda: (real(4, 6),),
    "aten::_to_sparse_csc": lambda: (real(4, 6),),
    "aten::_to_sparse_bsr": lambda: (real(4, 6), [2, 3]),
    "aten::_to_sparse_bsc": lambda: (real(4, 6), [2, 3]),
    "aten::clamp_max": lambda: (real(3), 0.5),
    "aten::clamp_max_": lambda: (real(3), 0.5),
    "aten::gelu_": lambda: (real(3),),
    "aten::hardswish_": lambda: (real(3),),
    "aten::hardtanh_": lambda: (real(3),),
    "aten::eye.m_out": lambda: (3, 4, {"out": real(3, 4)}),
    "aten::range.out": lambda: (0, 5, 1, {"out": real(6)}),
    "aten::randperm.generator_out": lambda: (5, {"generator": None, "out": whole(5)}),
    "aten::lerp.Tensor": lambda: (real(3), real(3), real(3)),
    "aten::remainder.Scalar_Tensor": lambda: (5, real(3)),
    "aten::norm.ScalarOpt_dim_dtype": lambda: (real(3, 4), 2, [1], False, {"dtype": torch.float32}),
    "aten::norm.dtype_out": lambda: (real(3, 4), 2, [1], False, {"dtype": torch.float32, "out": real(3)}),
    "aten::is_set_to": lambda: (real(3), real(3)),
    "aten::set_": lambda: (real(3),),
    "aten::set_.source_Tensor": lambda: (real(3), real(4)),
    "aten::view.dtype": lambda: (real(3), torch.int32),
}  # fmt: skip

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    CALLS[f"aten::{_name}_.Scalar"] = lambda: (real(3), 0.5)
for _name in ("lshift", "rshift", "ilshift", "irshift"):
    CALLS[f"aten::__{_name}__.Scalar"] = lambda: (whole(3), 1)
    CALLS[f"aten::__{_name}__.Tensor"] = lambda: (whole(3), whole(3))
for _name, _dims in (
    ("_upsample_nearest_exact", 2),
    ("_upsample_nearest_exact", 3),
    ("upsample_nearest", 2),
    ("upsample_nearest", 3),
):
    CALLS[f"aten::{_name}{_dims}d"] = lambda dims=_dims: (real(1, 2, *[4] * dims), [6] * dims)
    CALLS[f"aten::{_name}{_dims}d_backward"] = lambda dims=_dims: (
        real(1, 2, *[6] * dims),
        [6] * dims,
        [1, 2, *[4] * dims],
    )
CALLS["aten::_upsample_bicubic2d_aa"] = lambda: (real(1, 2, 4, 4), [6, 6], False)
CALLS["aten::_upsample_bicubic2d_aa_backward"] = lambda: (
    real(1, 2, 6, 6),
    [6, 6],
    [1, 2, 4, 4],
    False,
)
for _kind, _dims in (("reflection", 2), ("reflection", 3), ("replication", 3)):
    CALLS[f"aten::{_kind}_pad{_dims}d"] = lambda dims=_dims: (
        real(1, 2, *[4] * dims),
        [1] * 2 * dims,
    )
    CALLS[f"aten::{_kind}_pad{_dims}d_backward"] = lambda dims=_dims: (
        real(1, 2, *[6] * dims),
        real(1, 2, *[4] * dims),
        [1] * 2 * dims,
    )
