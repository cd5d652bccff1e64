"""ISA-L at the instruction sets that it was written for, in compiled loops over the stripes of a batch.

Its functions are called again and again from machine code, as our kernels are, so that the interpreter's cost is in
neither; tables are made before. The upper halves of vector registers are cleared before each loop, so that what ran
before costs ISA-L nothing. By name of an instruction set its own function for that set is called, past the choice that
the library makes by itself.
"""

import ctypes
import glob
import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function

__all__ = ["ISAS", "Code", "Isal", "package_version", "pointers"]

Bytes = npt.NDArray[np.uint8]
Call = Callable[[], object]

#: Instruction sets: what ISA-L's functions for coding and for sums end with, and whether their tables are GFNI's.
ISAS = {
    "native": ("", "", False),
    "sse": ("_sse", "_sse", False),
    "avx2": ("_avx2", "_avx", False),
    "avx512": ("_avx512", "_avx512", False),
    "avx2-gfni": ("_avx2_gfni", "_avx", True),
    "avx512-gfni": ("_avx512_gfni", "_avx512", True),
}


def pointers(blocks: Sequence[Bytes]) -> "ctypes.Array[ctypes.c_void_p]":
    """Addresses of blocks, as C functions take them."""
    return (ctypes.c_void_p * len(blocks))(*[block.__array_interface__["data"][0] for block in blocks])


def package_version(name: str) -> str:
    """Version of a Debian package, if dpkg knows it."""
    try:
        with open("/var/lib/dpkg/status", encoding="utf-8") as file:
            for entry in file.read().split("\n\n"):
                if entry.startswith(f"Package: {name}\n"):
                    return next(line.split()[1] for line in entry.splitlines() if line.startswith("Version:"))
    except OSError:
        pass
    return "unknown"


class Code:
    """Machine code from LLVM text; it lives as long as this object."""

    def __init__(self, text: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
        )
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        self._engine.finalize_object()

    def function(self, name: str, *kinds: Any) -> Any:
        """Return a function that releases the interpreter's lock."""
        return ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))


@cache
def _loop(kinds: tuple[str, ...]) -> tuple[Code, Any]:
    """Return a function that calls another again and again with the same arguments: pointers and 32-bit integers."""
    arguments = [(kind, f"a{index}") for index, kind in enumerate(kinds)]
    f = Function("repeat", [("ptr", "function"), ("i64", "times"), *arguments])
    if llvm.get_host_cpu_features().get("avx"):
        f.emit("call void @llvm.x86.avx.vzeroupper()")
    with f.loop("0", "%times"):
        f.emit(f"call void %function({', '.join(f'{kind} %{name}' for kind, name in arguments)})")
    code = Code(f.text() + "\ndeclare void @llvm.x86.avx.vzeroupper()\n")
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    return code, code.function(
        "repeat", pointer, ctypes.c_int64, *(pointer if kind == "ptr" else number for kind in kinds)
    )


class Isal:
    """ISA-L, with any matrix over GF(2^8)/0x11d in the `words` layout.

    Parameters
    ----------
    bundled : bool
        The library inside PyPI's pyeclib wheel; else the system's.
    isa : str
        A key of `ISAS`; "native" leaves the choice to the library.

    Raises
    ------
    OSError
        If the library is not installed.
    AttributeError
        If it has no functions for that instruction set.
    """

    def __init__(self, *, bundled: bool, isa: str = "native") -> None:
        if bundled:
            self._lib = ctypes.CDLL(_bundled())
            self._lib.isal_get_version_str.restype = ctypes.c_char_p
            number = self._lib.isal_get_version_str().decode()
            self.version = f"ISA-L {number} (in pyeclib {metadata.version('pyeclib')})"
        else:
            self._lib = ctypes.CDLL("libisal.so.2")
            self.version = f"ISA-L (Debian libisal2 {package_version('libisal2')})"
        coding, sums, gfni = ISAS[isa]
        if isa != "native":
            self.version += f", its code for {isa}"
        self._encode = self._address(f"ec_encode_data{coding}")
        self._update = self._address(f"ec_encode_data_update{coding}")
        self._xor = self._address(f"xor_gen{sums}")
        # Tables for GFNI are others. Releases without GFNI have one kind.
        one_kind = isa == "native" or (not gfni and not hasattr(self._lib, "ec_init_tables_base"))
        self._init = getattr(self._lib, "ec_init_tables" + ("" if one_kind else "_gfni" if gfni else "_base"))

    def _address(self, name: str) -> ctypes.c_void_p:
        return ctypes.cast(getattr(self._lib, name), ctypes.c_void_p)

    def _tables(self, matrix: npt.NDArray[Any]) -> Any:
        rows, k = matrix.shape
        flat = (ctypes.c_ubyte * (rows * k))(*matrix.astype(np.uint8).ravel().tolist())
        tables = (ctypes.c_ubyte * (32 * rows * k))()
        self._init(k, rows, flat, tables)
        return tables

    def product(self, matrix: npt.NDArray[Any], inputs: Sequence[Bytes], outputs: Sequence[Bytes], times: int) -> Call:
        """Multiply blocks by a matrix, `times` times in a call: `ec_encode_data`."""
        rows, k = matrix.shape
        tables = self._tables(matrix)
        data, coding = pointers(inputs), pointers(outputs)
        length = len(inputs[0])
        _, repeat = _loop(("i32", "i32", "i32", "ptr", "ptr", "ptr"))
        return lambda: repeat(self._encode, times, length, k, rows, tables, data, coding)

    def update(self, parity: npt.NDArray[Any], index: int, old: Bytes, new: Bytes, outputs: Sequence[Bytes]) -> Call:
        """Patch parities for one changed block: the difference, then `ec_encode_data_update`."""
        rows, k = parity.shape
        tables = self._tables(parity)
        difference = np.zeros_like(old)
        coding = pointers(outputs)
        delta = ctypes.c_void_p(difference.ctypes.data)
        length = len(old)
        _, repeat = _loop(("i32", "i32", "i32", "i32", "ptr", "ptr", "ptr"))

        def call() -> None:
            np.bitwise_xor(old, new, out=difference)
            repeat(self._update, 1, length, k, rows, index, tables, delta, coding)

        return call

    def xor(self, inputs: Sequence[Bytes], output: Bytes, times: int) -> Call | None:
        """Sum blocks, `times` times in a call: `xor_gen`; None where blocks are not aligned as it wants them."""
        blocks = [*inputs, output]
        if any(block.ctypes.data % 64 for block in blocks):
            return None
        arguments, length = pointers(blocks), len(output)
        _, repeat = _loop(("i32", "i32", "ptr"))
        return lambda: repeat(self._xor, times, len(blocks), length, arguments)


def _bundled() -> str:
    """Path of the library inside pyeclib's wheel."""
    found = importlib.util.find_spec("pyeclib")
    if found is None or found.origin is None:
        raise OSError("pyeclib is not installed")
    folder = os.path.join(os.path.dirname(os.path.dirname(found.origin)), "pyeclib.libs")
    path = next(iter(glob.glob(os.path.join(folder, "libisal*"))), None)
    if path is None:
        raise OSError("pyeclib came without its own ISA-L")
    return path
