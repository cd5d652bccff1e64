"""What this machine can do at most: vectors read and written at each level, and instructions by kind, in one thread.

Each ceiling is a loop of its own, compiled for the same target as the kernels. Rates are GB (10^9 bytes) of vectors a
second; those of instructions are as if each handled a vector. Only x86-64 is known here.
"""

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.harness import Figure, environment, interleave
from bench.roofline_counts import jit
from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.compiler import object_code
from gfcode.kernels.simd.target import Target

__all__ = ["Sizes", "ceilings"]

#: Instructions of one turn of a loop in registers, and accumulators that they use in turn.
_UNROLL, _CHAINS = 64, 12
#: Cache lines of each block in a turn of a loop that moves data.
_LINES = 4
#: Blocks that are read side by side from memory, and bytes to ask for ahead.
_STREAMS, _AHEAD = 10, 1024
_CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)


@dataclass(frozen=True)
class Sizes:
    """Bytes that loops go over.

    Attributes
    ----------
    near, middle : int
        Half of the first cache, and of the second.
    far : int
        Far more than all caches.
    """

    near: int
    middle: int
    far: int

    @classmethod
    def here(cls) -> "Sizes":
        """Return the sizes for this machine; L1 and L2 as the system tells, else 32 KiB and 1 MiB."""
        info = environment()
        near, middle = (info.get(name, usual) for name, usual in (("L1 Data", "32K"), ("L2 Unified", "1024K")))
        return cls(_bytes(near) // 2, _bytes(middle) // 2, 640 << 20)


def _bytes(text: str) -> int:
    """Read a size as the kernel writes it."""
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(text.rstrip("KM")) * units.get(text[-1], 1)


class _Loop:
    """A loop as something that can be compiled: name(memory, bytes, times)."""

    symbols: tuple[str, ...] = ()

    def __init__(self, name: str, write: Callable[[Function, Target], None]) -> None:
        self.name = name
        self._write = write

    def emit(self, target: Target) -> str:
        f = Function(self.name, [("ptr", "memory"), ("i64", "bytes"), ("i64", "times")])
        with f.loop("0", "%times"):
            self._write(f, target)
        return f.text()


def _keep(f: Function, target: Target, values: list[str]) -> None:
    """Store the sum of values on the stack, so that none of them is for nothing."""
    total = values[0]
    for value in values[1:]:
        total = f.op(f"xor {target.vector} {total}, {value}")
    f.emit(f'call void asm sideeffect "", "{_REGISTER[target.vector_bytes]}"({target.vector} {total})')


_REGISTER = {16: "x", 32: "x", 64: "v"}


def _reading(streams: int, lines: int, ahead: int) -> Callable[[Function, Target], None]:
    """Read: `lines` cache lines of each of `streams` equal parts of the memory in a turn."""

    def write(f: Function, target: Target) -> None:
        kind, width = target.vector, target.vector_bytes
        part = f.op(f"and i64 {f.op(f'udiv i64 %bytes, {streams}')}, {-64 * lines}")
        zeros = [(kind, "zeroinitializer")] * 8
        with f.loop("0", part, 64 * lines, zeros) as turn:
            values = list(turn.values)
            for stream in range(streams):
                base = f.address("%memory", f.op(f"add i64 {turn.index}, {f.op(f'mul i64 {part}, {stream}')}"))
                if ahead:
                    for line in range(lines):
                        f.prefetch(f.address(base, ahead + 64 * line))
                for number, offset in enumerate(range(0, 64 * lines, width)):
                    slot = (stream * lines + number) % len(values)
                    values[slot] = f.op(f"xor {kind} {values[slot]}, {f.load(kind, f.address(base, offset))}")
            turn.carry(values)
        _keep(f, target, turn.values)

    return write


def _moving(reads: int, writes: int, *, ahead: int, streaming: bool) -> Callable[[Function, Target], None]:
    """Read `reads` parts of the memory side by side, and write their sum to `writes` further parts."""

    def write(f: Function, target: Target) -> None:
        kind, width = target.vector, target.vector_bytes
        step = 64 * _LINES
        part = f.op(f"and i64 {f.op(f'udiv i64 %bytes, {reads + writes}')}, {-step}")
        with f.loop("0", part, step) as turn:
            sums = ["zeroinitializer"] * (step // width)
            for stream in range(reads + writes):
                base = f.address("%memory", f.op(f"add i64 {turn.index}, {f.op(f'mul i64 {part}, {stream}')}"))
                places = [f.address(base, offset) for offset in range(0, step, width)]
                if stream >= reads:
                    for place, value in zip(places, sums, strict=True):
                        f.store(kind, value, place, width, streaming=streaming)
                    continue
                if ahead:
                    for line in range(_LINES):
                        f.prefetch(f.address(base, ahead + 64 * line))
                sums = [
                    f.op(f"xor {kind} {value}, {f.load(kind, place)}")
                    for value, place in zip(sums, places, strict=True)
                ]

    return write


def _writing(*, streaming: bool) -> Callable[[Function, Target], None]:
    def write(f: Function, target: Target) -> None:
        with f.loop("0", "%bytes", 512) as turn:
            base = f.address("%memory", turn.index)
            for offset in range(0, 512, target.vector_bytes):
                f.store(
                    target.vector, "zeroinitializer", f.address(base, offset), target.vector_bytes, streaming=streaming
                )
        f.barrier()

    return write


def _computing(instruction: str, operands: str, terms: int) -> Callable[[Function, Target], None]:
    """Do one instruction over and over, on registers."""

    def write(f: Function, target: Target) -> None:
        kind = target.vector
        with f.loop("0", "%bytes", _UNROLL * target.vector_bytes, [(kind, "zeroinitializer")] * _CHAINS) as turn:
            values = list(turn.values)
            for number in range(_UNROLL):
                slot = number % _CHAINS
                others = [values[(slot + step) % _CHAINS] for step in range(terms)]
                arguments = ", ".join(f"{kind} {value}" for value in others)
                values[slot] = f.op(f'call {kind} asm "{instruction}", "{operands}"({arguments})')
            turn.carry(values)
        _keep(f, target, turn.values)

    return write


def _issuing(f: Function, target: Target) -> None:
    """Do nothing, as fast as instructions can be read."""
    with f.loop("0", "%bytes", _UNROLL * target.vector_bytes):
        for _ in range(_UNROLL):
            f.emit('call void asm sideeffect "nop", ""()')


def _loops(target: Target, shapes: Iterable[tuple[int, int]]) -> dict[str, _Loop]:
    width = target.vector_bytes
    old = width == 16  # two operands, the first of which is overwritten
    register = "v" if width == 64 else "x"
    two, three = (
        (f"={register},0,{register}", "{} $2, $0") if old else (f"={register},{register},{register}", "{} $2, $1, $0")
    )
    found = {
        "read L1": _reading(1, 16, 0),
        "read L2": _reading(1, 16, 0),
        "read memory": _reading(_STREAMS, 2, _AHEAD),
        "write L1": _writing(streaming=False),
        "write L2": _writing(streaming=False),
        "write memory": _writing(streaming=width == 64),
        "xor": _computing(three.format("vpxorq" if width == 64 else "pxor" if old else "vpxor"), two, 2),
        "shuffle": _computing(three.format("pshufb" if old else "vpshufb"), two, 2),
        "instructions": _issuing,
    }
    if width == 64:
        found["ternary"] = _computing("vpternlogq $$150, $3, $2, $0", "=v,0,v,v", 3)
    if target.product == "affine":
        found["affine"] = _computing("vgf2p8affineqb $$0, $2, $1, $0", two, 2)
    for reads, writes in shapes:
        found[f"move {reads} to {writes} L2"] = _moving(reads, writes, ahead=0, streaming=False)
        found[f"move {reads} to {writes} memory"] = _moving(reads, writes, ahead=_AHEAD, streaming=width == 64)
    return {name: _Loop("loop" + "".join(filter(str.isalnum, name)), write) for name, write in found.items()}


def ceilings(target: Target, sizes: Sizes, shapes: Iterable[tuple[int, int]], *, rounds: int) -> Mapping[str, Figure]:
    """Measure all ceilings of a target that runs here.

    Parameters
    ----------
    target : Target
    sizes : Sizes
    shapes : iterable of (int, int)
        Blocks that are read side by side, and blocks that are written.
    rounds : int

    Returns
    -------
    mapping of str to Figure
        GB of vectors a second; "instructions" as if each were a vector; "move" counts what is read only.

    Raises
    ------
    ValueError
        If the target is not x86-64.
    """
    if not target.x86:
        raise ValueError("ceilings are measured on x86-64 only")
    memory = np.zeros(sizes.far + 4096, np.uint8)
    memory[:] = 1  # zero pages would all be the same one
    start = memory.ctypes.data + -memory.ctypes.data % 4096
    calls, amounts, kept = {}, {}, []
    for name, loop in _loops(target, shapes).items():
        engine, addresses = jit(object_code(loop, target), target, (loop.name,))
        kept.append(engine)
        size = {"L1": sizes.near, "L2": sizes.middle}.get(name[-2:], sizes.far if "memory" in name else 1 << 20)
        part, parts, read = size, 1, 1
        if name.startswith("move"):
            read = int(name.split()[1])
            parts = read + int(name.split()[3])
            part = size // parts // (64 * _LINES) * (64 * _LINES)
        elif name == "read memory":
            part, parts, read = size // _STREAMS // 128 * 128, _STREAMS, _STREAMS
        times = max(1, (4 << 20) // size)
        call = _CALL(addresses[loop.name])
        calls[name] = partial(call, start, part * parts // 4096 * 4096 if parts == 1 else part * parts, times)
        amounts[name] = part * read * times
    return interleave(calls, amounts, rounds=rounds)
