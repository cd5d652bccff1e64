"""Where the values of a program live, and how a cache sees it.

A program that is run packet by packet over long blocks keeps its values in memory, where a cache of few blocks holds
those used last. `allocate` gives temporaries blocks that are used again as soon as they are free; the model of the
cache counts what Uezato (SC'21, section 6) counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gfcode.xor.program import XorProgram

__all__ = ["Allocation", "allocate", "cache_capacity", "cache_loads"]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Blocks for the values of a program.

    Attributes
    ----------
    blocks : tuple of int
        Block of each value: inputs have their own, 0 .. c − 1; then come those of the r outputs, c .. c + r − 1; the
        others are scratch. (Of equal outputs, and outputs that are inputs, only the first has its block written.)
    scratch : int
        Scratch blocks needed.
    written : int
        Blocks that instructions write to, of outputs and scratch (Uezato: NVar).
    """

    blocks: tuple[int, ...]
    scratch: int
    written: int


def allocate(program: XorProgram) -> Allocation:
    """Place every value in a block, scratch blocks being used again when free, the last one freed first.

    A result may take the block of an operand that is not used afterwards. A temporary on its way to an output is built
    up in the output's block if that is free, and so needs none of its own.
    """
    inputs, last = program.inputs, program.last_uses
    homes: dict[int, int] = {}
    for index, value in enumerate(program.outputs):
        if value >= inputs:
            homes.setdefault(value, inputs + index)
    # The output block that each temporary ends up in, found from its last user backwards.
    targets = dict(homes)
    for value in range(program.values - 1, inputs - 1, -1):
        if value not in targets and last[value] >= 0 and inputs + last[value] in targets:
            targets[value] = targets[inputs + last[value]]
    blocks = list(range(inputs))
    taken: set[int] = set()
    free: list[int] = []
    scratch = 0
    for index, operands in enumerate(program.instructions):
        value = inputs + index
        for operand in operands:
            if operand >= inputs and last[operand] == index and operand not in homes:
                block = blocks[operand]
                taken.discard(block)
                if block >= inputs + len(program.outputs):
                    free.append(block)
        block = targets.get(value, -1)
        if value not in homes and (block < 0 or block in taken):
            if not free:
                free.append(inputs + len(program.outputs) + scratch)
                scratch += 1
            block = free.pop()
        taken.add(block)
        blocks.append(block)
    return Allocation(tuple(blocks), scratch, len(set(blocks[inputs:])))


def _accesses(program: XorProgram) -> Iterator[tuple[int, bool]]:
    """Yield the blocks that the instructions use in turn, and whether they are read (or else written whole)."""
    blocks = allocate(program).blocks
    for value, operands in enumerate(program.instructions, program.inputs):
        for operand in operands:
            yield blocks[operand], True
        yield blocks[value], False


def cache_loads(program: XorProgram, capacity: int) -> int:
    """Count the reads that miss a cache of `capacity` blocks which replaces the one used least recently.

    Every input needed is loaded once at least; the count above that is loads of what was there before.
    """
    cache: dict[int, None] = {}
    loads = 0
    for block, read in _accesses(program):
        if block in cache:
            del cache[block]
        else:
            loads += read
            if len(cache) >= capacity:
                del cache[next(iter(cache))]
        cache[block] = None
    return loads


def cache_capacity(program: XorProgram) -> int:
    """Find the smallest number of blocks in such a cache for which none is loaded twice (Uezato: CCap)."""
    stack: list[int] = []  # the most recently used block last
    capacity = 0
    for block, read in _accesses(program):
        if block in stack:
            position = stack.index(block)
            if read:
                capacity = max(capacity, len(stack) - position)
            del stack[position]
        stack.append(block)
    return capacity
