"""Constants of the build. CMake generates `_build.py`."""

NAME: str
"""The device string, which is also the name of `torch.<name>`."""
ENV_PREFIX: str
"""The prefix of the names of environment variables."""
TORCH_VERSION: str
"""The PyTorch release that the package was compiled against."""
INTERFACE_VERSION: int
"""The version of the device headers that the package was compiled against."""
DEVICE_PACKAGES: tuple[str, ...]
"""The Python packages with shared libraries that the device library needs."""
