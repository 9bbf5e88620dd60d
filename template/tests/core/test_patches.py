"""Each patch of PyTorch can be disabled, and PyTorch still needs it. A patch that PyTorch does not
need any more fails here: delete it.
"""

from __future__ import annotations

import textwrap
from importlib import import_module

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE, backend
from support import RELEASE, needs, run_python

pytestmark = needs(torch.float32)

FEATURES = import_module(f"{PACKAGE}._features").FEATURES
HAS_LAYOUTS = hasattr(backend, "StorageLayout")
HAS_FLOAT64 = backend.dtype_support(torch.float64) != "unsupported"
HAS_AMP, HAS_COMPILERS = hasattr(backend, "amp"), hasattr(backend, "register_compiler")

PROBES = {
    "dlpack_device": """
        def at_fault():
            try:
                x.__dlpack_device__()
            except ValueError:
                return True
    """,
    "dlpack_import": """
        import sys
        sys.path.insert(0, "tests")
        from core.test_dlpack import capsule

        def at_fault():
            try:
                return torch.from_dlpack(capsule(x, device_id=99)).device.index == 99
            except RuntimeError as error:
                return "this machine has" not in str(error)
    """,
    "loading": """
        def at_fault():
            try:
                torch._utils._rebuild_tensor(x._typed_storage(), 0, (1000,), (1,))
                return True
            except RuntimeError:
                return False
    """,
    "rebuilding": """
        import pickle

        def at_fault():
            sparse = torch.eye(2).to(DEVICE).to_sparse_csr().requires_grad_()
            try:
                return not pickle.loads(pickle.dumps(sparse)).requires_grad
            except RuntimeError:
                return True
    """,
    "byteswap": """
        def at_fault():
            x.untyped_storage().byteswap(torch.float32)  # at the device's address, which crashes
            return False
    """,
    "printing": """
        from torch import _tensor_str

        def at_fault():
            original, seen = _tensor_str.tensor_totype, []

            def tensor_totype(tensor):
                seen.append(original(tensor))
                return seen[-1]

            _tensor_str.tensor_totype = tensor_totype
            repr(x)
            return any(y.device.type == DEVICE and y.dtype is torch.float64 for y in seen)
    """,
    "autocast_availability": """
        def at_fault():
            if not torch.amp.is_autocast_available(DEVICE):
                return False
            try:
                torch.autocast(DEVICE, enabled=False)
            except AssertionError:
                return True
    """,
    "fork_rng": """
        def at_fault():
            before = torch.get_device_module(DEVICE).get_rng_state()
            with torch.random.fork_rng():
                torch.rand(1, device=DEVICE)
            return not torch.equal(torch.get_device_module(DEVICE).get_rng_state(), before)
    """,
    "traced_convolutions": """
        from torch._subclasses import FakeTensorMode

        def at_fault():
            image = torch.ones(1, 4, 5, 5, device=DEVICE).to(memory_format=torch.channels_last)
            weight = torch.ones(3, 4, 2, 2, device=DEVICE)
            real = torch.nn.functional.conv2d(image, weight).stride()
            with FakeTensorMode() as mode:
                fakes = mode.from_tensor(image), mode.from_tensor(weight)
                return torch.nn.functional.conv2d(*fakes).stride() != real
    """,
    "missing_inductor": """
        def at_fault():
            try:
                torch.compile(lambda y: y + 1)(x)
            except Exception as error:
                return "generates no code" not in str(error)
    """,
    "storage_layouts": """
        def at_fault():
            layout = torch.get_device_module(DEVICE).StorageLayout(format=3)
            torch.get_device_module(DEVICE).set_storage_layout(x, layout)
            try:
                copied = x.untyped_storage().clone()
            except RuntimeError:
                return True
            return torch.get_device_module(DEVICE).storage_layout(copied) != layout
    """,
    "dlpack_export": """
        def at_fault():
            backend = torch.get_device_module(DEVICE)
            backend.set_storage_layout(x, backend.StorageLayout(format=3))
            try:
                torch.utils.dlpack.to_dlpack(x)
                return True
            except BufferError:
                return False
    """,
    "grad_scaler": """
        def at_fault():
            leaf = torch.ones(2, device=DEVICE, requires_grad=True)
            scaler = torch.amp.GradScaler(DEVICE)
            scaler.scale(leaf.sum()).backward()
            try:
                scaler.unscale_(torch.optim.SGD([leaf]))
            except (TypeError, RuntimeError):
                return True
    """,
    "data_parallel": """
        def at_fault():
            try:
                torch.nn.DataParallel(torch.nn.Linear(2, 2, device=DEVICE), device_ids=[0, 0])(x)
            except Exception as error:
                return "DistributedDataParallel" not in str(error)
    """,
    "default_backend": """
        import torch.distributed as dist

        def at_fault():
            dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
            try:
                torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2, device=DEVICE))
            except RuntimeError:
                return True
    """,
    "compilers": """
        def at_fault():
            try:
                return torch.compile(lambda y: y + 1)(x).tolist() != [2, 2]
            except Exception:
                return True
    """,
    "flex_attention": """
        from torch.nn.attention.flex_attention import flex_attention

        def at_fault():
            try:
                flex_attention(*[torch.ones(1, 1, 16, 16, device=DEVICE)] * 3)
            except (ValueError, NotImplementedError, RuntimeError):
                return True
    """,
}
UNNEEDED = {
    "rebuilding": (not FEATURES["more_operators"].enabled, "generated without more_operators"),
    "autocast_availability": (HAS_AMP, "a backend with autocast has it always"),
    "fork_rng": (RELEASE >= (2, 13), "PyTorch 2.13 has repaired it"),
    "missing_inductor": (HAS_COMPILERS, "there are compilers"),
    "storage_layouts": (not HAS_LAYOUTS, "generated without storage"),
    "dlpack_export": (not HAS_LAYOUTS, "generated without storage"),
    "data_parallel": (not FEATURES["distributed"].enabled, "generated without distributed"),
    "default_backend": (not FEATURES["distributed"].enabled, "generated without distributed"),
    "compilers": (not HAS_COMPILERS, "generated without compile"),
    "flex_attention": (not HAS_COMPILERS, "generated without compile"),
    "grad_scaler": (not HAS_AMP or HAS_FLOAT64, "no scaler, or one with float64"),
}


