"""The check of the backend's name, with every reserved word."""

from __future__ import annotations

import subprocess
import sys

import pytest

from maintenance import reserved
from torchsmith import catalog
from torchsmith.catalog import name_problem

RESERVED = catalog.load("reserved")
GROUPS = RESERVED["reserved"]["default"]
WORDS = [(word, group["reason"]) for group in GROUPS for word in group["names"].split()]


@pytest.mark.parametrize("name", ["foo", "acme", "zq", "my_chip", "a_b_c", "npu", "x"])
def test_a_valid_name_is_accepted(name: str) -> None:
    assert name_problem(name) == ""


@pytest.mark.parametrize(
    ("name", "idea"),
    [
        ("Foo", "foo"),
        ("foo2", "foo"),
        ("foo-bar", "foo_bar"),
        ("foo bar", "foo_bar"),
        ("_foo", "foo"),
        ("foo_", "foo"),
        ("foo__bar", "foo_bar"),
        ("42", "foo"),
        ("föö", "f"),
        ("foo\n", "foo"),
        ("CUDA", "my_cuda"),
        ("", "foo"),
    ],
)
def test_a_name_with_invalid_characters_is_refused_with_a_suggestion(name: str, idea: str) -> None:
    assert name_problem(name).endswith(f": try '{idea}'")


def test_every_reserved_word_is_refused_with_its_reason_and_a_valid_suggestion() -> None:
    assert len(WORDS) > 1000
    for word, reason in WORDS:
        said = name_problem(word)
        expected = f"'{word}' {reason.replace('NAME', word)}: try '"
        assert said.startswith(expected)
        assert name_problem(said.removeprefix(expected).removesuffix("'")) == ""


@pytest.mark.parametrize(
    ("name", "prefix"), [("cpu_like", "cpu"), ("cudax", "cuda"), ("mps_two", "mps")]
)
def test_a_prefix_of_pytorchs_own_devices_is_refused(name: str, prefix: str) -> None:
    reason = "by which PyTorch recognises its own devices"
    assert name_problem(name) == f"'{name}' begins with '{prefix}', {reason}: try 'my_{name}'"


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("privateuseone", "device type"),
        ("nn", "torch.nn"),
        ("matmul", "torch.matmul"),
        ("backward", "torch.Tensor.backward"),
        ("zero_grad", "torch.nn.Module.zero_grad"),
        ("resizable", "torch.UntypedStorage.resizable"),
        ("leaf", "torch.Tensor.is_leaf"),
        ("lambda", "keyword of Python"),
        ("namespace", "keyword of C++"),
        ("python", "libtorch_python.so"),
        ("geometric", "another package"),
    ],
)
def test_the_conflicting_name_is_reported(name: str, owner: str) -> None:
    assert owner in name_problem(name)


@pytest.mark.torch
def test_the_reserved_words_match_the_installed_pytorch() -> None:
    """If it is stale, run `make reserved`."""
    assert reserved.RESERVED.read_text("utf-8") == reserved.collect()


@pytest.mark.torch
def test_refused_names_fail_or_conflict_in_rename_privateuse1_backend() -> None:
    """The expected results come from PyTorch, not from the list of reserved words."""
    script = (
        "import sys, torch\n"
        "taken = hasattr(torch, sys.argv[1]) or hasattr(torch.Tensor, sys.argv[1])\n"
        "torch.utils.rename_privateuse1_backend(sys.argv[1])\n"
        "assert str(torch.device(sys.argv[1] + ':1')) == sys.argv[1] + ':1'\n"
        "sys.exit(7 if taken else 0)\n"
    )

    def ask(name: str) -> int:
        command = [sys.executable, "-c", script, name]
        return subprocess.run(command, capture_output=True).returncode

    assert ask("my_chip") == 0
    assert all(ask(name) for name in ("abs", "Foo", "foo2", "cuda"))
