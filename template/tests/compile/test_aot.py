"""AOTInductor and ``cpp_wrapper``: graphs whose calls are written in C++."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE, backend
from compile.programs import seeded
from compile.test_kernels import FUNCTIONS
from support import EXAMPLES, has_function, keep_busy, needs, needs_two_devices, run_python
from torch import Tensor, nn

pytestmark = [
    needs(torch.float32),
    pytest.mark.skipif(
        not has_function("modules", "load_module") or torch.__version__ < "2.13",
        reason="the device library takes no kernels, or Inductor is too old to write them",
    ),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Network(nn.Module):
    """A convolution, attention, norms, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True)
        self.head = nn.Linear(8, 4)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = torch.relu(self.norm(self.image(x))).flatten(2).mT
        mixed = self.attention(features).mean(1)
        return self.head(mixed).softmax(-1) + self.shift, features.amax(1)


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout


def network() -> Network:
    torch.manual_seed(0)
    return Network().eval()


def package(model: nn.Module, folder: Path, *inputs: Tensor, **options: Any) -> str:
    with torch.no_grad():
        program = torch.export.export(model, inputs, **options)
    path: str = torch._inductor.aoti_compile_and_package(
        program, package_path=str(folder / "model.pt2")
    )
    return path


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> str:
    batch = torch.export.Dim("batch", min=2, max=64)
    return package(
        network().to(DEVICE),
        tmp_path_factory.mktemp("model"),
        torch.randn(2, 3, 6, 6, device=DEVICE),
        dynamic_shapes={"x": {0: batch}},
    )


