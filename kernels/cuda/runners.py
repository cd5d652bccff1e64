"""The kernels as things that can be enqueued: a matrix (or several), bound to a layout, applied to device blocks."""

import threading
from abc import ABC, abstractmethod
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.kernels.cuda.blocks import DeviceBlocks, Resident
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.device import Stream
from gfcode.kernels.cuda.launch import Build, Launch, Problem, Tuning, bitmatmul_launch, planes_of, xor_launch
from gfcode.kernels.cuda.operands import bit_rows, pack
from gfcode.kernels.cuda.work import Work
from gfcode.kernels.cuda.xor_lowering import accumulate, horner_step, three_input_xors
from gfcode.kernels.cuda.xor_text import horner_text, live_words, program_text
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout
from gfcode.xor.program import XorProgram

__all__ = ["HornerRunner", "KernelKind", "MatrixRunner", "ProgramRunner", "Runner", "is_geometric"]

_Bits = npt.NDArray[np.uint8]

#: A kernel that runs: the matrix product, or XORs by a program or by Horner's rule.
KernelKind = Literal["matrix", "program", "horner"]

#: Words of a lane beyond which a program would spill, and three-input XORs beyond which its code leaves the
#: instruction cache and takes the compiler minutes.
_MOST_WORDS: Final = 190
_MOST_XORS: Final = 6000


def _problem(layout: Layout, inputs: DeviceBlocks, outputs: DeviceBlocks) -> Problem:
    return Problem(
        layout,
        inputs.count,
        outputs.count,
        inputs.stripes,
        inputs.length,
        min(inputs.alignment, outputs.alignment),
        inputs.table is not None or outputs.table is not None,
    )


def _work(context: Context, problem: Problem, inputs: DeviceBlocks, outputs: DeviceBlocks, stream: Stream) -> Work:
    work = Work(length=problem.length, c=problem.c, r=problem.r, stripes=problem.stripes)
    if problem.table:
        work.input_table = inputs.device_table(context.device, stream)
        work.output_table = outputs.device_table(context.device, stream)
    else:
        work.input, work.output = inputs.address, outputs.address
        work.input_stripe, work.input_block = inputs.strides
        work.output_stripe, work.output_block = outputs.strides
    return work


