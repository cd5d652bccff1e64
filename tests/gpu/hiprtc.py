"""HIPRTC, ROCm's compiler at run time: code for AMD's GPUs without one, and what its notes say of it."""

import ctypes
import ctypes.util
import functools
from collections.abc import Mapping, Sequence

from tests.gpu.runtime_compiler import compile_by


@functools.cache
def _library() -> ctypes.CDLL | None:
    """HIPRTC is a library of its own in newer releases, and part of the HIP runtime in older ones."""
    for name in (ctypes.util.find_library("hiprtc"), ctypes.util.find_library("amdhip64"), "libamdhip64.so.5"):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None and hasattr(library, "hiprtcCompileProgram"):
            return library
    return None


def missing() -> str | None:
    """Why kernels cannot be compiled for AMD's GPUs here; None if they can."""
    if _library() is None:
        return "HIPRTC is not installed: apt-get install libamdhip64-5 libhiprtc-builtins5"
    try:
        compile_code("__global__ void k() {}\n", {}, ("--offload-arch=gfx90a",))
    except AssertionError as error:
        return f"HIPRTC does not work: {str(error).splitlines()[0]}"
    return None


def compile_code(source: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
    """Compile to a code object; the log is the error."""
    library = _library()
    assert library is not None
    return compile_by(library, "hiprtc", "Code", source, headers, options)


def note(image: bytes, name: str) -> int:
    """Read a number of the only kernel from the notes of a code object, which are MessagePack."""
    (_, rest) = image.split(b"." + name.encode(), 1)
    if rest[0] < 0x80:
        return rest[0]
    size = {0xCC: 1, 0xCD: 2, 0xCE: 4}[rest[0]]
    return int.from_bytes(rest[1 : 1 + size], "big")
