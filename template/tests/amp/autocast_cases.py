"""Arguments for every operator that autocast treats specially, by policy.

A case takes a :class:`Maker` and returns the operator's positional arguments. The same case makes
the arguments for the device and those for the CPU, which computes what is expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Case = Callable[["Maker"], tuple[Any, ...]]


class Maker:
    """Makes tensors of repeatable values.

    Args:
        device: the device of the tensors.
        rounded: the dtype that the values are first rounded to, so that all makers agree on them.
        dtypes: the dtypes of the first, second, … tensor. The last one is that of the rest.
    """

    def __init__(
        self, device: str, rounded: torch.dtype, dtypes: torch.dtype | Sequence[torch.dtype]
    ) -> None:
        self.device = device
        self.rounded = rounded
        self.dtypes = [dtypes] if isinstance(dtypes, torch.dtype) else list(dtypes)
        self.generator = torch.Generator().manual_seed(7)
        self.made = 0

    def __call__(self, *shape: int, low: float = -1, high: float = 1) -> torch.Tensor:
        """Return a floating-point tensor of values between ``low`` and ``high``."""
        values = torch.rand(shape, generator=self.generator) * (high - low) + low
        return self._place(values.to(self.rounded))

    def signs(self, *shape: int) -> torch.Tensor:
        """Return a floating-point tensor of 1 and -1."""
        return self._place(torch.randint(0, 2, shape, generator=self.generator) * 2.0 - 1)

    def indices(self, *shape: int, count: int) -> torch.Tensor:
        """Return an int64 tensor of values in ``range(count)``."""
        return torch.randint(0, count, shape, generator=self.generator).to(self.device)

    def _place(self, values: torch.Tensor) -> torch.Tensor:
        dtype = self.dtypes[min(self.made, len(self.dtypes) - 1)]
        self.made += 1
        return values.to(dtype).to(self.device)


def operator(name: str) -> Any:
    """Return the overload called ``name``, such as ``mm`` or ``prod.dim_int``."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _convolution(x: Maker) -> tuple[Any, ...]:
    sizes = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    return x(1, 2, 5, 5), x(3, 2, 3, 3), x(3), *sizes


def _cell(x: Maker, gates: int) -> tuple[Any, ...]:
    return x(2, 3), x(2, 4), x(gates * 4, 3), x(gates * 4, 4), x(gates * 4), x(gates * 4)


def _lstm_cell(x: Maker) -> tuple[Any, ...]:
    return x(2, 3), [x(2, 4), x(2, 4)], x(16, 3), x(16, 4), x(16), x(16)


def _attention(x: Maker) -> tuple[Any, ...]:
    return x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4)


LOWER_PRECISION: dict[str, Case] = {
    "_convolution.deprecated": lambda x: (*_convolution(x), False, False, True),
    "_convolution": lambda x: (*_convolution(x), False, False, True, True),
    "conv1d": lambda x: (x(1, 2, 6), x(3, 2, 3), x(3)),
    "conv2d": lambda x: (x(1, 2, 5, 5), x(3, 2, 3, 3), x(3)),
    "conv3d": lambda x: (x(1, 2, 4, 4, 4), x(3, 2, 3, 3, 3), x(3)),
    "conv_tbc": lambda x: (x(6, 1, 2), x(3, 2, 3), x(3)),
    "conv_transpose1d": lambda x: (x(1, 2, 6), x(2, 3, 3), x(3)),
    "conv_transpose2d.input": lambda x: (x(1, 2, 5, 5), x(2, 3, 3, 3), x(3)),
    "conv_transpose3d.input": lambda x: (x(1, 2, 4, 4, 4), x(2, 3, 3, 3, 3), x(3)),
    "convolution": _convolution,
    "prelu": lambda x: (x(2, 3, 4), x(3)),
    "addmm": lambda x: (x(3, 5), x(3, 4), x(4, 5)),
    "addmv": lambda x: (x(3), x(3, 4), x(4)),
    "addr": lambda x: (x(3, 4), x(3), x(4)),
    "matmul": lambda x: (x(2, 3, 4), x(4, 5)),
    "einsum": lambda x: ("ij,jk->ik", [x(3, 4), x(4, 5)]),
    "mm": lambda x: (x(3, 4), x(4, 5)),
    "mv": lambda x: (x(3, 4), x(4)),
    "linalg_vecdot": lambda x: (x(3, 4), x(3, 4)),
    "linear": lambda x: (x(3, 4), x(5, 4), x(5)),
    "addbmm": lambda x: (x(3, 5), x(2, 3, 4), x(2, 4, 5)),
    "baddbmm": lambda x: (x(2, 3, 5), x(2, 3, 4), x(2, 4, 5)),
    "bmm": lambda x: (x(2, 3, 4), x(2, 4, 5)),
    "chain_matmul": lambda x: ([x(3, 4), x(4, 5), x(5, 2)],),
    "linalg_multi_dot": lambda x: ([x(3, 4), x(4, 5), x(5, 2)],),
    "lstm_cell": _lstm_cell,
    "gru_cell": lambda x: _cell(x, 3),
    "rnn_tanh_cell": lambda x: _cell(x, 1),
    "rnn_relu_cell": lambda x: _cell(x, 1),
    "scaled_dot_product_attention": _attention,
}
"""Cast to the autocast dtype."""