class Runner(ABC):
    """A product that can be enqueued.

    Parameters
    ----------
    context : Context
    layout : Layout
    """

    #: Which kernel runs.
    kernel: KernelKind
    #: Matrices among which a stripe may choose; none where the matrix is part of the kernel.
    matrices = 0

    def __init__(self, context: Context, layout: Layout) -> None:
        self._context = context
        self._layout = layout

    @abstractmethod
    def _configure(self, problem: Problem, tuning: Tuning) -> Launch:
        """Choose the kernel's configuration."""

    def _operands_for(self, build: Build, stream: Stream) -> tuple[Resident, Resident]:
        """Return the matrices, where they are data, and which sets of their operands have a one."""
        raise NotImplementedError

    def launch_for(self, problem: Problem, tuning: Tuning | None = None) -> Launch:
        """Return the configuration for a problem: as tuned, or as given."""
        return self._configure(problem, self._context.tuning.lookup(self.kernel, problem) if tuning is None else tuning)

    def enqueue(
        self,
        inputs: DeviceBlocks,
        outputs: DeviceBlocks,
        stream: Stream,
        which: npt.NDArray[np.uint32] | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        """Enqueue one launch on a stream; nothing waits.

        Parameters
        ----------
        inputs, outputs : DeviceBlocks
            Checked by the caller.
        stream : Stream
        which : ndarray of uint32, shape (stripes,), optional
            The matrix of each stripe, where there are several.
        tuning : Tuning, optional
            Instead of what the tuner found.
        """
        problem = _problem(self._layout, inputs, outputs)
        launch = self.launch_for(problem, tuning)
        work = _work(self._context, problem, inputs, outputs, stream)
        if self.matrices:
            operands, live = self._operands_for(launch.build, stream)
            work.matrix, work.live = operands.address, live.address
        chosen = None if which is None else self._chosen(which, inputs.stripes, stream)
        work.which = 0 if chosen is None else chosen.address
        self._context.launch(launch, work, stream)

    def _chosen(self, which: npt.NDArray[np.uint32], stripes: int, stream: Stream) -> Resident:
        if not self.matrices:
            raise BlockError("an XOR kernel has one matrix for all stripes; use the matrix-product kernel")
        if which.shape != (stripes,):
            raise BlockError(f"{stripes} stripes need as many matrix numbers, not {which.shape}")
        if which.size and which.max() >= self.matrices:
            raise BlockError(f"there are {self.matrices} matrices, so that there is no number {which.max()}")
        return Resident(self._context.device, which.astype(np.uint32), stream)


class MatrixRunner(Runner):
    """The matrix-product kernel with one matrix, or with several of one shape of which each stripe uses one.

    Parameters
    ----------
    context : Context
    layout : Layout
    bits : ndarray of uint8, shape (matrices, r · w, c · w)
        Bit matrices.
    """

    kernel: KernelKind = "matrix"

    def __init__(self, context: Context, layout: Layout, bits: _Bits) -> None:
        super().__init__(context, layout)
        self._rows = bit_rows(bits, layout.w)
        self.matrices = int(self._rows.shape[0])
        self._operands: dict[tuple[object, ...], tuple[Resident, Resident]] = {}
        self._lock = threading.Lock()

    def _operands_for(self, build: Build, stream: Stream) -> tuple[Resident, Resident]:
        key = (stream, *(build.define(name) for name in ("COLUMNS", "PIECES", "SLICED", "OPERANDS_U8")))
        with self._lock:
            if key not in self._operands:
                packed = pack(self._rows, self._layout.w, build)
                device = self._context.device
                self._operands[key] = (Resident(device, packed.words, stream), Resident(device, packed.live, stream))
            return self._operands[key]

    def _configure(self, problem: Problem, tuning: Tuning) -> Launch:
        return bitmatmul_launch(problem, self._context.device.info, tuning)


class _XorRunner(Runner):
    """An XOR kernel with a generated header."""

    _source: str

    def __init__(self, context: Context, layout: Layout, text: str, live: int) -> None:
        super().__init__(context, layout)
        self._text = text
        self._live = live

    def _configure(self, problem: Problem, tuning: Tuning) -> Launch:
        return xor_launch(problem, self._context.device.info, self._source, self._text, self._live, tuning)


def _plane_bits(bits: _Bits, layout: Layout) -> _Bits:
    """Return the bit matrix over a lane's planes: with w = 4 in `words`, two symbols of a byte side by side."""
    if planes_of(layout) == layout.w:
        return bits
    return np.unpackbits(bit_rows(bits, layout.w), axis=-1, bitorder="little")


class ProgramRunner(_XorRunner):
    """The XOR kernel compiled for one matrix.

    Parameters
    ----------
    context : Context
    layout : Layout
    bits : ndarray of uint8, shape (r · w, c · w)
    program : XorProgram, optional
        A program for the planes of the matrix, to be used instead of the one made here.

    Raises
    ------
    EngineUnavailableError
        If the program needs more registers or instructions than are good for a GPU.
    """

    kernel: KernelKind = "program"
    _source = "xor_program.cu"

    def __init__(self, context: Context, layout: Layout, bits: _Bits, program: XorProgram | None = None) -> None:
        planes = planes_of(layout)
        if bits.shape[0] > _MOST_WORDS:  # known before the program is: the sums alone are too many
            raise EngineUnavailableError(
                f"an XOR program for {bits.shape[0]} planes of output is too large for a GPU kernel "
                f"(at most {_MOST_WORDS}); use the matrix-product kernel"
            )
        if program is None:
            program = accumulate(_plane_bits(bits, layout), planes)
        live, xors = live_words(program, planes), three_input_xors(program)
        if live > _MOST_WORDS or xors > _MOST_XORS:
            raise EngineUnavailableError(
                f"an XOR program of {xors} instructions and {live} words a lane is too large for a GPU kernel "
                f"(at most {_MOST_XORS} and {_MOST_WORDS}); use the matrix-product kernel"
            )
        super().__init__(context, layout, program_text(program, planes), live)


def is_geometric(matrix: Matrix) -> bool:
    """Tell whether every row of a matrix is 1, q, q², ... for some q of its own."""
    values, field = matrix.values, matrix.field
    if values.shape[0] == 0 or values.shape[1] < 2:
        return False
    following = np.asarray(field.mul(values[:, 1:2], values))
    return bool((values[:, 0] == 1).all() and np.array_equal(values[:, 1:], following[:, :-1]))


class HornerRunner(_XorRunner):
    """The XOR kernel for geometric rows, such as those of `powers`; one compiled kernel serves every k.

    Raises
    ------
    EngineUnavailableError
        If the rows are not geometric, or are too many for the register file.
    """

    kernel: KernelKind = "horner"
    _source = "xor_horner.cu"

    def __init__(self, context: Context, layout: Layout, matrix: Matrix) -> None:
        if not is_geometric(matrix):
            raise EngineUnavailableError("Horner's rule needs rows that are 1, q, q², ...; use another kernel")
        planes, rows = planes_of(layout), matrix.shape[0]
        squares = [
            _plane_bits(expand(matrix.rows([i]).columns([1])), layout)  # the square of q_i
            for i in range(rows)
        ]
        live = (rows + 2) * planes + planes // 2
        if live > _MOST_WORDS:
            raise EngineUnavailableError(
                f"Horner's rule for {rows} rows needs {live} words a lane, more than {_MOST_WORDS}; use another kernel"
            )
        super().__init__(context, layout, horner_text(horner_step(squares), planes), live)
