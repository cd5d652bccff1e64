"""The kernels' sources and how they are built: what a compiler is given, and the key under which its output is kept."""

import functools
import hashlib
from collections.abc import Mapping
from importlib import resources

from gfcode.kernels.cuda.launch import Build, DeviceInfo

__all__ = ["build_key", "headers_for", "kernel_source", "options_for"]


@functools.cache
def _sources() -> Mapping[str, str]:
    folder = resources.files("gfcode.kernels.cuda") / "src"
    return {entry.name: entry.read_text() for entry in folder.iterdir() if entry.name.endswith((".cu", ".cuh"))}


def kernel_source(build: Build) -> str:
    """Text of the kernel's own source."""
    return _sources()[build.source]


def headers_for(build: Build) -> dict[str, str]:
    """Every header by the name under which it is included; the generated one is program.cuh."""
    headers = {name: text for name, text in _sources().items() if name.endswith(".cuh")}
    if build.program:
        headers["program.cuh"] = build.program
    return headers


def options_for(build: Build, device: DeviceInfo) -> tuple[str, ...]:
    """List the flags of NVRTC or HIPRTC: machine code for one architecture, leaving the driver nothing to compile.

    HIPRTC compiles for the current device unless it is told otherwise, and takes no PTX.
    """
    target = "-DGFCODE_NO_PTX=1" if device.gfx else f"--gpu-architecture={device.architecture}"
    return (target, "--std=c++17", *(f"-D{name}={value}" for name, value in build.defines))


def build_key(build: Build, device: DeviceInfo, compiler: str) -> bytes:
    """Key of a compiled kernel: everything that its machine code depends on."""
    digest = hashlib.sha256()
    parts = [compiler, device.architecture, kernel_source(build), *options_for(build, device)]
    parts.extend(f"{name}\0{text}" for name, text in sorted(headers_for(build).items()))
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.digest()
