"""torch.linalg where it is unusual: out=, no elements, odd layouts, errors, other streams."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from core.linalg_cases import (
    CLOSE,
    OF_ANY,
    OF_HERMITIAN,
    OF_SQUARE,
    SOLVERS,
    Function,
    hermitian,
    rows,
)
from support import (
    assert_same,
    compare,
    compare_gradients,
    natively,
    needs,
    run_python,
    sample,
    supported,
)
from torch import linalg

pytestmark = needs(torch.float32, torch.int32, torch.int64)


def test_out() -> None:
    a, b = hermitian(2, 4, 4), rows(2, 4, 3)
    on_device = [x.to(DEVICE) for x in (a, b)]
    for function in (linalg.cholesky, linalg.inv, linalg.det, linalg.eigvalsh, linalg.svdvals):
        for out in (
            torch.empty(0, device=DEVICE),
            torch.zeros(*function(a).shape, 2, device=DEVICE)[..., 0],
        ):
            with natively():
                assert function(on_device[0], out=out) is out
            assert_same(out, function(a), **CLOSE)
    out = torch.empty(0, device=DEVICE)
    linalg.solve(*on_device, out=out)
    assert_same(out, linalg.solve(a, b), **CLOSE)
    outs = [torch.empty(0, device=DEVICE) for _ in range(3)]
    linalg.svd(on_device[0], out=tuple(outs))
    assert_same(outs[0] * outs[1].unsqueeze(-2) @ outs[2], a, **CLOSE)
    with pytest.raises(RuntimeError, match=r"(?i)dtype|type"):
        linalg.cholesky(on_device[0], out=torch.empty(0, dtype=torch.int32, device=DEVICE))


@pytest.mark.parametrize(
    "shape", [(0, 0), (3, 0, 0), (0, 3), (3, 0), (0, 3, 3), (2, 0, 3)], ids=str
)
def test_without_elements(shape: tuple[int, ...]) -> None:
    values = torch.empty(shape)
    for name in ("lu", "lu_factor", "qr", "qr, complete", "svdvals", "svd, full", "pinv"):
        compare(OF_ANY[name], values)
    if shape[-1] == shape[-2]:
        for name in ("inv", "det", "slogdet", "matrix_exp", "eigvals"):
            compare(OF_SQUARE[name], values)
        for name in ("cholesky", "cholesky_ex", "eigvalsh", "ldl_factor", "eigh"):
            compare(OF_HERMITIAN[name], values)
        for name in ("solve", "lu_solve", "solve_triangular", "cholesky_solve"):
            compare(SOLVERS[name], values, torch.empty(*shape[:-1], 2))


def test_inputs_of_any_layout_stay_as_they_are() -> None:
    base = hermitian(6, 12, 12).to(DEVICE)
    for view in (
        base,
        base.mT,
        base[::2, 2:9, 2:9],
        base[1:2].expand(4, -1, -1),
        base[:, 1::2, 1::2],
    ):
        before = base.clone()
        for name in ("cholesky", "eigh"):
            compare(OF_HERMITIAN[name], view.cpu(), **CLOSE)
            OF_HERMITIAN[name](view)
        for name in ("inv", "det", "eig"):
            OF_SQUARE[name](view)
        for name in ("lu", "qr", "svd"):
            OF_ANY[name](view)
        assert base.equal(before)


ERRORS: dict[str, Function] = {
    "cholesky": lambda x: linalg.cholesky(-x),
    "cholesky, of one matrix": lambda x: linalg.cholesky(-x[0]),
    "cholesky of NaN": lambda x: linalg.cholesky(x * torch.nan),
    "inv": lambda x: linalg.inv(x * 0),
    "solve": lambda x: linalg.solve(x * 0, x),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(x * 0),
    "lu without pivots": lambda x: linalg.lu_factor(x, pivot=False),
    "svd of NaN": lambda x: linalg.svdvals(x * torch.nan),
    "eigh of NaN": lambda x: linalg.eigh(x * torch.nan),
    "eig of infinity": lambda x: linalg.eig(x / 0),
    "not square": lambda x: linalg.inv(x[:, :2]),
    "integers": lambda x: linalg.inv(x.to(torch.int64)),
    "shapes": lambda x: linalg.solve(x, x[:, :2]),
    "a driver": lambda x: linalg.lstsq(x, x, driver="gelsz"),
    "rows of a batch": lambda x: linalg.lstsq(x[:1, :1, :1], x[0, :, :1]),
    "UPLO": lambda x: linalg.eigh(x, UPLO="X"),
    "a mode": lambda x: linalg.qr(x, "whole"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_the_cpus(name: str) -> None:
    values = hermitian(2, 3, 3)
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises(RuntimeError) as caught:
            ERRORS[name](values.to(device))
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    if isinstance(errors[0], torch.linalg.LinAlgError):
        assert str(errors[0]) == str(errors[1])


@pytest.mark.parametrize("of", [linalg.svd, linalg.svdvals, linalg.pinv, linalg.cond])
def test_infinity_has_no_singular_values(of: Function) -> None:
    """The CPU's library says so or gives NaN, as sizes are."""
    values = hermitian(3, 3).to(DEVICE)
    values[1, 2] = torch.inf
    with pytest.raises(linalg.LinAlgError, match="contained non-finite values"):
        of(values)


