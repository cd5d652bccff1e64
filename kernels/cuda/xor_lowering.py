"""XOR programs in the form that a GPU's register file likes: one input block at a time.

A program for the CPU may use any input at any point; a lane of a GPU holds no more than a few dozen words. So the
programs made here read the planes of each block once, add what the block gives to every output plane, and never look
at it again; sharing is sought inside a block only. Sums count in three-input XORs, the GPU's own instruction.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gfcode.xor.program import ZERO, XorProgram

__all__ = ["accumulate", "horner_step", "three_input_xors"]

_Bits = npt.NDArray[np.uint8]


def three_input_xors(program: XorProgram) -> int:
    """Instructions that a program takes where an XOR has up to three operands."""
    return sum(len(operands) // 2 for operands in program.instructions)


def _cost(terms: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Three-input XORs that sums of so many terms take."""
    return np.maximum(terms, 1) // 2


def _share(rows: npt.NDArray[np.bool_], extra: int) -> tuple[list[tuple[int, int]], npt.NDArray[np.bool_]]:
    """Take out common pairs, greedily by what they save (Paar's heuristic, counted in three-input XORs).

    Parameters
    ----------
    rows : ndarray of bool, shape (sums, terms)
    extra : int
        Further terms that join each sum: 0 or 1.

    Returns
    -------
    list of (int, int)
        Pairs; the i-th is a new term, number terms + i.
    ndarray of bool, shape (sums, terms + pairs)
        What is left of the sums.
    """
    pairs: list[tuple[int, int]] = []
    while rows.size:
        counts = rows.sum(axis=1) + extra
        saved = _cost(counts) - _cost(counts - 1)
        ones = rows.astype(np.float32)
        uses = np.triu(ones.T @ ones, 1)
        gains = np.triu(ones.T @ (ones * saved[:, None]), 1) - 1
        score = gains * 4096 + uses
        # A pair that saves just what it costs is worth a register only where it makes many sums shorter.
        score[(gains < 0) | ((gains == 0) & (uses < 4)) | (uses == 0)] = -1
        first, second = divmod(int(score.argmax()), rows.shape[1])
        if score[first, second] < 0:
            break
        both = rows[:, first] & rows[:, second]
        rows = np.column_stack([rows, both])
        rows[both, first] = rows[both, second] = False
        pairs.append((first, second))
    return pairs, rows


def accumulate(bits: _Bits, planes: int) -> XorProgram:
    """Write a bit matrix as sums that grow block by block.

    Parameters
    ----------
    bits : ndarray of uint8, shape (r · planes, c · planes)
        Zeros and ones.
    planes : int
        Bit planes of a block.

    Returns
    -------
    XorProgram
        Input j · planes + b is plane b of block j, and so with outputs.
    """
    height, width = bits.shape
    sums = [ZERO] * height
    instructions: list[tuple[int, ...]] = []
    for start in range(0, width, planes):
        square = bits[:, start : start + planes].astype(bool)
        pairs, rows = _share(square, int(start > 0))
        names = list(range(start, start + planes))
        for first, second in pairs:
            instructions.append((names[first], names[second]))
            names.append(width + len(instructions) - 1)
        for i, row in enumerate(rows):
            terms = [names[term] for term in np.flatnonzero(row)]
            if terms and sums[i] != ZERO:
                terms.append(sums[i])
            if len(terms) > 1:
                instructions.append(tuple(terms))
                sums[i] = width + len(instructions) - 1
            elif terms:
                sums[i] = terms[0]
    return XorProgram(width, tuple(instructions), tuple(sums))


def horner_step(squares: Sequence[_Bits]) -> XorProgram:
    """Write one step of Horner's rule for geometric rows: sum_i · q_i + input.

    Parameters
    ----------
    squares : sequence of ndarray of uint8, shape (planes, planes)
        Multiplication by the ratio q_i of each row, as a bit matrix.

    Returns
    -------
    XorProgram
        Inputs are the planes of the sums, row after row, then those of the input block; outputs are the new sums.
    """
    planes = squares[0].shape[0]
    entry = len(squares) * planes
    inputs = entry + planes
    instructions: list[tuple[int, ...]] = []
    outputs: list[int] = []
    for i, square in enumerate(squares):
        pairs, rows = _share(square.astype(bool), 1)
        names = list(range(i * planes, (i + 1) * planes))
        for first, second in pairs:
            instructions.append((names[first], names[second]))
            names.append(inputs + len(instructions) - 1)
        for b, row in enumerate(rows):
            instructions.append((*(names[term] for term in np.flatnonzero(row)), entry + b))
            outputs.append(inputs + len(instructions) - 1)
    return XorProgram(inputs, tuple(instructions), tuple(outputs))
