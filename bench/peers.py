"""Other erasure coders and the memory's own limits, as calls that handle the same blocks as we do.

`bench.isal` calls ISA-L. The others are called as their Python users call them; Jerasure through ctypes. Each checks
that it rebuilds the data before it is measured.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.isal import Code, Isal, package_version, pointers
from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target, host

__all__ = ["Isal", "Jerasure", "PyECLib", "Zfec", "floors", "peers_here"]

Bytes = npt.NDArray[np.uint8]
Call = Callable[[], object]


class Zfec:
    """zfec, as a Python user calls it."""

    def __init__(self) -> None:
        import zfec

        self._zfec = zfec
        self.version = f"zfec {metadata.version('zfec')}"

    def takes(self, k: int, m: int) -> bool:
        """Whether it has such a code."""
        return k + m <= 256

    def encode(self, data: Sequence[Bytes], parity: Sequence[Bytes]) -> Call:
        """As many parity blocks as `parity` has, in memory of its own."""
        k, m = len(data), len(parity)
        encoder, blocks = self._zfec.Encoder(k, k + m), [block.data for block in data]
        numbers = list(range(k, k + m))
        return lambda: encoder.encode(blocks, numbers)

    def rebuild(self, data: Sequence[Bytes], parity: Sequence[Bytes], lost: Sequence[int]) -> Call:
        """Rebuild lost data blocks."""
        k = len(data)
        made = self.encode(data, parity)()
        assert isinstance(made, list)
        decoder = self._zfec.Decoder(k, k + len(parity))
        numbers = [index for index in range(k) if index not in lost]
        blocks = [data[index].data for index in numbers] + made[: len(lost)]
        numbers += range(k, k + len(lost))

        def call() -> Any:
            return decoder.decode(blocks, numbers)

        assert [bytes(block) for block in call()] == [block.tobytes() for block in data], "zfec gives wrong bytes"
        return call


class PyECLib:
    """PyECLib with its ISA-L engine, as a Python user calls it: whole objects in, fragments with headers out."""

    def __init__(self) -> None:
        from pyeclib.ec_iface import ECDriver

        self._driver = ECDriver
        self.version = f"pyeclib {metadata.version('pyeclib')} (isa_l_rs_vand)"

    def takes(self, k: int, m: int) -> bool:
        """Whether it has such a code."""
        return k + m <= 32

    def encode(self, data: Sequence[Bytes], parity: Sequence[Bytes]) -> Call:
        """Make all fragments, in memory of its own."""
        driver = self._driver(k=len(data), m=len(parity), ec_type="isa_l_rs_vand")
        whole = b"".join(block.tobytes() for block in data)
        return lambda: driver.encode(whole)

    def rebuild(self, data: Sequence[Bytes], parity: Sequence[Bytes], lost: Sequence[int]) -> Call:
        """Rebuild the whole object; one fragment where one is lost."""
        k = len(data)
        driver = self._driver(k=k, m=len(parity), ec_type="isa_l_rs_vand")
        whole = b"".join(block.tobytes() for block in data)
        fragments = driver.encode(whole)
        left = [fragment for index, fragment in enumerate(fragments) if index not in lost][:k]
        if len(lost) == 1:
            assert driver.reconstruct(left, list(lost)) == [fragments[lost[0]]], "pyeclib gives wrong bytes"
            return lambda: driver.reconstruct(left, list(lost))
        assert driver.decode(left) == whole, "pyeclib gives wrong bytes"
        return lambda: driver.decode(left)


class Jerasure:
    """Jerasure's cauchy_good with w = 8, by its smart schedules."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libJerasure.so.2")
        self._lib.cauchy_good_general_coding_matrix.restype = ctypes.c_void_p
        self._lib.jerasure_matrix_to_bitmatrix.restype = ctypes.c_void_p
        self._lib.jerasure_smart_bitmatrix_to_schedule.restype = ctypes.c_void_p
        self.version = f"Jerasure cauchy_good (Debian libjerasure2 {package_version('libjerasure2')})"

    def takes(self, k: int, m: int) -> bool:
        """Whether it has such a code."""
        return k + m <= 256

    def _bits(self, k: int, m: int) -> ctypes.c_void_p:
        matrix = ctypes.c_void_p(self._lib.cauchy_good_general_coding_matrix(k, m, 8))
        return ctypes.c_void_p(self._lib.jerasure_matrix_to_bitmatrix(k, m, 8, matrix))

    @staticmethod
    def _packet(length: int) -> int:
        """Choose a packet size that divides the block, up to 2 KiB, where Jerasure is at its best."""
        return next(size for size in (2048, 1024, 512, 256, 128, 64, 8) if length % (8 * size) == 0)

    def encode(self, data: Sequence[Bytes], parity: Sequence[Bytes]) -> Call:
        """Write the parity blocks."""
        k, m = len(data), len(parity)
        schedule = ctypes.c_void_p(self._lib.jerasure_smart_bitmatrix_to_schedule(k, m, 8, self._bits(k, m)))
        length, packet = len(data[0]), self._packet(len(data[0]))
        inputs, outputs = pointers(data), pointers(parity)
        return lambda: self._lib.jerasure_schedule_encode(k, m, 8, schedule, inputs, outputs, length, packet)

    def rebuild(self, data: Sequence[Bytes], parity: Sequence[Bytes], lost: Sequence[int]) -> Call:
        """Rebuild lost data blocks where they are, schedules made on the way, as Jerasure has it.

        Nothing else may write to `parity` from here on.
        """
        k, m = len(data), len(parity)
        self.encode(data, parity)()
        bits = self._bits(k, m)
        erasures = (ctypes.c_int * (len(lost) + 1))(*lost, -1)
        length, packet = len(data[0]), self._packet(len(data[0]))
        inputs, outputs = pointers(data), pointers(parity)

        def call() -> None:
            self._lib.jerasure_schedule_decode_lazy(k, m, 8, bits, erasures, inputs, outputs, length, packet, 1)

        whole = [data[index].copy() for index in lost]
        for index in lost:
            data[index][...] = 0
        call()
        right = all((data[index] == block).all() for index, block in zip(lost, whole, strict=True))
        assert right, "Jerasure gives wrong bytes"
        return call


