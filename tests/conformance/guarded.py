"""Run an engine on blocks with unreadable pages right before and behind them.

    python -m tests.conformance.guarded ENGINE

An access outside a block ends the process with a signal; a wrong byte ends it with an error.
"""

import ctypes
import mmap
import sys
from collections.abc import Sequence

import numpy as np

from gfcode.engine.protocol import Blocks, Operator
from gfcode.engine.registry import get_engine
from tests.conformance.engines import PAIRS, Bytes, expected, random_product, strips_around

_NO_ACCESS = 0


class Region:
    """Whole pages between two that cannot be touched."""

    def __init__(self, size: int) -> None:
        self.size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, self.size + 2 * mmap.PAGESIZE)
        every = np.frombuffer(self._map, np.uint8)
        address = every.__array_interface__["data"][0]
        libc = ctypes.CDLL(None, use_errno=True)
        for page in (address, address + mmap.PAGESIZE + self.size):
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS):
                raise OSError(ctypes.get_errno(), "mprotect failed")
        self.bytes = every[mmap.PAGESIZE : mmap.PAGESIZE + self.size]

    def block(self, length: int, at_end: bool) -> Bytes:
        """Return the first or the last `length` bytes."""
        return self.bytes[self.size - length :] if at_end else self.bytes[:length]


def gives(operator: Operator, regions: Sequence[Region], data: Bytes, wanted: Bytes, *, at_end: bool) -> bool:
    """Run an operator on one stripe at an end of regions; tell whether it gives the wanted bytes.

    Parameters
    ----------
    operator : Operator
    regions : sequence of Region
        Inputs and outputs.
    data, wanted : array of uint8, shape (c, length) and (r, length)
    at_end : bool
    """
    blocks = [region.block(data.shape[1], at_end) for region in regions]
    inputs, made = blocks[: len(data)], blocks[len(data) : len(data) + len(wanted)]
    for block, values in zip(inputs, data, strict=True):
        block[:] = values
    operator(Blocks.of_buffers(inputs), Blocks.of_buffers(made, writable=True))
    return all((block == values).all() for block, values in zip(made, wanted, strict=True))


def main(name: str) -> None:
    """Run every layout and length that the engine takes, at both ends of guarded regions."""
    rows, columns = 3, 4
    layouts = [layout for engine, layout in PAIRS if engine == name]
    longest = max(max(strips_around(layout)) for layout in layouts)
    regions = [Region(longest) for _ in range(rows + columns)]
    rng = np.random.default_rng(1)
    checked = 0
    for layout in layouts:
        product = random_product(rng, layout, rows, columns)
        operator = get_engine(name).prepare(product)
        for length in strips_around(layout):
            data = rng.integers(0, 256, (1, columns, length), dtype=np.uint8)
            wanted = expected(product, data)[0]
            for at_end in (False, True):
                if not gives(operator, regions, data[0], wanted, at_end=at_end):
                    sys.exit(f"wrong bytes: {layout}, {length} bytes")
                checked += 1
    print(f"{checked} products checked")


if __name__ == "__main__":
    main(sys.argv[1])
