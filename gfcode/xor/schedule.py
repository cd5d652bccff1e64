"""Schedule: an order of instructions in which values are used soon after they are computed.

The order changes no XOR and no access, only how long values must be kept: in registers, where a kernel holds them
there, or in a cache. Finding the best order is NP-hard (Sethi, "Complete register allocation problems", 1975), so
several are made and the best one is taken: the order given; depth-first orders, which compute each operand just before
it is needed; and bottom-up orders, which always take the ready instruction that frees most or finds most of its
operands in the cache (both from Uezato, SC'21, section 6).
"""

from gfcode.errors import ParameterError
from gfcode.xor.compress import generator
from gfcode.xor.interpret import masks, prove
from gfcode.xor.memory import cache_capacity, cache_loads
from gfcode.xor.program import XorProgram

__all__ = ["schedule"]


def schedule(program: XorProgram, *, capacity: int | None = None, seed: int = 0, tries: int = 24) -> XorProgram:
    """Reorder instructions, and the operands of each, for registers or for a cache.

    Parameters
    ----------
    program : XorProgram
    capacity : int, optional
        Blocks that a cache holds: minimise `cache_loads` with it, then `cache_capacity`. By default minimise
        `live_registers`, then `cache_capacity`.
    seed : int
        Of all chance; equal arguments give equal programs.
    tries : int
        Random orders of either kind.

    Returns
    -------
    XorProgram
        With the same outputs, XORs and accesses; not worse than the given one by what is minimised. Instructions that
        no output needs are left out.

    Raises
    ------
    ParameterError
        If the capacity or the number of tries is not positive.
    """
    if tries < 1 or (capacity is not None and capacity < 1):
        raise ParameterError("capacity and tries must be positive")

    def rank(candidate: XorProgram) -> tuple[int, int]:
        first = candidate.live_registers if capacity is None else cache_loads(candidate, capacity)
        return first, cache_capacity(candidate)

    random = generator(seed)
    pending = _needed(program)
    best = _renumber(program, pending)
    best_rank = rank(best)
    for attempt in range(2 * tries):
        noise = [0.0] * program.values if attempt < 2 else [random.random() for _ in range(program.values)]
        order = _depth_first(program, noise) if attempt % 2 else _bottom_up(program, pending, noise, capacity)
        candidate = _renumber(program, order)
        if (candidate_rank := rank(candidate)) < best_rank:
            best, best_rank = candidate, candidate_rank
    return prove(masks(program), best)


def _needed(program: XorProgram) -> list[int]:
    """Return the computed values that outputs depend on, in program order."""
    needed = {value for value in program.outputs if value >= program.inputs}
    for value in range(program.values - 1, program.inputs - 1, -1):
        if value in needed:
            needed.update(program.instructions[value - program.inputs])
    return [value for value in range(program.inputs, program.values) if value in needed]


def _depth_first(program: XorProgram, noise: list[float]) -> list[int]:
    """Compute outputs one after another, the operands of each just before it, those that take most values first."""
    inputs = program.inputs
    sizes = [0] * inputs
    for operands in program.instructions:
        sizes.append(1 + sum(sizes[operand] for operand in operands))
    order: list[int] = []
    done = set(range(inputs))
    outputs = dict.fromkeys(value for value in program.outputs if value >= inputs)
    stack = sorted(outputs, key=lambda value: noise[value], reverse=True)
    while stack:
        value = stack[-1]
        missing = [] if value in done else [x for x in program.instructions[value - inputs] if x not in done]
        if missing:
            # The last one pushed comes first.
            stack += sorted(missing, key=lambda operand: sizes[operand] * (1 + noise[operand]))
            continue
        stack.pop()
        if value not in done:
            done.add(value)
            order.append(value)
    return order


def _bottom_up(program: XorProgram, pending: list[int], noise: list[float], capacity: int | None) -> list[int]:
    """Take, again and again, the ready instruction that suits registers or cache best at that moment."""
    inputs = program.inputs
    operands = {value: program.instructions[value - inputs] for value in pending}
    users: dict[int, list[int]] = {}
    for value in pending:
        for operand in operands[value]:
            users.setdefault(operand, []).append(value)
    missing = {value: sum(operand >= inputs for operand in operands[value]) for value in pending}
    left = {operand: len(readers) for operand, readers in users.items()}
    ready = [value for value in pending if not missing[value]]
    recent: dict[int, None] = {}  # what the cache holds, the most recent last
    limit = capacity or 64

    def merit(value: int) -> tuple[float, float]:
        hot = sum(operand in recent for operand in operands[value]) / len(operands[value])
        freed = sum(operand >= inputs and left[operand] == 1 for operand in operands[value])
        nearer = sum(missing[user] == 1 for user in users.get(value, ()))
        growth = freed - (value in users)
        if capacity is None:
            return growth + 0.25 * nearer + 0.5 * noise[value], hot
        return hot + 0.1 * growth + 0.2 * noise[value], nearer

    order: list[int] = []
    while ready:
        value = max(ready, key=lambda candidate: (merit(candidate), -candidate))
        ready.remove(value)
        order.append(value)
        for touched in (*operands[value], value):
            recent.pop(touched, None)
            recent[touched] = None
            left[touched] = left.get(touched, 0) - (touched != value)
        while len(recent) > limit:
            del recent[next(iter(recent))]
        for user in users.get(value, ()):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return order


def _renumber(program: XorProgram, order: list[int]) -> XorProgram:
    """Write the program in this order, the operands of each instruction by when they were used last, oldest first."""
    inputs = program.inputs
    numbers = {index: index for index in range(-1, inputs)}
    touched = [-1] * program.values
    clock = 0
    instructions: list[tuple[int, ...]] = []
    for value in order:
        # Operands not in the cache come last, so that loading them does not push out those that are.
        row = sorted(
            program.instructions[value - inputs], key=lambda operand: (touched[operand] < 0, touched[operand], operand)
        )
        for operand in (*row, value):
            touched[operand] = clock = clock + 1
        numbers[value] = inputs + len(instructions)
        instructions.append(tuple(numbers[operand] for operand in row))
    return XorProgram(inputs, tuple(instructions), tuple(numbers[value] for value in program.outputs))
