"""Other erasure coders and the memory's own limits, as calls that handle the same blocks as we do.

ISA-L is called from a compiled loop over the stripes of a batch, as our kernels are: the interpreter's cost is in
neither. Its tables are made before. The others are called as their Python users call them; Jerasure through ctypes.
"""

import ctypes
import glob
import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import host

__all__ = ["Isal", "Jerasure", "PyECLib", "Zfec", "floors", "peers_here"]

Bytes = npt.NDArray[np.uint8]
Call = Callable[[], object]

_PACKET = 64


def _pointers(blocks: Sequence[Bytes]) -> "ctypes.Array[ctypes.c_void_p]":
    return (ctypes.c_void_p * len(blocks))(*[block.__array_interface__["data"][0] for block in blocks])


def _package_version(name: str) -> str:
    """Version of a Debian package, if dpkg knows it."""
    try:
        with open("/var/lib/dpkg/status", encoding="utf-8") as file:
            for entry in file.read().split("\n\n"):
                if entry.startswith(f"Package: {name}\n"):
                    return next(line.split()[1] for line in entry.splitlines() if line.startswith("Version:"))
    except OSError:
        pass
    return "unknown"


class _Code:
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
def _loop() -> tuple[_Code, Any]:
    """Return a function that calls `ec_encode_data` again and again with the same arguments."""
    f = Function(
        "repeat",
        [
            *(("ptr", "function"), ("i64", "times"), ("i32", "length"), ("i32", "k"), ("i32", "rows")),
            *(("ptr", "tables"), ("ptr", "data"), ("ptr", "coding")),
        ],
    )
    with f.loop("0", "%times"):
        f.emit("call void %function(i32 %length, i32 %k, i32 %rows, ptr %tables, ptr %data, ptr %coding)")
    code = _Code(f.text())
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    kinds = (pointer, ctypes.c_int64, number, number, number, pointer, pointer, pointer)
    return code, code.function("repeat", *kinds)


class Isal:
    """ISA-L's `ec_encode_data`, with any matrix.

    Parameters
    ----------
    bundled : bool
        The library inside PyPI's pyeclib wheel; else the system's.
    """

    def __init__(self, *, bundled: bool) -> None:
        if bundled:
            found = importlib.util.find_spec("pyeclib")
            if found is None or found.origin is None:
                raise OSError("pyeclib is not installed")
            folder = os.path.join(os.path.dirname(os.path.dirname(found.origin)), "pyeclib.libs")
            path = next(iter(glob.glob(os.path.join(folder, "libisal*"))), None)
            if path is None:
                raise OSError("pyeclib came without its own ISA-L")
            self.lib = ctypes.CDLL(path)
            self.lib.isal_get_version_str.restype = ctypes.c_char_p
            number = self.lib.isal_get_version_str().decode()
            self.version = f"ISA-L {number} (in pyeclib {metadata.version('pyeclib')})"
        else:
            self.lib = ctypes.CDLL("libisal.so.2")
            self.version = f"ISA-L (Debian libisal2 {_package_version('libisal2')})"
        self._encode = ctypes.cast(self.lib.ec_encode_data, ctypes.c_void_p)

    def _tables(self, matrix: npt.NDArray[Any]) -> Any:
        rows, k = matrix.shape
        flat = (ctypes.c_ubyte * (rows * k))(*matrix.astype(np.uint8).ravel().tolist())
        tables = (ctypes.c_ubyte * (32 * rows * k))()
        self.lib.ec_init_tables(k, rows, flat, tables)
        return tables

    def product(self, matrix: npt.NDArray[Any], inputs: Sequence[Bytes], outputs: Sequence[Bytes], times: int) -> Call:
        """Multiply blocks by a matrix in the `words` layout with w = 8, `times` times in a call."""
        rows, k = matrix.shape
        tables = self._tables(matrix)
        data, coding = _pointers(inputs), _pointers(outputs)
        length = len(inputs[0])
        _, repeat = _loop()
        return lambda: repeat(self._encode, times, length, k, rows, tables, data, coding)

    def update(self, parity: npt.NDArray[Any], index: int, old: Bytes, new: Bytes, outputs: Sequence[Bytes]) -> Call:
        """Patch parities for one changed block: the difference, then `ec_encode_data_update`."""
        rows, k = parity.shape
        tables = self._tables(parity)
        difference = np.zeros_like(old)
        coding = _pointers(outputs)
        delta = ctypes.c_void_p(difference.ctypes.data)

        def call() -> None:
            np.bitwise_xor(old, new, out=difference)
            self.lib.ec_encode_data_update(len(old), k, rows, index, tables, delta, coding)

        return call

    def xor(self, inputs: Sequence[Bytes], output: Bytes) -> Call | None:
        """`xor_gen`; None where blocks are not aligned as it wants them."""
        blocks = [*inputs, output]
        if any(block.ctypes.data % 32 for block in blocks):
            return None
        pointers = _pointers(blocks)
        return lambda: self.lib.xor_gen(len(blocks), len(output), pointers)