def test_what_is_not_finite_has_eigenvalues_that_are_no_numbers() -> None:
    values = hermitian(2, 4, 4)
    values[1, 2, 2] = torch.nan
    found = linalg.eigvals(values.to(DEVICE)).cpu()
    assert found[0].sum().isclose(linalg.eigvals(values[0]).sum(), **CLOSE)
    assert found[1].isnan().any()


def test_what_fails_without_an_exception_says_so() -> None:
    values = torch.stack([hermitian(4, 4), -hermitian(4, 4), hermitian(4, 4)])
    for device in ("cpu", DEVICE):
        assert linalg.cholesky_ex(values.to(device)).info.tolist() == [0, 1, 0]
        assert linalg.inv_ex(values.to(device) * 0).info.tolist() == [1, 1, 1]


def test_what_the_cpu_does_in_lower_precision_stays_the_fallbacks() -> None:
    """The family takes float32 and wider; narrower numbers go the way of other operators."""
    if torch.float16 not in supported():
        pytest.skip("generated without float16")
    values = sample(4, 3, dtype=torch.float16, low=-1, high=1)
    assert_same(
        linalg.svdvals(values.to(DEVICE)).float(),
        linalg.svdvals(values.float()),
        rtol=1e-2,
        atol=1e-2,
    )


def test_other_functions_of_torch_linalg() -> None:
    compare(lambda a, b: linalg.multi_dot([a, b, a]), rows(3, 4), rows(4, 3), **CLOSE)
    compare(
        lambda x: linalg.tensorinv(x, ind=1), sample(6, 2, 3, low=-1, high=1), rtol=1e-2, atol=1e-2
    )
    compare(linalg.tensorsolve, rows(6, 2, 3), rows(6), rtol=1e-2, atol=1e-2)
    compare(linalg.vander, rows(4), **CLOSE)
    compare(linalg.cross, rows(4, 3), rows(4, 3), **CLOSE)
    compare(linalg.vecdot, rows(4, 3), rows(4, 3), **CLOSE)
    compare(linalg.vector_norm, rows(4, 3), **CLOSE)
    compare(linalg.norm, rows(4, 3), **CLOSE)
    compare(linalg.diagonal, rows(4, 3))
    compare(linalg.matmul, rows(4, 3), rows(3, 4), **CLOSE)
    compare(torch.logdet, hermitian(3, 4, 4), **CLOSE)


@pytest.mark.skipif(
    not hasattr(backend, "default_generators"), reason="generated without generators of the device"
)
def test_functions_that_begin_with_random_matrices() -> None:
    torch.manual_seed(0)
    with natively():
        torch.svd_lowrank(rows(9, 7).to(DEVICE), q=3)
        torch.pca_lowrank(rows(9, 7).to(DEVICE), q=3)
        torch.lobpcg(hermitian(9, 9).to(DEVICE), k=2)


def test_a_gaussian_process_is_fitted() -> None:
    """The marginal likelihood and its gradient, of which most is linear algebra."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        scale = x[0].exp()
        points = torch.linspace(0, 1, 20, device=x.device)
        distances = (points.unsqueeze(0) - points.unsqueeze(1)).square()
        kernel = torch.exp(-distances / scale) + x[1].exp() * torch.eye(20, device=x.device)
        factor = linalg.cholesky(kernel)
        solved = linalg.solve_triangular(factor, points.sin().unsqueeze(1), upper=False)
        return solved.square().sum() + 2 * factor.diagonal().log().sum()

    with natively():
        compare_gradients(loss, torch.tensor([-1.0, -2.0]), rtol=1e-3, atol=1e-3)


def test_factors_are_taken_on_the_stream_of_the_call() -> None:
    run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        stream = backend.Stream()
        x = torch.eye(64, device="{DEVICE}") * 4
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            factor = torch.linalg.cholesky_ex(x).L
        backend.current_stream().wait_stream(stream)
        assert factor.cpu().equal(torch.eye(64) * 2)
        """
    )


@pytest.mark.parametrize(("of", "other"), [((1, 0), (1, 0)), ((3, 0), (3, 2)), ((0, 3), (0, 2))])
@pytest.mark.parametrize("driver", ["gels", "gelsd"])
def test_least_squares_of_nothing(driver: str, of: tuple[int, int], other: tuple[int, int]) -> None:
    def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = linalg.lstsq(a, b, driver=driver).solution
        return result

    compare(solve, torch.ones(of), torch.ones(other))


def test_a_product_into_one_of_its_vectors_is_refused() -> None:
    one, other = (sample(4, 3, seed=seed).to(DEVICE) for seed in range(2))
    for arguments in ((one, other), (other, one)):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            linalg.cross(*arguments, out=one)
