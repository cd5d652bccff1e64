"""All passes in a row."""

from gfcode.xor.compress import Objective, compress
from gfcode.xor.fuse import fuse
from gfcode.xor.program import XorProgram
from gfcode.xor.schedule import schedule

__all__ = ["optimize"]


def optimize(
    program: XorProgram,
    *,
    objective: Objective = "xors",
    capacity: int | None = None,
    seed: int = 0,
    iterations: int = 3000,
    seconds: float | None = None,
) -> XorProgram:
    """Compress, fuse and schedule a program: what an engine wants that is going to compile it.

    Parameters
    ----------
    program : XorProgram
        For example `lower(expand(parity))`.
    objective, seed, iterations, seconds
        As for `compress`. With `"accesses"` temporaries are also summed anew where that saves accesses.
    capacity : int, optional
        As for `schedule`.

    Returns
    -------
    XorProgram
        With the same outputs; instructions have two operands or more.
    """
    compressed = compress(program, objective=objective, seed=seed, iterations=iterations, seconds=seconds)
    fused = fuse(compressed, duplicate=objective == "accesses")
    return schedule(fused, capacity=capacity, seed=seed)