def assert_equal(actual: Any, expected: Any) -> None:
    moved = torch.utils._pytree.tree_map_only(Tensor, lambda each: each.cpu(), actual)
    torch.testing.assert_close(list(moved), list(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.full
def test_a_package_accepts_any_batch_size(packaged: str) -> None:
    model = torch._inductor.aoti_load_package(packaged)
    for batch in (2, 5):
        x = torch.randn(batch, 3, 6, 6)
        assert_equal(model(x.to(DEVICE)), network()(x))


@pytest.mark.full
def test_a_moved_package_runs_without_a_compiler(packaged: str, tmp_path: Path) -> None:
    """The package contains the compiled code."""
    moved = shutil.copy(packaged, tmp_path / "elsewhere.pt2")
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CXX": "/bin/false"}
    run_python(
        f"""
        import torch
        x = torch.ones(3, 3, 6, 6, device="{DEVICE}")
        one, other = torch._inductor.aoti_load_package({str(moved)!r})(x)
        assert one.shape == (3, 4) and other.device == x.device
        """,
        environment,
    )


@pytest.mark.full
@needs_two_devices
def test_a_package_runs_on_another_device(packaged: str) -> None:
    model = torch._inductor.aoti_load_package(packaged, device_index=1)
    x = torch.randn(3, 3, 6, 6)
    results = model(x.to(f"{DEVICE}:1"))
    assert {each.device.index for each in results} == {1}
    assert_equal(results, network()(x))


def load_other_weights(model: Any) -> Network:
    """Load weights into a compiled model, and return the network that has them on the CPU."""
    # Inductor inlines a weight whose elements are all equal as a number, and drops its name.
    known = model.get_constant_fqns()
    state = network().state_dict()
    state |= {name: state[name] + 1 for name in known}
    weights = {name: state[name].to(DEVICE) for name in known}
    model.load_constants(weights, check_full_update=True)
    expected = network()
    expected.load_state_dict(state)
    return expected


@pytest.mark.full
def test_weights_are_in_device_memory_and_freed_with_the_model(packaged: str) -> None:
    backend.synchronize()
    before = backend.memory_allocated()
    model = torch._inductor.aoti_load_package(packaged)
    assert backend.memory_allocated() > before
    expected = load_other_weights(model)
    x = torch.randn(2, 3, 6, 6)
    assert_equal(model(x.to(DEVICE)), expected(x))
    del model
    backend.synchronize()
    assert backend.memory_allocated() == before


@pytest.mark.full
def test_other_streams_read_the_loaded_weights(packaged: str) -> None:
    keep_busy()
    model = torch._inductor.aoti_load_package(packaged)
    x = torch.randn(2, 3, 6, 6)
    stream = torch.Stream(device=DEVICE)
    with stream:
        assert_equal(model(x.to(DEVICE)), network()(x))
    keep_busy()
    expected = load_other_weights(model)
    with stream:
        assert_equal(model(x.to(DEVICE)), expected(x))


class Folded(nn.Module):
    """A product with a value that depends only on weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 12).view(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.mT.sin()


@pytest.mark.full
def test_other_streams_read_the_folded_constants(tmp_path: Path) -> None:
    x = torch.linspace(-1, 1, 8).view(2, 4)
    with torch._inductor.config.patch({"aot_inductor.use_runtime_constant_folding": True}):
        file = package(Folded().to(DEVICE), tmp_path, x.to(DEVICE))
    model = torch._inductor.aoti_load_package(file)
    keep_busy()
    model(x.to(DEVICE))  # folds the constants
    with torch.Stream(device=DEVICE):
        assert_equal([model(x.to(DEVICE))], [Folded()(x)])


class Operators(nn.Module):
    """Operators for which Inductor writes special calls."""

    def forward(self, x: Tensor) -> Any:
        heads = x.view(1, 4, 3, 2)
        grouped = heads[:, :2]
        once = nn.functional.scaled_dot_product_attention(heads, grouped, grouped, enable_gqa=True)
        twice = nn.functional.scaled_dot_product_attention(once, heads, heads, is_causal=True)
        rows = x.view(4, 6)
        largest = rows.scatter_reduce(0, rows.argsort(0), rows, "amax")
        chosen = rows.clone()
        chosen[rows > 0] = rows[rows > 0] * 2
        product = torch.addbmm(rows[:3, :3], heads[0], heads[0].mT)
        complexes = torch.view_as_complex(x.view(12, 2)) * 2 + 1
        return twice, largest, chosen, product, complexes.abs()


def test_a_package_with_special_operators(tmp_path: Path) -> None:
    x = torch.linspace(-1, 1, 24)
    model = torch._inductor.aoti_load_package(package(Operators(), tmp_path, x.to(DEVICE)))
    assert_equal(model(x.to(DEVICE)), Operators()(x))


class Draws(nn.Module):
    def forward(self, x: Tensor) -> Any:
        drawn = torch.randn(4, device=x.device), torch.randint(2, 9, (3,), device=x.device)
        return *drawn, torch.rand_like(x), torch.dropout(x, 0.5, train=True)


@pytest.mark.full
def test_random_numbers_equal_those_of_eager_calls(tmp_path: Path) -> None:
    x = torch.ones(6, device=DEVICE)
    model = torch._inductor.aoti_load_package(package(Draws(), tmp_path, x))
    torch.testing.assert_close(list(seeded(model, x)), list(seeded(Draws(), x)), rtol=0, atol=0)


def test_weights_on_the_host_are_refused(tmp_path: Path) -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("host", torch.arange(12.0))
            self.weight = nn.Parameter(torch.ones(12, device=DEVICE))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weight + (self.host * 2).to(x.device)

    with pytest.raises(Exception, match=f"host.*is on the CPU: move it to {DEVICE}"):
        package(Mixed(), tmp_path, torch.ones(12, device=DEVICE))


def test_cpp_wrapper_with_a_compiler_without_kernels_raises() -> None:
    run_python(
        f"""
        import torch
        compiled = torch.compile(lambda x: x.sin() + 1, options={{"cpp_wrapper": True}})
        try:
            compiled(torch.ones(3, device="{DEVICE}"))
        except Exception as error:
            assert "the compiler 'operators' writes none" in str(error), error
        else:
            raise AssertionError
        """,
        {f"{ENV_PREFIX}_COMPILER": "operators"},
    )


@pytest.mark.full
def test_operators_compiled_by_impl_with_aoti_compile(tmp_path: Path) -> None:
    """The next process reads the cache of ``Library._impl_with_aoti_compile``."""
    code = f"""
        import torch
        library = torch.library.Library("aten", "IMPL")
        for name in ("sinh", "add.Tensor"):
            library._impl_with_aoti_compile(name, "PrivateUse1")
        x, y = torch.randn(5, 6), torch.randn(6)
        torch.testing.assert_close(torch.sinh(x.to("{DEVICE}")).cpu(), x.sinh())
        torch.testing.assert_close((x.to("{DEVICE}") + y.to("{DEVICE}")).cpu(), x + y)
        """
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    run_python(code, cache)
    run_python(code, {**cache, "CXX": "/bin/false"})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.full
def test_cpp_wrapper_gives_the_same_results(function: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    x, y = torch.randn(6, 9), torch.randn(6, 9)
    compiled = torch.compile(function, options={"cpp_wrapper": True})
    assert_equal(compiled(x.to(DEVICE), y.to(DEVICE)), function(x, y))


@pytest.mark.full
def test_cpp_wrapper_gives_the_same_gradients() -> None:
    torch._dynamo.reset()
    models = network(), network().to(DEVICE)
    compiled = torch.compile(models[1], options={"cpp_wrapper": True})
    x = torch.randn(2, 3, 6, 6)
    results = models[0](x), compiled(x.to(DEVICE))
    for result in results:
        result[0].square().sum().backward()
    assert_equal(results[1], results[0])
    assert_equal(*([each.grad for each in model.parameters()] for model in models[::-1]))


@pytest.mark.full
def test_the_cpp_example_runs_a_package(packaged: str, tmp_path: Path) -> None:
    """The example links with the backend and loads the package."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    if len(sys.modules[PACKAGE].__path__) > 1:
        pytest.skip("in an editable install, the libraries are not next to OpenBLAS's package")
    build = tmp_path / "build"
    named = f"-DPython_EXECUTABLE={sys.executable}"
    run("cmake", "-S", EXAMPLES / "aot", "-B", build, named)
    run("cmake", "--build", build)
    printed = run(build / "aot", packaged, "2", "3", "6", "6")
    expected = network()(torch.ones(2, 3, 6, 6))[0]
    numbers = [float(each) for each in printed.split()]
    torch.testing.assert_close(torch.tensor(numbers).view(2, 4), expected, rtol=1e-4, atol=1e-5)


def test_a_launch_with_too_many_groups_is_refused() -> None:
    """Truncated to 32 bits, 2^32 groups would be 0."""
    run_python(
        f"""
        import ctypes, torch
        from pathlib import Path
        folder = Path(torch.{DEVICE}._C.__file__).parent / "lib"
        library = ctypes.CDLL(next(folder.glob("libtorch_*")))
        launch = library.aoti_torch_privateuse1_launch_kernel
        launch.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32]
        launch.argtypes += [ctypes.c_void_p, ctypes.c_size_t]
        assert launch(None, 2**32, 1, None, 0) != 0
        """
    )