class Zfec:
    """zfec, as a Python user calls it."""

    def __init__(self) -> None:
        import zfec

        self.zfec = zfec
        self.version = f"zfec {metadata.version('zfec')}"

    def encode(self, k: int, m: int, data: Sequence[Bytes]) -> Call:
        """M parity blocks."""
        encoder, blocks = self.zfec.Encoder(k, k + m), [block.data for block in data]
        numbers = list(range(k, k + m))
        return lambda: encoder.encode(blocks, numbers)

    def decode(self, k: int, m: int, data: Sequence[Bytes], lost: Sequence[int]) -> Call:
        """Rebuild the lost data blocks."""
        parity = self.zfec.Encoder(k, k + m).encode([block.data for block in data], list(range(k, k + m)))
        decoder = self.zfec.Decoder(k, k + m)
        numbers = [index for index in range(k) if index not in lost]
        blocks = [data[index].data for index in numbers] + parity[: len(lost)]
        numbers += range(k, k + len(lost))
        return lambda: decoder.decode(blocks, numbers)


class PyECLib:
    """PyECLib with its ISA-L engine, as a Python user calls it: whole objects in, fragments with headers out."""

    def __init__(self) -> None:
        from pyeclib.ec_iface import ECDriver

        self.driver = ECDriver
        self.version = f"pyeclib {metadata.version('pyeclib')} (isa_l_rs_vand)"

    def encode(self, k: int, m: int, data: Sequence[Bytes]) -> Call:
        """Make all fragments."""
        driver = self.driver(k=k, m=m, ec_type="isa_l_rs_vand")
        whole = b"".join(block.tobytes() for block in data)
        return lambda: driver.encode(whole)

    def decode(self, k: int, m: int, data: Sequence[Bytes], lost: Sequence[int]) -> Call:
        """Rebuild the whole object."""
        driver = self.driver(k=k, m=m, ec_type="isa_l_rs_vand")
        fragments = driver.encode(b"".join(block.tobytes() for block in data))
        left = [fragment for index, fragment in enumerate(fragments) if index not in lost][:k]
        return lambda: driver.decode(left)


