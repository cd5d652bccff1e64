"""Every pass keeps the outputs of every program, and does not make worse what it is for."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gfcode.xor.compress import compress, paar, repair
from gfcode.xor.fuse import fuse, split
from gfcode.xor.interpret import interpret, masks, matrix
from gfcode.xor.lower import lower
from gfcode.xor.memory import allocate, cache_capacity, cache_loads
from gfcode.xor.optimize import optimize
from gfcode.xor.program import ZERO, XorProgram
from gfcode.xor.schedule import schedule

#: A busy machine is no failure.
UNTIMED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def programs(draw: st.DrawFn) -> XorProgram:
    """Draw programs with repeated, unused, cancelling and copied values."""
    inputs = draw(st.integers(0, 9))
    instructions: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(0, 14)) if inputs > 1 else 0):
        values = st.integers(0, inputs + len(instructions) - 1)
        instructions.append(tuple(draw(st.lists(values, min_size=2, max_size=5, unique=True))))
    outputs = draw(st.lists(st.integers(ZERO, inputs + len(instructions) - 1), max_size=9))
    return XorProgram(inputs, tuple(instructions), tuple(outputs))


@UNTIMED
@given(programs(), st.integers(0, 2**32))
def test_compress(program: XorProgram, seed: int) -> None:
    for objective in ("xors", "accesses"):
        compressed = compress(program, seed=seed, iterations=20, restarts=1, objective=objective)
        assert masks(compressed) == masks(program)
        assert all(len(operands) == 2 for operands in compressed.instructions)
        if objective == "xors":
            assert compressed.xors <= min(program.xors, lower(matrix(program)).xors)
        else:
            assert fuse(compressed).memory_accesses <= fuse(program).memory_accesses


@UNTIMED
@given(programs(), st.integers(0, 2**32))
def test_paar_and_repair(program: XorProgram, seed: int) -> None:
    plain = lower(matrix(program)).xors
    for start in (paar(program, seed), repair(program, seed)):
        assert masks(start) == masks(program)
        assert start.xors <= plain


@UNTIMED
@given(programs())
def test_fuse_and_split(program: XorProgram) -> None:
    for other in (fuse(program), split(program), fuse(split(program)), fuse(program, duplicate=True)):
        assert masks(other) == masks(program)
    assert split(program).xors == program.xors
    assert fuse(program).xors <= program.xors
    assert fuse(program).memory_accesses <= program.memory_accesses
    assert fuse(program, duplicate=True).memory_accesses <= fuse(program).memory_accesses
    users = [operand for operands in fuse(program).instructions for operand in operands]
    temporaries = set(range(program.inputs, fuse(program).values)) - set(fuse(program).outputs)
    assert all(users.count(value) > 1 for value in temporaries)


@pytest.mark.parametrize("capacity", [None, 3, 8])
@UNTIMED
@given(program=programs(), seed=st.integers(0, 2**32))
def test_schedule(program: XorProgram, seed: int, capacity: int | None) -> None:
    scheduled = schedule(program, capacity=capacity, seed=seed, tries=2)
    assert masks(scheduled) == masks(program)
    assert scheduled.xors <= program.xors
    if capacity is None:
        assert scheduled.live_registers <= program.live_registers


@UNTIMED
@given(programs())
def test_allocation_runs_as_the_program_does(program: XorProgram) -> None:
    """Running in the blocks of the allocation, overwriting what is free, leaves the right outputs."""
    allocation = allocate(program)
    blocks = [1 << index for index in range(program.inputs)] + [-1] * (len(program.outputs) + allocation.scratch)
    for value, operands in enumerate(program.instructions, program.inputs):
        result = 0
        for operand in operands:
            assert blocks[allocation.blocks[operand]] >= 0
            result ^= blocks[allocation.blocks[operand]]
        assert allocation.blocks[value] >= program.inputs
        blocks[allocation.blocks[value]] = result
    expected = masks(program)
    for index, value in enumerate(program.outputs):
        if value >= program.inputs:
            assert blocks[allocation.blocks[value]] == expected[index]
            if value not in program.outputs[:index]:
                assert allocation.blocks[value] == program.inputs + index


@UNTIMED
@given(programs())
def test_cache_model_agrees_with_itself(program: XorProgram) -> None:
    """Loads fall with the capacity, to one a block read, and `cache_capacity` is where they get there."""
    enough = cache_capacity(program)
    loads = [cache_loads(program, capacity) for capacity in range(1, enough + 3)]
    assert loads == sorted(loads, reverse=True)
    used = {operand for operands in program.instructions for operand in operands if operand < program.inputs}
    if enough:
        assert loads[enough - 1] == len(used)
    if enough > 1:
        assert loads[enough - 2] > len(used)


@UNTIMED
@given(programs(), st.integers(0, 40), st.integers(0, 2**32))
def test_interpret_multiplies_by_the_matrix(program: XorProgram, length: int, seed: int) -> None:
    blocks = np.random.default_rng(seed).integers(0, 256, (program.inputs, length), np.uint8)
    bits = np.unpackbits(blocks, axis=1).astype(np.intp)
    expected = np.packbits((matrix(program) @ bits % 2).astype(np.uint8), axis=1)
    result = interpret(program, blocks)
    assert result.shape == (len(program.outputs), length if program.inputs else 0)
    if program.inputs:
        assert np.array_equal(result, expected[:, :length])


@UNTIMED
@given(programs())
def test_programs_survive_json(program: XorProgram) -> None:
    assert XorProgram.from_json(program.to_json()) == program


@settings(UNTIMED, max_examples=20)
@given(st.integers(1, 12), st.integers(1, 70), st.integers(0, 2**32), st.sampled_from(["xors", "accesses"]))
def test_optimize_random_matrices(rows: int, columns: int, seed: int, objective: str) -> None:
    bits = np.random.default_rng(seed).integers(0, 2, (rows, columns), np.uint8)
    plain = lower(bits)
    assert np.array_equal(matrix(plain), bits)
    program = optimize(plain, objective=objective, seed=seed, iterations=10, capacity=16)  # type: ignore[arg-type]
    assert np.array_equal(matrix(program), bits)
    if objective == "xors":
        assert program.xors <= plain.xors
    else:
        assert program.memory_accesses <= plain.memory_accesses
