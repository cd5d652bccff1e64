"""Compilers at run time by their C interface, which NVRTC and HIPRTC share but for names."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any


def compile_by(
    library: ctypes.CDLL, prefix: str, kind: str, source: str, headers: Mapping[str, str], options: Sequence[str]
) -> bytes:
    """Compile as the engine does through CuPy; the log is the error.

    Parameters
    ----------
    library : CDLL
    prefix : {"nvrtc", "hiprtc"}
        Of the library's functions.
    kind : {"CUBIN", "Code"}
        What its machine code is called in their names.
    source : str
    headers : mapping of str to str
        Texts by the names under which they are included.
    options : sequence of str
    """

    def call(name: str, *arguments: Any) -> int:
        return int(getattr(library, prefix + name)(*arguments))

    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    count = ctypes.c_int(len(headers))
    call("CreateProgram", ctypes.byref(program), source.encode(), b"kernel.cu", count, texts, names)
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if code := call("CompileProgram", program, ctypes.c_int(len(options)), flags):
            call("GetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value + 1)
            call("GetProgramLog", program, log)
            raise AssertionError(log.value.decode() or f"error {code}")
        call(f"Get{kind}Size", program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        call(f"Get{kind}", program, image)
        return image.raw
    finally:
        call("DestroyProgram", ctypes.byref(program))
