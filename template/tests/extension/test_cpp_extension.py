"""``utils.cpp_extension``: PyTorch's builders with this backend's header and library."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from backend import DEVICE, PACKAGE
from support import run_python

cpp_extension: Any = importlib.import_module(f"{PACKAGE}.utils.cpp_extension")


def test_the_paths_contain_the_header_and_the_library() -> None:
    assert any(
        (Path(path) / DEVICE / "extension.h").is_file() for path in cpp_extension.include_paths()
    )
    assert any(
        (Path(path) / f"lib{PACKAGE}.so").is_file() for path in cpp_extension.library_paths()
    )


def test_arguments_of_the_caller_come_first_and_are_not_changed() -> None:
    mine = {"include_dirs": ["mine"], "library_dirs": ["mine"], "libraries": ["mine"]}
    extension = cpp_extension.CppExtension("name", ["file.cpp"], **mine)
    for given in mine:
        assert getattr(extension, given)[0] == "mine"
        assert mine[given] == ["mine"]
    assert PACKAGE in extension.libraries and "torch" in extension.libraries


def test_arguments_can_be_positional_as_in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    load = create_autospec(cpp_extension.cpp_extension.load)
    monkeypatch.setattr(cpp_extension.cpp_extension, "load", load)
    cpp_extension.load("name", "file.cpp", ["-O1"], extra_ldflags=["-lm"])
    given = load.call_args.kwargs
    assert (given["name"], given["sources"], given["extra_cflags"]) == ("name", "file.cpp", ["-O1"])
    assert given["extra_ldflags"][0] == "-lm" and f"-l{PACKAGE}" in given["extra_ldflags"]
    assert cpp_extension.include_paths("cpu") == cpp_extension.include_paths()
    assert cpp_extension.library_paths("cpu") == cpp_extension.library_paths()


@pytest.mark.full
def test_importing_the_backend_does_not_import_cpp_extension() -> None:
    run_python(
        """
        import sys, torch
        assert "setuptools" not in sys.modules
        assert "torch.utils.cpp_extension" not in sys.modules
        """
    )


@pytest.mark.full
def test_load_inline_calls_the_backend(tmp_path: Path) -> None:
    run_python(
        f"""
        import torch
        from {PACKAGE}.utils.cpp_extension import load_inline

        source = '''
        #include <{DEVICE}/extension.h>
        namespace backend = {PACKAGE}::extension;
        int64_t id() {{ return backend::current_stream().id(); }}
        bool has_handle() {{ return backend::native_handle(backend::current_stream()) != nullptr; }}
        bool is_ours(const at::Tensor& tensor) {{ return backend::is_ours(tensor); }}
        bool is_seen(const at::Tensor& tensor) {{ return backend::host_address(tensor) != nullptr; }}
        void refuse() {{
          backend::native_handle(c10::Stream(c10::Stream::DEFAULT, c10::Device("cpu")));
        }}
        '''
        functions = ["id", "has_handle", "is_ours", "is_seen", "refuse"]
        module = load_inline("inline", source, functions=functions, build_directory={str(tmp_path)!r})
        with torch.Stream(device="{DEVICE}") as stream:
            assert module.id() == stream.stream_id
        assert module.id() == torch.{DEVICE}.default_stream().stream_id
        assert module.has_handle()
        assert module.is_ours(torch.ones(1, device="{DEVICE}")) and not module.is_ours(torch.ones(1))
        addressable = torch.{DEVICE}.get_device_properties().host_addressable
        assert module.is_seen(torch.ones(1, device="{DEVICE}")) == addressable
        assert not module.is_seen(torch.ones(1))
        try:
            module.refuse()
        except RuntimeError as error:
            assert "expected a stream of {DEVICE}" in str(error), error
        else:
            raise AssertionError("a stream of the CPU was taken")
        """
    )
