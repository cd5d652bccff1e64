"""`XorProgram`: what it accepts, what it counts, how it is exchanged."""

import pickle

import numpy as np
import pytest

from gfcode.errors import BlockError, ParameterError
from gfcode.xor.interpret import interpret, masks, matrix, prove
from gfcode.xor.memory import allocate, cache_capacity, cache_loads
from gfcode.xor.program import ZERO, XorProgram

# Inputs 0 to 3; value 4 = 0 + 1, value 5 = 4 + 2 + 3, value 6 = 4 + 2.
PROGRAM = XorProgram(4, ((0, 1), (4, 2, 3), (4, 2)), (5, 6, 3, ZERO, 6))


def test_metrics_of_a_worked_example() -> None:
    assert PROGRAM.values == 7
    assert PROGRAM.xors == 1 + 2 + 1
    assert PROGRAM.memory_accesses == 3 + 4 + 3
    assert PROGRAM.depths == (0, 0, 0, 0, 1, 2, 2)
    assert PROGRAM.depth == 2
    assert PROGRAM.last_uses == (0, 0, 2, 1, 2, -1, -1)
    # Value 4 is held from its instruction to the last; 5 and 6 are stored at once.
    assert PROGRAM.live_profile == (1, 2, 1)
    assert PROGRAM.live_registers == 2


def test_metrics_of_a_program_without_instructions() -> None:
    copies = XorProgram(2, (), (1, ZERO))
    assert (copies.xors, copies.memory_accesses, copies.depth, copies.live_registers) == (0, 0, 0, 0)
    assert cache_capacity(copies) == cache_loads(copies, 1) == 0


def test_masks_and_matrix() -> None:
    assert masks(PROGRAM) == (0b1111, 0b0111, 0b1000, 0, 0b0111)
    assert matrix(PROGRAM).tolist() == [[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]


def test_matrix_of_more_inputs_than_a_word_has_bits() -> None:
    wide = XorProgram(70, ((0, 69),), (70, 69))
    expected = np.zeros((2, 70), np.uint8)
    expected[0, [0, 69]] = expected[1, 69] = 1
    assert np.array_equal(matrix(wide), expected)


@pytest.mark.parametrize(
    ("inputs", "instructions", "outputs", "message"),
    [
        (-1, (), (), "cannot have -1 inputs"),
        (2, ((0,),), (2,), "instruction 0 must XOR two or more different values, not \\[0\\]"),
        (2, ((0, 0),), (2,), "two or more different values"),
        (2, ((0, 2),), (2,), "may only use values 0 to 1, not \\[0, 2\\]"),
        (2, ((0, 1), (0, 3)), (2,), "instruction 1 may only use values 0 to 2"),
        (2, ((0, -1),), (2,), "may only use values 0 to 1"),
        (2, ((0, 1),), (3,), "output 0 is value 3, but values are 0 to 2"),
        (2, ((0, 1),), (2, -2), "output 1 is value -2"),
    ],
)
def test_refuses_what_is_no_program(
    inputs: int, instructions: tuple[tuple[int, ...], ...], outputs: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        XorProgram(inputs, instructions, outputs)


def test_exchange() -> None:
    for copy in (
        XorProgram.from_json(PROGRAM.to_json()),
        XorProgram.from_dict(PROGRAM.to_dict()),
        pickle.loads(pickle.dumps(PROGRAM)),  # noqa: S301  (just pickled here)
    ):
        assert copy == PROGRAM
        assert hash(copy) == hash(PROGRAM)
        assert copy.digest == PROGRAM.digest
    assert PROGRAM.to_json() == '{"inputs":4,"instructions":[[0,1],[4,2,3],[4,2]],"outputs":[5,6,3,-1,6]}'
    # Kernels are kept under the digest: it must not depend on process or version.
    assert XorProgram(2, ((0, 1),), (2,)).digest.startswith("1bc03b7db2107d38")
    assert XorProgram(4, PROGRAM.instructions, (5, 6)).digest != PROGRAM.digest


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "7",
        '{"inputs":2}',
        '{"inputs":2,"instructions":[[0,1]],"outputs":[2],"more":1}',
        '{"inputs":2,"instructions":{"0":1},"outputs":[]}',
        '{"inputs":2,"instructions":[[0,"1"]],"outputs":[2]}',
        '{"inputs":2,"instructions":["01"],"outputs":[2]}',
        '{"inputs":2,"instructions":[3],"outputs":[2]}',
        '{"inputs":2,"instructions":[[0,true]],"outputs":[2]}',
        '{"inputs":2.0,"instructions":[],"outputs":[]}',
        '{"inputs":2,"instructions":[[0,1]],"outputs":[3]}',
    ],
)
def test_refuses_json_of_no_program(text: str) -> None:
    with pytest.raises(ParameterError):
        XorProgram.from_json(text)