@dataclass(frozen=True)
class _Floor:
    """Reads `inputs` streams a strip at a time, and writes sums to `outputs` others."""

    target: Target
    inputs: int
    outputs: int
    streaming: bool

    def text(self) -> str:
        kind, width = self.target.vector, self.target.vector_bytes
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
def _floor_code(target: Target, inputs: int, outputs: int, streaming: bool) -> tuple[Code, Any]:
    code = Code(_Floor(target, inputs, outputs, streaming).text())
    return code, code.function("floor", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def floors(
    data: Sequence[Bytes], outputs: Sequence[Bytes], times: int, target: Target | None = None
) -> dict[str, Call]:
    """Do what memory allows: read the data; read it and write as many bytes as there are outputs; copy it.

    Parameters
    ----------
    data, outputs : sequences of blocks
    times : int
        How often in a call.
    target : Target, optional
        Whose vectors to use; by default the host's.
    """
    k, length = len(data), len(data[0])
    target = target or host()
    if length % (8 * 64) or target is None:
        return {}
    rows = pointers([*data, *outputs])
    calls: dict[str, Call] = {}
    aligned = all(block.ctypes.data % 64 == 0 for block in outputs)
    for name, count, streaming in (("read", 0, False), ("read+write", len(outputs), False)) + (
        (("read+stream", len(outputs), True),) if aligned and length >= 1 << 20 else ()
    ):
        _, run = _floor_code(target, k, count, streaming)
        calls[f"floor: {name}"] = partial(run, rows, times, length)
    copies = [np.empty_like(block) for block in data]

    def copy() -> None:
        for _ in range(times):
            for target, source in zip(copies, data, strict=True):
                np.copyto(target, source)

    calls["floor: copy"] = copy
    return calls


def peers_here(isa: str = "native") -> tuple[dict[str, Any], dict[str, str]]:
    """Return the peers that are installed, by name, and why the others are not there.

    Parameters
    ----------
    isa : str
        A key of `bench.isal.ISAS`. For any but "native" there is only ISA-L: the others cannot be told.
    """
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    makers: dict[str, Callable[[], Any]] = {
        "isal": lambda: Isal(bundled=True, isa=isa),
        "isal-debian": lambda: Isal(bundled=False, isa=isa),
    }
    if isa == "native":
        makers |= {"zfec": Zfec, "pyeclib": PyECLib, "jerasure": Jerasure}
    for name, make in makers.items():
        try:
            found[name] = make()
        except (ImportError, OSError, AttributeError) as error:
            missing[name] = str(error)
    return found, missing
