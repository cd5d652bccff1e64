"""The kernels: XOR programs over the blocks of a batch, in either layout.

Both take the addresses of all blocks of a batch, so that one call, without the GIL, does all of it.

A program lists, for each row of XORs, which inputs enter it: `entries[starts[q]:starts[q + 1]]` for row q. In `packets`
row i · w + b makes packet b of output i. In `words` symbols stay whole: row i · w + b gathers the inputs whose
coefficient for output i has bit w − 1 − b set, and the rows of an output are joined by Horner's rule, doubling w − 1
times (multiplication by x, a shift and a conditional XOR in all lanes at once).

Whatever is left over at the end of a span is covered by a last step that overlaps the one before it: outputs do not
overlap inputs, so that computing a byte twice does no harm.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numba import types

from gfcode.kernels.portable.compile import compile_kernel, helper
from gfcode.kernels.portable.vectors import doubling, vector_functions

__all__ = ["BIT_FIELD", "packets_kernel", "words_kernel"]

#: Bits of an entry of a `packets` program that number the packet within a strip; the bits above number the input.
BIT_FIELD: Final = 5
_BIT_MASK: Final = (1 << BIT_FIELD) - 1

_LINE: Final = 64
# Bytes of a step in `words`: eight 16-byte registers or four of 32 bytes, within what any CPU has.
_STEP: Final = 128
# Strips are taken four at a time, to fetch each entry of the program once for all, while their inputs stay within L2.
_GROUP: Final = 4
_GROUPED_BYTES: Final = 1 << 18

_TABLE: Final = types.Array(types.uint64, 2, "C", readonly=True)
_PROGRAM: Final = types.Array(types.uint32, 1, "C", readonly=True)
_PACKETS_SIGNATURE: Final = types.void(_TABLE, _TABLE, types.int64, types.int64, types.int64, _PROGRAM, _PROGRAM)
_WORDS_SIGNATURE: Final = types.void(_TABLE, _TABLE, types.int64, types.int64, _PROGRAM, _PROGRAM)


def _packets_step(size: int) -> Callable[..., None]:
    """Make the function that computes `size` bytes of every packet of one strip of all outputs."""
    zero, load, store, xor = vector_functions(size)

    def step(
        sources: Any, targets: Any, position: Any, w: Any, packet: Any, starts: Any, entries: Any
    ) -> None:  # pragma: no cover - runs compiled
        row = np.uint64(0)
        for i in range(targets.shape[0]):
            target = targets[i] + position
            for b in range(w):
                total = zero()
                for e in range(np.uint64(starts[row]), np.uint64(starts[row + np.uint64(1)])):
                    entry = np.uint64(entries[e])
                    offset = (entry & np.uint64(_BIT_MASK)) * packet + position
                    total = xor(total, load(sources[entry >> np.uint64(BIT_FIELD)] + offset))
                store(target + np.uint64(b) * packet, total)
                row += np.uint64(1)

    return helper(step, size)


def _packets_group() -> Callable[..., None]:
    """Make the function that computes four lines, `gap` bytes apart, of every packet of all outputs."""
    zero, load, store, xor = vector_functions(_LINE)

    def group(
        sources: Any, targets: Any, position: Any, gap: Any, w: Any, packet: Any, starts: Any, entries: Any
    ) -> None:  # pragma: no cover - runs compiled
        gap2, gap3 = gap + gap, gap + gap + gap
        row = np.uint64(0)
        for i in range(targets.shape[0]):
            target = targets[i] + position
            for b in range(w):
                total0, total1, total2, total3 = zero(), zero(), zero(), zero()
                for e in range(np.uint64(starts[row]), np.uint64(starts[row + np.uint64(1)])):
                    entry = np.uint64(entries[e])
                    offset = (entry & np.uint64(_BIT_MASK)) * packet + position
                    source = sources[entry >> np.uint64(BIT_FIELD)] + offset
                    total0 = xor(total0, load(source))
                    total1 = xor(total1, load(source + gap))
                    total2 = xor(total2, load(source + gap2))
                    total3 = xor(total3, load(source + gap3))
                address = target + np.uint64(b) * packet
                store(address, total0)
                store(address + gap, total1)
                store(address + gap2, total2)
                store(address + gap3, total3)
                row += np.uint64(1)

    return helper(group, _LINE)


_word, _line, _group = _packets_step(8), _packets_step(_LINE), _packets_group()


@helper
def _long_packets(
    sources: Any, targets: Any, length: Any, w: Any, packet_bytes: Any, starts: Any, entries: Any
) -> None:  # pragma: no cover - runs compiled
    for base in range(0, length, w * packet_bytes):
        for start in range(0, packet_bytes, _GROUP * _LINE):
            position = np.uint64(base + min(start, packet_bytes - _GROUP * _LINE))
            _group(sources, targets, position, np.uint64(_LINE), w, np.uint64(packet_bytes), starts, entries)


@helper
def _grouped_strips(
    sources: Any, targets: Any, length: Any, w: Any, packet_bytes: Any, starts: Any, entries: Any
) -> None:  # pragma: no cover - runs compiled
    strip = w * packet_bytes
    for first in range(0, length, _GROUP * strip):
        base = min(first, length - _GROUP * strip)
        for start in range(0, packet_bytes, _LINE):
            position = np.uint64(base + min(start, packet_bytes - _LINE))
            _group(sources, targets, position, np.uint64(strip), w, np.uint64(packet_bytes), starts, entries)


@helper
def _single_strips(
    sources: Any, targets: Any, length: Any, w: Any, packet_bytes: Any, starts: Any, entries: Any
) -> None:  # pragma: no cover - runs compiled
    for base in range(0, length, w * packet_bytes):
        if packet_bytes >= _LINE:
            for start in range(0, packet_bytes, _LINE):
                position = np.uint64(base + min(start, packet_bytes - _LINE))
                _line(sources, targets, position, w, np.uint64(packet_bytes), starts, entries)
        else:
            for start in range(0, packet_bytes, 8):
                _word(sources, targets, np.uint64(base + start), w, np.uint64(packet_bytes), starts, entries)


@lru_cache
def packets_kernel() -> Callable[..., None]:
    """Compile the kernel of the `packets` layout.

    Returns
    -------
    callable
        (inputs, outputs, length, w, packet_bytes, starts, entries): two tables of addresses of shape (stripes, blocks),
        three integers, and the program as uint32; an entry is input · 2^`BIT_FIELD` + packet.
    """

    def kernel(
        inputs: Any, outputs: Any, length: Any, w: Any, packet_bytes: Any, starts: Any, entries: Any
    ) -> None:  # pragma: no cover - runs compiled
        group_bytes = _GROUP * w * packet_bytes
        for s in range(inputs.shape[0]):
            if packet_bytes >= _GROUP * _LINE:
                _long_packets(inputs[s], outputs[s], length, w, packet_bytes, starts, entries)
            elif packet_bytes >= _LINE and length >= group_bytes and inputs.shape[1] * group_bytes <= _GROUPED_BYTES:
                _grouped_strips(inputs[s], outputs[s], length, w, packet_bytes, starts, entries)
            else:
                _single_strips(inputs[s], outputs[s], length, w, packet_bytes, starts, entries)

    return compile_kernel(kernel, "packets", _PACKETS_SIGNATURE)


def _words_step(size: int, w: int) -> Callable[..., None]:
    """Make the function that computes `size` bytes of all outputs."""
    zero, load, store, xor = vector_functions(size)
    double = doubling(size, w)

    def step(
        sources: Any, targets: Any, position: Any, polynomial: Any, starts: Any, entries: Any
    ) -> None:  # pragma: no cover - runs compiled
        row = np.uint64(0)
        for i in range(targets.shape[0]):
            total = zero()
            for _ in range(w):
                total = double(total, polynomial)
                for e in range(np.uint64(starts[row]), np.uint64(starts[row + np.uint64(1)])):
                    total = xor(total, load(sources[np.uint64(entries[e])] + position))
                row += np.uint64(1)
            store(targets[i] + position, total)

    return helper(step, size, w)


@lru_cache
def words_kernel(w: int) -> Callable[..., None]:
    """Compile the kernel of the `words` layout for w = 4, 8, 16 or 32.

    Returns
    -------
    callable
        (inputs, outputs, length, polynomial, starts, entries): two tables of addresses of shape (stripes, blocks), the
        polynomial without its x^w bit, and the program as uint32; an entry is the number of an input.
    """
    symbol = max(w, 8) // 8
    short = 16
    one, few, many = _words_step(symbol, w), _words_step(short, w), _words_step(_STEP, w)

    def kernel(
        inputs: Any, outputs: Any, length: Any, polynomial_bits: Any, starts: Any, entries: Any
    ) -> None:  # pragma: no cover - runs compiled
        polynomial = np.uint64(polynomial_bits)
        for s in range(inputs.shape[0]):
            sources, targets = inputs[s], outputs[s]
            if length >= _STEP:
                for start in range(0, length, _STEP):
                    many(sources, targets, np.uint64(min(start, length - _STEP)), polynomial, starts, entries)
            elif length >= short:
                for start in range(0, length, short):
                    few(sources, targets, np.uint64(min(start, length - short)), polynomial, starts, entries)
            else:
                for start in range(0, length, symbol):
                    one(sources, targets, np.uint64(start), polynomial, starts, entries)

    return compile_kernel(kernel, f"words{w}", _WORDS_SIGNATURE)