def test_interpret() -> None:
    blocks = np.random.default_rng(1).integers(0, 256, (4, 13), np.uint8)
    kept = blocks.copy()
    expected = np.stack(
        [blocks[0] ^ blocks[1] ^ blocks[2] ^ blocks[3], blocks[0] ^ blocks[1] ^ blocks[2], blocks[3], 0 * blocks[3],
         blocks[0] ^ blocks[1] ^ blocks[2]]
    )  # fmt: skip
    out = np.full((5, 13), 77, np.uint8)
    assert interpret(PROGRAM, blocks, out) is out
    assert np.array_equal(out, expected)
    assert np.array_equal(interpret(PROGRAM, list(blocks)), expected)
    assert np.array_equal(interpret(PROGRAM, blocks[:, ::2]), expected[:, ::2])
    assert np.array_equal(blocks, kept)
    assert interpret(PROGRAM, blocks[:, :0]).shape == (5, 0)


def test_interpret_keeps_outputs_that_are_used_again() -> None:
    # Value 2 is an output, is used by value 3, and its last use is not its last appearance.
    program = XorProgram(2, ((0, 1), (2, 0)), (3, 2))
    blocks = np.array([[5], [9]], np.uint8)
    assert interpret(program, blocks).tolist() == [[9], [12]]


def test_interpret_refuses_blocks_that_do_not_fit() -> None:
    blocks = np.zeros((4, 8), np.uint8)
    with pytest.raises(BlockError, match="4 inputs, but 3 packets"):
        interpret(PROGRAM, blocks[:3])
    with pytest.raises(BlockError, match="uint8"):
        interpret(PROGRAM, blocks.astype(np.uint16))
    with pytest.raises(BlockError, match="same length, not 7, 8 bytes"):
        interpret(PROGRAM, [*blocks[:3], blocks[3, :7]])
    with pytest.raises(BlockError, match=r"shape \(5, 8\), not uint8 of shape \(4, 8\)"):
        interpret(PROGRAM, blocks, np.zeros((4, 8), np.uint8))
    memory = np.zeros((8, 8), np.uint8)
    with pytest.raises(BlockError, match="overlap"):
        interpret(PROGRAM, memory[:4], memory[3:])


def test_prove_names_the_outputs_that_changed() -> None:
    assert prove(masks(PROGRAM), PROGRAM) is PROGRAM
    broken = XorProgram(4, ((0, 1), (4, 2, 3), (4, 3)), PROGRAM.outputs)
    with pytest.raises(AssertionError, match=r"changed outputs \[1, 4\]"):
        prove(masks(PROGRAM), broken)


def test_allocation_of_a_worked_example() -> None:
    # Values 6 = (0 + 1) + (2 + 3) and 7 = (2 + 3) + 0: value 4 is built in the first output's block, 5 in the second's.
    program = XorProgram(4, ((0, 1), (2, 3), (4, 5), (5, 0)), (6, 7))
    allocation = allocate(program)
    assert allocation.blocks == (0, 1, 2, 3, 4, 5, 4, 5)
    assert (allocation.scratch, allocation.written) == (0, 2)
    # Value 3 is needed until the second output is computed and waits in its block; value 5 needs a scratch block.
    program = XorProgram(3, ((0, 1), (3, 2), (1, 2), (5, 3)), (4, 6))
    allocation = allocate(program)
    assert allocation.blocks == (0, 1, 2, 4, 3, 5, 4)
    assert (allocation.scratch, allocation.written) == (1, 3)


def test_cache_model_of_a_worked_example() -> None:
    # Blocks read: 0 1 | 0 2 | 1 0; written: 3, 4 and 5, each result an output.
    program = XorProgram(3, ((0, 1), (0, 2), (1, 0)), (3, 4, 5))
    # Between the two reads of 1 lie 3, 0, 2, 4: five blocks with itself.
    assert cache_capacity(program) == 5
    assert cache_loads(program, 5) == 3
    assert cache_loads(program, 4) == 4
    assert cache_loads(program, 1) == 6
