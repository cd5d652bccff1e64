"""The `simd` engine: kernels compiled by LLVM for the CPU at hand, all rows of blocks read once, any matrix as data."""

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite
import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import address_of
from gfcode.engine.locks import COMPILING
from gfcode.engine.protocol import Blocks, Operator, Product
from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.kernels.simd import constants, drive
from gfcode.kernels.simd.compiler import Compiler, Kernel
from gfcode.kernels.simd.constants import ConstantsKernel
from gfcode.kernels.simd.fft_operator import FftOperator, pays
from gfcode.kernels.simd.plan import Planner, Step, Steps, Way, refusal
from gfcode.kernels.simd.selftest import every_constant, passes
from gfcode.kernels.simd.target import Target, host

__all__ = ["SimdEngine", "SimdOperator", "load"]

#: From this many bytes moved by a stripe, or by all stripes of a call, outputs bypass the caches.
_STREAM_STRIPE, _STREAM_BATCH = 4 << 20, 32 << 20
#: Blocks that lie a multiple of a page apart share sets of the nearest cache, which hold a dozen lines each.
_PAGE, _NEAR_WAYS = 4096, 12

# Before this version llvmlite's LLVM does not read pointers without a type.
_LLVMLITE = (0, 45)
# The interpreter's lock is released for as long as the call takes. The argument, bytes, is passed as their address.
_CALL = ctypes.CFUNCTYPE(None)


def load() -> "SimdEngine":
    """Return the engine for this machine.

    Raises
    ------
    EngineUnavailableError
        If no kernels are written for this CPU, or llvmlite is too old.
    """
    if tuple(int(part) for part in llvmlite.__version__.split(".")[:2]) < _LLVMLITE:
        wanted = ".".join(map(str, _LLVMLITE))
        raise EngineUnavailableError(f"llvmlite {llvmlite.__version__} is too old: pip install 'llvmlite>={wanted}'")
    target = host()
    if target is None:
        raise EngineUnavailableError("no SIMD kernels for this CPU (they need x86-64 with SSSE3)")
    return SimdEngine(target)


class SimdEngine:
    """Runs products by SIMD kernels; see `gfcode.engine.protocol.Engine`.

    Parameters
    ----------
    target : Target
        What to compile for; it must be able to run here.
    """

    name = "simd"

    def __init__(self, target: Target) -> None:
        self.target = target
        self._compiler = Compiler(target)
        self._latest: SimdOperator | FftOperator | None = None
        self._drive: Any = None

    @property
    def detail(self) -> str:
        """What the engine runs on, in one line."""
        return f"{self.target.cpu}, {self.target.vector_bytes}-byte vectors, products by {self.target.product}"

    def refuses(self, product: Product) -> str | None:
        """Why this engine cannot run `product`, in one line; None if it can.

        Compiles the kernels that the product needs, so that one which fails its test is a reason to refuse.
        """
        if (reason := refusal(product, self.target)) and not pays(product):
            return reason
        try:
            self._latest = self._bind_product(product)
        except EngineUnavailableError as error:
            return str(error)
        return None

    def prepare(self, product: Product) -> Operator:
        """Bind a product.

        Raises
        ------
        EngineUnavailableError
            If `refuses` gives a reason.
        """
        latest = self._latest
        if latest is not None and latest.product is product:
            return latest
        if (reason := refusal(product, self.target)) and not pays(product):
            raise EngineUnavailableError(f"engine 'simd' does not run {reason}")
        return self._bind_product(product)

    def _bind_product(self, product: Product) -> "SimdOperator | FftOperator":
        return FftOperator(self, product) if pays(product) else SimdOperator(self, product)

    def proven(self, kernel: Kernel, is_right: Callable[[int], bool]) -> int:
        """Address of a kernel, which is compiled if it is not yet, and then tested by calling `is_right` with it.

        Raises
        ------
        EngineUnavailableError
            If it is not right.
        """
        address = self._compiler.address(kernel)
        with COMPILING:
            if kernel in self._compiler.untested():
                self._judge(kernel, right=is_right(address))
        return address

    def bind(self, steps: Steps, shape: tuple[int, int]) -> "_Bound":
        """Compile what is missing and bind the steps of a product of this shape to the driver."""
        kept: list[Any] = []
        bound = []
        for step in steps.steps:
            symbols = self._compiler.symbols(step.kernel)
            context = step.context
            if context is None:
                program = constants.bind(symbols=symbols, **step.arguments)
                context = np.array(program, np.uint64).view(np.int64)
            kept.append(context)
            bound.append((symbols[step.kernel.name], address_of(context)))
        if self._drive is None:
            self._drive = _CALL(self._compiler.address(drive.Drive()))
        plan = drive.context(shape, piece=steps.piece, add=steps.add, sums=steps.sums, steps=bound)
        return _Bound(self._drive, plan, kept, {drive.Drive.name, *(step.kernel.name for step in steps.steps)})

    def test(self, bound: "_Bound", product: Product) -> None:
        """Test `bound`, which computes `product`, if any of its kernels was compiled just now.

        Raises
        ------
        EngineUnavailableError
            If the results are wrong.
        """
        if not self._compiler.untested():
            return
        with COMPILING:
            for kernel in self._compiler.untested():
                # Others are compiled by other threads or tested by their operators; what comes out here says nothing
                # about them, and constants of another field have no place in them.
                if kernel.name not in bound.kernels:
                    continue
                right = passes(bound, product)
                if isinstance(kernel, ConstantsKernel) and right:
                    every, rows = every_constant(product)
                    steps = Steps((Step(kernel, arguments={"rows": rows}),))
                    right = passes(self.bind(steps, every.matrix.shape), every)
                self._judge(kernel, right=right)

    def _judge(self, kernel: Kernel, *, right: bool) -> None:
        if not right:
            raise EngineUnavailableError(
                f"the kernel {kernel.name} gives wrong results on this CPU ({self.target.cpu}); "
                "please report this with the output of 'gfcode engines'"
            )
        self._compiler.trust(kernel)


