"""Fuse: fewer memory accesses for the same XORs, by instructions of many operands.

A temporary that only one instruction uses need not be stored and loaded again: its operands can stand in its place
(deforestation; Uezato, SC'21). `split` is the way back, to two operands each.
"""

from gfcode.xor.interpret import masks, prove
from gfcode.xor.network import Network
from gfcode.xor.program import XorProgram

__all__ = ["fuse", "split"]


def fuse(program: XorProgram, *, duplicate: bool = False) -> XorProgram:
    """Fold temporaries into the instructions that use them.

    Parameters
    ----------
    program : XorProgram
    duplicate : bool
        Also fold temporaries with several users, at the price of XORs, where that saves memory accesses. To store and
        load a sum of a operands for u users costs a + 1 + u accesses, to sum it anew in each u · a.

    Returns
    -------
    XorProgram
        With the same outputs. Equal values are computed once, unused ones not at all. Without `duplicate` neither
        XORs nor memory accesses grow.
    """
    before = masks(program)
    network = Network(program)
    network.dirty.update(network.operands)
    _tidy(network)
    while duplicate:
        gains = [(_gain(network, node), -node) for node in network.temporaries()]
        gain, node = max(gains, default=(0, 0))
        if gain <= 0:
            break
        network.inline(-node)
        _tidy(network)
    return prove(before, network.program())


def _tidy(network: Network) -> None:
    while network.dirty:
        network.tidy()


def _gain(network: Network, node: int) -> int:
    """Memory accesses that folding a temporary into all its users saves, cancellation apart."""
    operands, users = len(network.operands[node]), len(network.users[node])
    return operands + 1 - users * (operands - 1)


def split(program: XorProgram) -> XorProgram:
    """Rewrite every instruction as a chain of two-operand XORs, in the order of its operands."""
    numbers = list(range(program.inputs))
    instructions: list[tuple[int, ...]] = []
    for first, *others in program.instructions:
        total = numbers[first]
        for operand in others:
            instructions.append((total, numbers[operand]))
            total = program.inputs + len(instructions) - 1
        numbers.append(total)
    outputs = tuple(numbers[value] if value >= 0 else value for value in program.outputs)
    return prove(masks(program), XorProgram(program.inputs, tuple(instructions), outputs))
