"""Programs for the GPU's register file: what they compute, what they cost, what they hold."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gfcode.gf import GF
from gfcode.kernels.cuda.xor_lowering import accumulate, horner_step, three_input_xors
from gfcode.kernels.cuda.xor_text import live_words, program_text
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.xor.program import ZERO, XorProgram
from tests.gpu.harness import random_matrix


def meaning(program: XorProgram) -> np.ndarray:
    """Return the bit matrix that a program computes."""
    values = list(np.eye(program.inputs, dtype=np.uint8))
    for operands in program.instructions:
        values.append(np.bitwise_xor.reduce([values[operand] for operand in operands]))
    return np.array([np.zeros(program.inputs, np.uint8) if v == ZERO else values[v] for v in program.outputs])


@given(st.integers(0, 1 << 30), st.integers(1, 3), st.integers(1, 4), st.sampled_from((2, 4, 8)))
def test_accumulated_programs_compute_their_matrix(seed: int, rows: int, columns: int, planes: int) -> None:
    rng = np.random.default_rng(seed)
    bits = (rng.random((rows * planes, columns * planes)) < rng.random()).astype(np.uint8)
    program = accumulate(bits, planes)
    assert np.array_equal(meaning(program), bits)
    assert three_input_xors(program) <= three_input_xors(accumulate_plain(bits, planes)) + rows * planes


def test_every_block_is_loaded_and_stored_once() -> None:
    bits = expand(random_matrix(np.random.default_rng(1), 8, 3, 6))
    bits[:, 16:24] = 0  # a block that no output needs
    text = program_text(accumulate(bits, 8), 8)
    assert [text.count(f"lane.load(i{block}, {block})") for block in range(6)] == [1, 1, 0, 1, 1, 1]
    assert [text.count(f"lane.store(o, {row})") for row in range(3)] == [1, 1, 1]


def test_sharing_saves_and_registers_stay_few() -> None:
    bits = expand(parity_matrix("cauchy-good", GF(8), 10, 4))
    program = accumulate(bits, 8)
    assert three_input_xors(program) < 0.95 * three_input_xors(accumulate_plain(bits, 8))
    assert live_words(program, 8) <= 32 + 2 * 8 + 12


def accumulate_plain(bits: np.ndarray, planes: int) -> XorProgram:
    """Write the same sums block by block, without sharing."""
    instructions: list[tuple[int, ...]] = []
    width, outputs = bits.shape[1], []
    for row in bits:
        total = ZERO
        for start in range(0, width, planes):
            terms = [int(start + i) for i in np.flatnonzero(row[start : start + planes])]
            terms += [total] if total != ZERO else []
            if len(terms) > 1:
                instructions.append(tuple(terms))
                total = width + len(instructions) - 1
            elif terms:
                total = terms[0]
        outputs.append(total)
    return XorProgram(width, tuple(instructions), tuple(outputs))


@given(st.lists(st.integers(1, 255), min_size=1, max_size=4))
def test_horner_steps_multiply_and_add(ratios: list[int]) -> None:
    field = GF(8)
    squares = [expand(Matrix(field, [[ratio]])) for ratio in ratios]
    rows = len(ratios)
    wanted = np.zeros((8 * rows, 8 * rows + 8), np.uint8)
    for i, square in enumerate(squares):
        wanted[8 * i : 8 * i + 8, 8 * i : 8 * i + 8] = square
        wanted[8 * i : 8 * i + 8, 8 * rows :] = np.eye(8, dtype=np.uint8)
    assert np.array_equal(meaning(horner_step(squares)), wanted)