class _Bound:
    """A driver and its context: what one call needs."""

    __slots__ = ("_kept", "address", "driver", "kernels")

    def __init__(self, driver: Any, plan: npt.NDArray[np.int64], kept: list[Any], kernels: set[str]) -> None:
        self.driver = driver
        self.kernels = kernels
        self.address = address_of(plan)
        self._kept = (plan, kept)

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Run the steps on every stripe."""
        self.driver(drive.call(self.address, inputs.address, 0, outputs.address, 0, outputs.stripes, outputs.length))


class SimdOperator:
    """A product bound to kernels; see `gfcode.engine.protocol.Operator`."""

    __slots__ = ("_adding", "_bound", "_cached", "_engine", "_moved", "_small", "_strip", "product")

    def __init__(self, engine: SimdEngine, product: Product) -> None:
        self.product = product
        self._engine = engine
        self._moved = sum(product.matrix.shape)
        self._strip = product.layout.strip_bytes
        self._bound: dict[Way, _Bound] = {}
        self._adding: _Bound | None = None
        self._cached = self._bind(Way.CACHED)
        # Shorter blocks are done in the same way wherever they lie.
        self._small = min(
            _STREAM_STRIPE // self._moved, _PAGE if product.matrix.shape[1] >= _NEAR_WAYS else _STREAM_STRIPE
        )

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Overwrite `outputs` with matrix · `inputs`."""
        if not self._check(inputs, outputs):
            return
        way = self._way(inputs, outputs)
        bound = self._bound.get(way)
        if bound is None:
            bound = self._bind(way)
        bound(inputs, outputs)

    def add(self, inputs: Blocks, outputs: Blocks) -> bool:
        """Add matrix · `inputs` to `outputs`; see `gfcode.engine.protocol.AddingOperator`."""
        bound = self._adding or self._bind_adding()
        if bound is None:
            return False
        if self._check(inputs, outputs):
            bound(inputs, outputs)
        return True

    def run(
        self, inputs: int, inputs_step: int, outputs: int, outputs_step: int, length: int, add: bool = False
    ) -> bool:  # fmt: skip
        """Work on one stripe by bare addresses; see `gfcode.engine.protocol.AddressOperator`."""
        if add:
            bound = self._adding or self._bind_adding()
            if bound is None:
                return False
        else:
            if length >= self._small:
                return False
            bound = self._cached
        bound.driver(drive.call(bound.address, inputs, inputs_step, outputs, outputs_step, 1, length))
        return True

    def compile(self) -> bool:
        """Compile a kernel of this one matrix; see `gfcode.engine.protocol.CompilingOperator`."""
        steps = Planner(self.product, self._engine.target).compiled()
        if steps is None:
            return False
        bound = self._engine.bind(steps, self.product.matrix.shape)
        self._engine.test(bound, self.product)
        self._cached = self._bound[Way.CACHED] = self._bound[Way.ALIASED] = bound
        return True

    def _check(self, inputs: Blocks, outputs: Blocks) -> bool:
        """Refuse blocks that are not what the product takes; tell whether there is anything to do."""
        made, given = self.product.matrix.shape
        stripes, length = outputs.stripes, outputs.length
        if inputs.count != given or outputs.count != made or inputs.stripes != stripes or inputs.length != length:
            raise BlockError(
                f"a product of shape {(made, given)} takes {given} inputs and {made} outputs of one length, not "
                f"{inputs.count} of {inputs.length} bytes and {outputs.count} of {length} bytes "
                f"(in {inputs.stripes} and {stripes} stripes)"
            )
        if length % self._strip:
            raise BlockError(f"{length} bytes are no multiple of the layout's {self._strip}")
        return bool(length and stripes and made)

    def _way(self, inputs: Blocks, outputs: Blocks) -> Way:
        """Choose how to go about it from the size and place of the blocks."""
        stripe = outputs.length * self._moved
        if (stripe >= _STREAM_STRIPE or stripe * outputs.stripes >= _STREAM_BATCH) and _aligned(outputs):
            return Way.STREAMING | self._alike(inputs, outputs.length)
        return self._alike(inputs, outputs.length)

    def _alike(self, inputs: Blocks, length: int) -> Way:
        """Tell whether the strips of more inputs than the nearest cache has ways share its sets."""
        if self.product.matrix.shape[1] >= _NEAR_WAYS and length >= _PAGE:
            table = inputs.table
            if (int(table[0, 0]) ^ int(table[0, -1])) % _PAGE == 0:
                return Way.ALIASED
        return Way.CACHED

    def _bind_adding(self) -> _Bound | None:
        steps = Planner(self.product, self._engine.target).adding()
        if steps is None:
            return None
        bound = self._engine.bind(steps, self.product.matrix.shape)
        self._engine.test(bound, self.product)
        self._adding = bound
        return bound

    def _bind(self, way: Way) -> _Bound:
        steps = Planner(self.product, self._engine.target).steps(way)
        bound = self._engine.bind(steps, self.product.matrix.shape)
        self._engine.test(bound, self.product)
        self._bound[way] = bound
        return bound


def _aligned(blocks: Blocks) -> bool:
    """Whether every block starts with a cache line, as streaming stores need."""
    return not int(np.bitwise_or.reduce(blocks.table, axis=None)) % 64