LOWER_PRECISION_WITHOUT_CPU_KERNEL: dict[str, Case] = {
    "_scaled_dot_product_flash_attention": _attention,
    "_thnn_fused_lstm_cell": lambda x: (x(2, 16), x(2, 16), x(2, 4), x(16), x(16)),
    "_thnn_fused_gru_cell": lambda x: (x(2, 12), x(2, 12), x(2, 4), x(12), x(12)),
}
"""The same, for operators that the CPU does not support: only their arguments are checked."""

FLOAT32: dict[str, Case] = {
    "acos": lambda x: (x(5),),
    "asin": lambda x: (x(5),),
    "cosh": lambda x: (x(5),),
    "erfinv": lambda x: (x(5, low=-0.9, high=0.9),),
    "exp": lambda x: (x(5),),
    "expm1": lambda x: (x(5),),
    "log": lambda x: (x(5, low=0.5, high=3),),
    "log10": lambda x: (x(5, low=0.5, high=3),),
    "log2": lambda x: (x(5, low=0.5, high=3),),
    "log1p": lambda x: (x(5, low=-0.5, high=3),),
    "reciprocal": lambda x: (x(5, low=1, high=3),),
    "rsqrt": lambda x: (x(5, low=1, high=3),),
    "sinh": lambda x: (x(5),),
    "tan": lambda x: (x(5),),
    "pow.Tensor_Scalar": lambda x: (x(5), 3),
    "pow.Tensor_Tensor": lambda x: (x(5, low=0.5, high=3), x(5)),
    "pow.Scalar": lambda x: (2.5, x(5)),
    "softplus": lambda x: (x(5),),
    "layer_norm": lambda x: (x(2, 4), [4], x(4), x(4)),
    "native_layer_norm": lambda x: (x(2, 4), [4], x(4), x(4), 1e-5),
    "rms_norm": lambda x: (x(2, 4), [4], x(4)),
    "group_norm": lambda x: (x(2, 4, 3), 2, x(4), x(4)),
    "frobenius_norm.dim": lambda x: (x(3, 4), [0, 1]),
    "nuclear_norm": lambda x: (x(3, 4),),
    "nuclear_norm.dim": lambda x: (x(3, 4), [0, 1]),
    "cosine_similarity": lambda x: (x(3, 4), x(3, 4)),
    "poisson_nll_loss": lambda x: (x(4), x(4, low=0.5, high=2), True, False, 1e-8, 1),
    "cosine_embedding_loss": lambda x: (x(3, 4), x(3, 4), x.signs(3)),
    "nll_loss": lambda x: (x(3, 4), x.indices(3, count=4)),
    "nll_loss2d": lambda x: (x(1, 3, 2, 2), x.indices(1, 2, 2, count=3)),
    "hinge_embedding_loss": lambda x: (x(4), x.signs(4)),
    "kl_div": lambda x: (x(3, 4), x(3, 4, low=0.1)),
    "l1_loss": lambda x: (x(3, 4), x(3, 4)),
    "smooth_l1_loss": lambda x: (x(3, 4), x(3, 4)),
    "huber_loss": lambda x: (x(3, 4), x(3, 4)),
    "mse_loss": lambda x: (x(3, 4), x(3, 4)),
    "margin_ranking_loss": lambda x: (x(4), x(4), x.signs(4)),
    "multilabel_margin_loss": lambda x: (x(2, 4), x.indices(2, 4, count=4)),
    "soft_margin_loss": lambda x: (x(4), x.signs(4)),
    "triplet_margin_loss": lambda x: (x(3, 4), x(3, 4), x(3, 4)),
    "multi_margin_loss": lambda x: (x(3, 4), x.indices(3, count=4)),
    "binary_cross_entropy_with_logits": lambda x: (x(4), x(4, low=0)),
    "dist": lambda x: (x(3, 4), x(3, 4)),
    "pdist": lambda x: (x(4, 3),),
    "cdist": lambda x: (x(3, 4), x(2, 4)),
    "renorm": lambda x: (x(3, 4), 2, 0, 0.5),
    "logsumexp": lambda x: (x(3, 4), [1]),
    "upsample_nearest1d": lambda x: (x(1, 2, 4), [7]),
    "_upsample_nearest_exact1d": lambda x: (x(1, 2, 4), [7]),
    "upsample_nearest2d": lambda x: (x(1, 2, 4, 4), [7, 5]),
    "_upsample_nearest_exact2d": lambda x: (x(1, 2, 4, 4), [7, 5]),
    "upsample_nearest3d": lambda x: (x(1, 2, 3, 3, 3), [4, 5, 6]),
    "_upsample_nearest_exact3d": lambda x: (x(1, 2, 3, 3, 3), [4, 5, 6]),
    "upsample_linear1d": lambda x: (x(1, 2, 4), [7], False),
    "upsample_bilinear2d": lambda x: (x(1, 2, 4, 4), [7, 5], False),
    "_upsample_bilinear2d_aa": lambda x: (x(1, 2, 4, 4), [7, 5], False),
    "upsample_trilinear3d": lambda x: (x(1, 2, 3, 3, 3), [4, 5, 6], False),
    "upsample_bicubic2d": lambda x: (x(1, 2, 4, 4), [7, 5], False),
    "_upsample_bicubic2d_aa": lambda x: (x(1, 2, 4, 4), [7, 5], False),
}
"""Cast to float32."""

