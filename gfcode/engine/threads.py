"""One large call in several threads: the blocks of a product cut into parts, which threads of a pool take in turn.

Parts are runs of stripes, or runs of strips of the blocks of few stripes: every output byte depends on the input bytes
at the same place of the same strip alone, so that parts are independent. The thread that calls takes parts like the
others, and what no other thread has begun when all parts are taken is dropped. So a call never waits for a pool that is
busy with others' calls, or that did not survive a fork.
"""

import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final

import numpy as np

from gfcode.engine.protocol import Blocks, Engine, Operator, Product
from gfcode.engine.registry import AutomaticEngine
from gfcode.errors import ParameterError

__all__ = ["ThreadedEngine", "ThreadedOperator", "threaded"]

#: Bytes of inputs and outputs of a part at least. Less is in the caches of the core that calls: to move it to another
#: takes longer than to work on it.
_LEAST: Final = 8 << 20
#: Bytes of a part from which parts are made more than threads, so that one that is late holds the others up less.
_LARGE: Final = 16 << 20
#: Parts of a thread at most.
_PARTS: Final = 4
#: Blocks are cut at cache lines, so that no two threads write to one.
_LINE: Final = 64
#: Threads that the pool has at most, whatever callers ask for.
_MOST: Final = 256

_pool: ThreadPoolExecutor | None = None


def _forget() -> None:
    global _pool  # noqa: PLW0603 - a child has none of the threads
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _executor() -> ThreadPoolExecutor:
    """Return the pool; it has as many threads as calls at once have needed."""
    global _pool  # noqa: PLW0603 - made at first use; of two that threads make at once, one is left and ends
    if _pool is None:
        _pool = ThreadPoolExecutor(_MOST, thread_name_prefix="gfcode")
    return _pool


def threaded(engine: Engine, threads: int) -> Engine:
    """Return an engine whose operators split large calls over threads; the engine itself for one thread.

    Parameters
    ----------
    engine : Engine
        One that works in the calling thread.
    threads : int
        How many at most, the calling one among them.

    Raises
    ------
    ParameterError
        For fewer than one thread, or an engine that runs on a device.
    """
    if threads < 1:
        raise ParameterError(f"threads must be at least 1, not {threads}")
    if threads == 1:
        return engine
    if engine.name == "cuda":
        raise ParameterError("engine 'cuda' works on its device; threads are for engines that work on CPUs")
    return ThreadedEngine(engine, min(threads, _MOST))


class ThreadedEngine:
    """An engine whose operators split large calls over threads; see `gfcode.engine.protocol.Engine`.

    Parameters
    ----------
    engine : Engine
    threads : int
    """

    def __init__(self, engine: Engine, threads: int) -> None:
        self.engine, self.threads = engine, threads

    @property
    def name(self) -> str:
        """Name of the engine that does the work."""
        return self.engine.name

    def refuses(self, product: Product) -> str | None:
        """Why the engine cannot run `product`, in one line; None if it can."""
        return self.engine.refuses(product)

    def prepare(self, product: Product) -> Operator:
        """Bind a product."""
        return ThreadedOperator(self.engine.prepare(product), product, self.threads)

    def choose(self, product: Product) -> Engine:
        """Return the engine that does the work for `product`."""
        return self.engine.choose(product) if isinstance(self.engine, AutomaticEngine) else self.engine


class ThreadedOperator:
    """A bound product whose large calls are split over threads; see `gfcode.engine.protocol.Operator`.

    `add`, `run` and `compile` are there where the operator behind has them; they work in one thread.

    Parameters
    ----------
    operator : Operator
    product : Product
    threads : int
    """

    # No slots: those of `add`, `run` and `compile` would be attributes of the class, so that `isinstance` took every
    # operator for an `AddingOperator` and so on.

    def __init__(self, operator: Operator, product: Product, threads: int) -> None:
        self._operator, self._threads = operator, threads
        self._blocks = sum(product.matrix.shape)
        self._unit = math.lcm(product.layout.strip_bytes, _LINE)
        for name in ("add", "compile"):
            if hasattr(operator, name):
                setattr(self, name, getattr(operator, name))
        run = getattr(operator, "run", None)
        if run is not None:
            self._run, self.run = run, self._small

    def _small(
        self, inputs: int, inputs_step: int, outputs: int, outputs_step: int, length: int, add: bool = False
    ) -> bool:  # fmt: skip
        """Run one small stripe; see `gfcode.engine.protocol.AddressOperator`."""
        if length * self._blocks >= 2 * _LEAST and not add:
            return False
        return bool(self._run(inputs, inputs_step, outputs, outputs_step, length, add))

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Overwrite `outputs` with matrix · `inputs`."""
        total = outputs.stripes * outputs.length * self._blocks
        count = min(self._threads, total // _LEAST)
        fits = inputs.stripes == outputs.stripes and inputs.length == outputs.length
        if count < 2 or not fits:  # the operator says what does not fit
            self._operator(inputs, outputs)
            return
        count *= min(_PARTS, max(1, total // (count * _LARGE)))
        parts = list(_parts(inputs, outputs, count, self._unit))
        _share(lambda index: self._operator(*parts[index]), len(parts), self._threads)


def _parts(inputs: Blocks, outputs: Blocks, count: int, unit: int) -> Iterator[tuple[Blocks, Blocks]]:
    """Cut blocks into about `count` parts of about the same size, at multiples of `unit` bytes of a block."""
    stripes, length = outputs.stripes, outputs.length
    if stripes >= count:
        cuts = [index * stripes // count for index in range(count + 1)]
        for begin, end in itertools.pairwise(cuts):
            yield _rows(inputs, begin, end), _rows(outputs, begin, end)
        return
    each = -(-count // stripes)  # parts of every stripe
    step = -(-length // (each * unit)) * unit
    for stripe in range(stripes):
        for begin in range(0, length, step):
            size = min(step, length - begin)
            yield _piece(inputs, stripe, begin, size), _piece(outputs, stripe, begin, size)


def _rows(blocks: Blocks, begin: int, end: int) -> Blocks:
    return Blocks(blocks.table[begin:end], blocks.length, blocks.owners)


def _piece(blocks: Blocks, stripe: int, begin: int, size: int) -> Blocks:
    return Blocks(blocks.table[stripe : stripe + 1] + np.uint64(begin), size, blocks.owners)


def _share(work: Callable[[int], object], count: int, threads: int) -> None:
    """Call a function with 0 .. count − 1, in this thread and in others; return when all calls have."""
    numbers = deque(range(count))

    def take() -> None:
        while numbers:
            try:
                index = numbers.popleft()
            except IndexError:  # another thread was quicker
                return
            work(index)

    helpers: list[Future[None]] = []
    # Where the interpreter is ending, or there are no more threads, this one does what is left.
    with suppress(RuntimeError):
        helpers.extend(_executor().submit(take) for _ in range(min(threads, count) - 1))
    try:
        take()
    finally:
        # Also where this thread was interrupted: nothing may write to the outputs any more when it has returned.
        numbers.clear()
        _finish(helpers)
    for helper in helpers:
        if not helper.cancelled():
            helper.result()


def _finish(helpers: list[Future[None]]) -> None:
    """Cancel what has not begun and wait for the rest, to the end even where a signal's handler raises meanwhile."""
    interruption: BaseException | None = None
    for helper in helpers:
        while not helper.cancel() and not helper.done():
            try:
                wait([helper])
            except BaseException as error:  # noqa: BLE001 - raised below
                interruption = error
    if interruption is not None:
        raise interruption
