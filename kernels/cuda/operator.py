"""Products as callers hold them: applied to device arrays where they lie, or to host blocks streamed through."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Blocks, Product
from gfcode.errors import BlockError
from gfcode.kernels.cuda.blocks import DeviceBlocks, device_blocks
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.device import Stream
from gfcode.kernels.cuda.launch import Problem, Tuning
from gfcode.kernels.cuda.runners import MatrixRunner, Runner
from gfcode.kernels.cuda.streaming import Streamer
from gfcode.kernels.cuda.tuner import candidates, choose
from gfcode.params import Layout

__all__ = ["CudaOperator", "GroupedOperator"]


def _check(
    shape: tuple[int, int], layout: Layout, inputs: DeviceBlocks | Blocks, outputs: DeviceBlocks | Blocks
) -> None:
    """Refuse blocks that do not fit; kernels trust addresses after it."""
    rows, columns = shape
    if inputs.count != columns:
        raise BlockError(f"the product takes {columns} input blocks a stripe, not {inputs.count}")
    if (outputs.stripes, outputs.count) != (inputs.stripes, rows):
        raise BlockError(
            f"the product makes {rows} output blocks in each of {inputs.stripes} stripes, "
            f"not {outputs.count} in {outputs.stripes}"
        )
    if outputs.length != inputs.length:
        raise BlockError(f"output blocks have {outputs.length} bytes, input blocks {inputs.length}")
    if inputs.length % layout.strip_bytes:
        raise BlockError(f"blocks of {inputs.length} bytes are no whole number of strips of {layout.strip_bytes} bytes")


class _Operator:
    """What both kinds of operator do."""

    def __init__(
        self, context: Context, streamer: Streamer, layout: Layout, shape: tuple[int, int], runner: Runner
    ) -> None:
        self._context = context
        self._streamer = streamer
        self._layout = layout
        self._shape = shape
        self.runner = runner

    @property
    def kernel(self) -> str:
        """Which kernel runs: "matrix", "program" or "horner"."""
        return self.runner.kernel

    def _device_blocks(self, array: object, stream: Stream, *, writable: bool) -> DeviceBlocks:
        return device_blocks(self._context.device, array, stream, writable=writable)

    def _apply(
        self, inputs: object, outputs: object, which: npt.NDArray[np.uint32] | None, stream: Stream | None
    ) -> None:
        if stream is None:
            stream = self._context.device.current_stream()
        sources = self._device_blocks(inputs, stream, writable=False)
        targets = self._device_blocks(outputs, stream, writable=True)
        _check(self._shape, self._layout, sources, targets)
        if targets.stripes and targets.count and targets.length:
            self.runner.enqueue(sources, targets, stream, which)

    def _stream(self, inputs: Blocks, outputs: Blocks, which: npt.NDArray[np.uint32] | None) -> None:
        _check(self._shape, self._layout, inputs, outputs)
        if not (outputs.stripes and outputs.count and outputs.length):
            return

        def enqueue(sources: DeviceBlocks, targets: DeviceBlocks, start: int, stream: Stream) -> None:
            chosen = None if which is None else which[start : start + sources.stripes]
            self.runner.enqueue(sources, targets, stream, chosen)

        self._streamer.run(enqueue, inputs, outputs, self._layout.strip_bytes)


class CudaOperator(_Operator):
    """A product on a GPU. Safe to call from many threads at once on disjoint outputs."""

    def __init__(self, context: Context, streamer: Streamer, product: Product, runner: Runner) -> None:
        super().__init__(context, streamer, product.layout, product.matrix.shape, runner)
        self.product = product

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Overwrite `outputs` with matrix · `inputs`; both in host memory, and done on return.

        Blocks stream through the device in batches. Page-locked blocks are copied from and to where they are, others
        through page-locked buffers.

        Raises
        ------
        BlockError
            If the blocks do not fit the product.
        DeviceMemoryError
            If the device has no room for the smallest batch.
        DeviceError
            If the device fails; the outputs are undefined.
        """
        self._stream(inputs, outputs, None)

    def apply_device(self, inputs: object, outputs: object, stream: Stream | None = None) -> None:
        """Enqueue outputs = matrix · inputs for arrays in device memory; return at once.

        Parameters
        ----------
        inputs : device array, list of c device arrays, or DeviceBlocks
            uint8, shape (c, length) or (stripes, c, length), or each of shape (length,) or (stripes, length); last
            axis contiguous. Never written.
        outputs : device array, list of r device arrays, or DeviceBlocks
            Of r blocks; owned by the caller, overwritten whole; must not overlap the inputs. Both must live until the
            stream has passed this point.
        stream : int, optional
            Address of the stream; by default the caller's current CuPy stream.
        """
        self._apply(inputs, outputs, None, stream)

    def tune(self, stripes: int, length: int) -> Tuning:
        """Time the kernel's configurations on the device for such blocks, keep the best for later calls, and return it.

        Takes device memory for the blocks, and waits.
        """
        device, layout = self._context.device, self._layout
        rows, columns = self._shape
        stream = device.current_stream()
        problem = Problem(layout, columns, rows, stripes, length)
        pitch = -(-length // 256) * 256
        source = device.allocate(stripes * columns * pitch, stream)
        target = device.allocate(stripes * rows * pitch, stream)
        inputs = DeviceBlocks(source.address, (columns * pitch, pitch), (stripes, columns, length), source)
        outputs = DeviceBlocks(target.address, (rows * pitch, pitch), (stripes, rows, length), target)
        _check(self._shape, layout, inputs, outputs)

        def measure(tuning: Tuning) -> float:
            start = device.record(stream)
            self.runner.enqueue(inputs, outputs, stream, None, tuning)
            end = device.record(stream)
            device.synchronize(end)
            return device.elapsed(start, end)

        best, _ = choose(candidates(self.kernel, problem, device.info), measure)
        self._context.tuning.keep(self.kernel, problem, best)
        return best


class GroupedOperator(_Operator):
    """Several products of one shape: each stripe of a batch uses one of them, all in one launch.

    A repair of many stripes that lost different shards is one call: the matrices are those of the loss patterns, and
    `sources` says which shards of its stripe each matrix takes.
    """

    def __init__(
        self,
        context: Context,
        streamer: Streamer,
        layout: Layout,
        shape: tuple[int, int],
        runner: MatrixRunner,
        sources: npt.NDArray[np.int64] | None,
        targets: npt.NDArray[np.int64] | None,
    ) -> None:
        super().__init__(context, streamer, layout, shape, runner)
        self.matrices = runner.matrices
        self._sources = sources
        self._targets = targets

    def _chosen(self, which: Sequence[int] | npt.NDArray[np.integer], stripes: int) -> npt.NDArray[np.uint32]:
        numbers = np.asarray(which)
        if numbers.shape != (stripes,) or numbers.dtype.kind not in "iu":
            raise BlockError(f"{stripes} stripes need as many matrix numbers, not {numbers.dtype} of {numbers.shape}")
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.matrices):
            raise BlockError(f"matrix numbers are 0 to {self.matrices - 1}, not {numbers.min()} to {numbers.max()}")
        return numbers.astype(np.uint32)

    def __call__(self, inputs: Blocks, outputs: Blocks, which: Sequence[int] | npt.NDArray[np.integer]) -> None:
        """Do the same for host blocks, c inputs and r outputs in each stripe; done on return."""
        self._stream(inputs, outputs, self._chosen(which, inputs.stripes))

    def apply_device(
        self,
        inputs: object,
        outputs: object,
        which: Sequence[int] | npt.NDArray[np.integer],
        stream: Stream | None = None,
    ) -> None:
        """Enqueue one launch for all stripes; return at once.

        Parameters
        ----------
        inputs : device array or DeviceBlocks
            uint8, shape (stripes, shards, length): all shards of each stripe, of which those are read that the stripe's
            matrix takes; shape (stripes, c, length) if the operator was made without `sources`.
        outputs : device array or DeviceBlocks
            uint8, shape (stripes, r, length); or with all shards of each stripe, if the operator was made with
            `targets`. May be the same array as `inputs` then: lost shards are rebuilt in place.
        which : sequence of int
            Number of the matrix of each stripe.
        stream : int, optional
            Address of the stream; by default the caller's current CuPy stream.
        """
        if stream is None:
            stream = self._context.device.current_stream()
        blocks = self._device_blocks(inputs, stream, writable=False)
        chosen = self._chosen(which, blocks.stripes)
        targets = self._device_blocks(outputs, stream, writable=True)
        if self._sources is not None:
            blocks = blocks.gather(self._sources[chosen])
        if self._targets is not None:
            targets = targets.gather(self._targets[chosen])
        self._apply(blocks, targets, chosen, stream)