FLOAT32_RESULT: dict[str, Case] = {
    "prod": lambda x: (x(4, low=0.5, high=2),),
    "prod.dim_int": lambda x: (x(2, 3, low=0.5, high=2), 1),
    "softmax.int": lambda x: (x(3, 4), 1),
    "log_softmax.int": lambda x: (x(3, 4), 1),
    "cumprod": lambda x: (x(3, 4, low=0.5, high=2), 0),
    "cumsum": lambda x: (x(3, 4), 0),
    "linalg_vector_norm": lambda x: (x(3, 4),),
    "linalg_matrix_norm": lambda x: (x(3, 4), 1),
    "linalg_matrix_norm.str_ord": lambda x: (x(3, 4), "fro"),
    "sum": lambda x: (x(3, 4),),
    "sum.dim_IntList": lambda x: (x(3, 4), [1]),
}
"""Called with ``dtype=torch.float32``, unless the caller passes a dtype."""

FLOAT32_APPENDED: dict[str, Case] = {
    "norm.Scalar": lambda x: (x(3, 4), 2),
    "norm.ScalarOpt_dim": lambda x: (x(3, 4), 2, [1]),
}
"""Replaced by the overload that takes a dtype, to give a float32 result."""

PROMOTE: dict[str, Case] = {
    "addcdiv": lambda x: (x(4), x(4), x(4, low=1, high=2)),
    "addcmul": lambda x: (x(4), x(4), x(4)),
    "atan2": lambda x: (x(4), x(4, low=0.5)),
    "bilinear": lambda x: (x(2, 3), x(2, 4), x(5, 3, 4), x(5)),
    "cross": lambda x: (x(2, 3), x(2, 3), 1),
    "dot": lambda x: (x(4), x(4)),
    "vdot": lambda x: (x(4), x(4)),
    "grid_sampler": lambda x: (x(1, 1, 3, 3), x(1, 2, 2, 2), 0, 0, False),
    "index_put": lambda x: (x(4), [x.indices(2, count=4)], x(2), True),
    "tensordot": lambda x: (x(3, 4), x(4, 2), [1], [0]),
    "scatter_add": lambda x: (x(4), 0, x.indices(4, count=4), x(4)),
}
"""Cast to the widest dtype among the arguments."""

BANNED = ("binary_cross_entropy",)
"""Raises an error."""