class Jerasure:
    """Jerasure's cauchy_good with w = 8, by its smart schedules."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libJerasure.so.2")
        self.lib.cauchy_good_general_coding_matrix.restype = ctypes.c_void_p
        self.lib.jerasure_matrix_to_bitmatrix.restype = ctypes.c_void_p
        self.lib.jerasure_smart_bitmatrix_to_schedule.restype = ctypes.c_void_p
        self.version = f"Jerasure cauchy_good (Debian libjerasure2 {_package_version('libjerasure2')})"

    def _bits(self, k: int, m: int) -> ctypes.c_void_p:
        matrix = ctypes.c_void_p(self.lib.cauchy_good_general_coding_matrix(k, m, 8))
        return ctypes.c_void_p(self.lib.jerasure_matrix_to_bitmatrix(k, m, 8, matrix))

    @staticmethod
    def _packet(length: int) -> int:
        """Choose a packet size that divides the block, up to 2 KiB, where Jerasure is at its best."""
        return next(size for size in (2048, 1024, 512, 256, 128, 64, 8) if length % (8 * size) == 0)

    def encode(self, k: int, m: int, data: Sequence[Bytes], parity: Sequence[Bytes]) -> Call:
        """M parity blocks."""
        schedule = ctypes.c_void_p(self.lib.jerasure_smart_bitmatrix_to_schedule(k, m, 8, self._bits(k, m)))
        length, packet = len(data[0]), self._packet(len(data[0]))
        inputs, outputs = _pointers(data), _pointers(parity)
        return lambda: self.lib.jerasure_schedule_encode(k, m, 8, schedule, inputs, outputs, length, packet)

    def decode(self, k: int, m: int, data: Sequence[Bytes], parity: Sequence[Bytes], lost: Sequence[int]) -> Call:
        """Rebuild the lost data blocks, schedules made on the way, as Jerasure has it."""
        bits = self._bits(k, m)
        erasures = (ctypes.c_int * (len(lost) + 1))(*lost, -1)
        length, packet = len(data[0]), self._packet(len(data[0]))
        inputs, outputs = _pointers(data), _pointers(parity)
        return lambda: self.lib.jerasure_schedule_decode_lazy(
            k, m, 8, bits, erasures, inputs, outputs, length, packet, 1
        )


@dataclass(frozen=True)
class _Floor:
    """Reads `inputs` streams a strip at a time, and writes sums to `outputs` others."""

    inputs: int
    outputs: int
    streaming: bool

    def text(self) -> str:
        target = host()
        assert target is not None
        kind, width = target.vector, target.vector_bytes
        f = Function("floor", [("ptr", "row"), ("i64", "times"), ("i64", "length")])
        blocks = [f.pointer("%row", index) for index in range(self.inputs + self.outputs)]
        result = f.op(f"alloca {kind}, align 64")
        with f.loop("0", "%times"), f.loop("0", "%length", 8 * width) as position:
            sums = ["zeroinitializer"] * 8
            for block in blocks[: self.inputs]:
                base = f.address(block, position.index)
                for step in range(8):
                    value = f.load(kind, f.address(base, step * width))
                    sums[step] = f.op(f"xor {kind} {sums[step]}, {value}")
            for block in blocks[self.inputs :]:
                base = f.address(block, position.index)
                for step in range(8):
                    pointer = f.address(base, step * width)
                    f.store(kind, sums[step], pointer, width if self.streaming else 1, streaming=self.streaming)
            if not self.outputs:
                total = sums[0]
                for value in sums[1:]:
                    total = f.op(f"xor {kind} {total}, {value}")
                f.emit(f"store volatile {kind} {total}, ptr {result}, align 64")
        return f.text() + "\n!0 = !{i32 1}"


@cache
def _floor_code(inputs: int, outputs: int, streaming: bool) -> tuple[_Code, Any]:
    code = _Code(_Floor(inputs, outputs, streaming).text())
    return code, code.function("floor", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def floors(data: Sequence[Bytes], outputs: Sequence[Bytes], times: int) -> dict[str, Call]:
    """Do what memory allows: read the data; read it and write as many bytes as there are outputs; copy it."""
    k, length = len(data), len(data[0])
    if length % (8 * 64):
        return {}
    rows = _pointers([*data, *outputs])
    calls: dict[str, Call] = {}
    aligned = all(block.ctypes.data % 64 == 0 for block in outputs)
    for name, count, streaming in (("read", 0, False), ("read+write", len(outputs), False)) + (
        (("read+stream", len(outputs), True),) if aligned and length >= 1 << 20 else ()
    ):
        _, run = _floor_code(k, count, streaming)
        calls[f"floor: {name}"] = partial(run, rows, times, length)
    copies = [np.empty_like(block) for block in data]

    def copy() -> None:
        for _ in range(times):
            for target, source in zip(copies, data, strict=True):
                np.copyto(target, source)

    calls["floor: copy"] = copy
    return calls


def peers_here() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the peers that are installed, by name, and why the others are not there."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    makers: dict[str, Callable[[], Any]] = {
        "isal": lambda: Isal(bundled=True),
        "isal-debian": lambda: Isal(bundled=False),
        "zfec": Zfec,
        "pyeclib": PyECLib,
        "jerasure": Jerasure,
    }
    for name, make in makers.items():
        try:
            found[name] = make()
        except (ImportError, OSError, AttributeError) as error:
            missing[name] = str(error)
    return found, missing