def is_at_fault(name: str, left_out: str) -> bool:
    code = f'import torch\nDEVICE = "{DEVICE}"\nx = torch.ones(2, device=DEVICE)\n'
    code += textwrap.dedent(PROBES[name]) + "\nprint(bool(at_fault()))\n"
    environment = {f"{ENV_PREFIX}_WITHOUT_PATCHES": left_out}
    result = run_python(code, environment, check=False)
    return result.returncode != 0 or result.stdout.splitlines()[-1] == "True"


@pytest.mark.full  # the result changes only with PyTorch
@pytest.mark.parametrize("name", PROBES)
def test_pytorch_still_needs_each_patch(name: str) -> None:
    unneeded, reason = UNNEEDED.get(name, (False, ""))
    if unneeded:
        pytest.skip(reason)
    assert not is_at_fault(name, ""), "the repair does not work"
    assert is_at_fault(name, name), f"PyTorch does not need the patch '{name}' any more: delete it"


def test_an_unknown_patch_is_refused() -> None:
    result = run_python(
        "import torch", {f"{ENV_PREFIX}_WITHOUT_PATCHES": "printing,nonsense"}, check=False
    )
    assert result.returncode == 1
    assert "there is no patch 'nonsense', only autocast_availability, byteswap," in result.stderr


def test_every_patch_has_a_probe() -> None:
    patches = import_module(f"{PACKAGE}._patches").PATCHES
    assert set(patches) <= set(PROBES)
