"""Shards in a GPU's memory: they stay there, and the cuda engine works on them whatever engine the code has.

All is enqueued on the caller's current CuPy stream, and nothing waits but `verify`, whose answer is for the host.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gfcode.codec.arguments import check_indices, check_length, refuse_overlap
from gfcode.codec.plan import Plan
from gfcode.codec.spans import VerifyReport
from gfcode.engine.arrays import is_device_array
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["decode", "encode", "holds_device_arrays", "reconstruct", "update", "verify"]

#: What is in host memory, told without another question.
_HOST: Final = {np.ndarray, bytes, bytearray, memoryview, type(None)}


class _Code(Protocol):
    """What is asked of a codec."""

    k: int
    m: int
    n: int
    layout: Layout
    block_multiple: int
    parity: Matrix

    def plan(self, available: Iterable[int], want: Iterable[int]) -> Plan:
        """Return how to make the wanted shards."""
        ...


class _DeviceBlocks(Protocol):
    """Blocks in device memory, as an engine holds them."""

    stripes: int
    count: int
    length: int
    single: bool

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the address of every block, shape (stripes, count)."""
        ...

    def select(self, columns: Sequence[int]) -> "_DeviceBlocks":
        """Return the blocks of these columns in every stripe."""
        ...

    def stripe(self, number: int) -> "_DeviceBlocks":
        """Return the blocks of one stripe."""
        ...


@runtime_checkable
class _DeviceEngine(Protocol):
    """An engine that works on arrays where they are; see `gfcode.kernels.cuda.engine`."""

    def at(self, arrays: Iterable[tuple[str, object]]) -> "_DeviceEngine":
        """Return the engine of the device that holds these arrays, given with their names."""
        ...

    def blocks_of(self, arrays: object, *, writable: bool = False, name: Callable[[int], str] = ...) -> _DeviceBlocks:
        """Return the blocks of an array or of a list of arrays."""
        ...

    def new_array(self, shape: tuple[int, ...]) -> Any:
        """Make an array of uint8."""
        ...

    def sliceable(self, array: object) -> Any:
        """Return an array that can be sliced, over the same memory."""
        ...

    def multiply(self, product: Product, inputs: _DeviceBlocks, outputs: _DeviceBlocks) -> None:
        """Enqueue outputs = matrix · inputs."""
        ...

    def add(self, matrix: Matrix, layout: Layout, inputs: _DeviceBlocks, outputs: _DeviceBlocks) -> None:
        """Enqueue outputs += matrix · inputs."""
        ...

    def find_ones(self, product: Product, inputs: _DeviceBlocks) -> npt.NDArray[np.bool_]:
        """Tell which outputs of a product have a one; wait for the answer."""
        ...

    def copy(self, source: _DeviceBlocks, target: _DeviceBlocks) -> None:
        """Enqueue copies of blocks."""
        ...

    def copy_out(self, blocks: _DeviceBlocks) -> npt.NDArray[np.uint8]:
        """Copy blocks to the host, and wait for them."""
        ...


def holds_device_arrays(blocks: object) -> bool:
    """Tell whether an array, or the first of several (in a list or a mapping), is in device memory."""
    if isinstance(blocks, Mapping):
        # Listed at once: another thread may change a dict.
        blocks = next(iter([*blocks.values()] if type(blocks) is dict else blocks.values()), None)
    elif isinstance(blocks, list | tuple):
        blocks = next(iter(blocks), None)
    return type(blocks) not in _HOST and is_device_array(blocks)


def _named(what: str, blocks: object) -> list[tuple[str, object]]:
    """Return arrays with their names: one, or those of a list or a mapping of shards."""
    if blocks is None:
        return []
    if isinstance(blocks, Mapping):
        return [(f"shard {index}", block) for index, block in blocks.items()]
    if isinstance(blocks, list | tuple):
        return [(f"block {i} of {what}", block) for i, block in enumerate(blocks)]
    return [(what, blocks)]


def _engine_of(arrays: list[tuple[str, object]]) -> _DeviceEngine:
    """Return the engine for arrays, all of which must be in the memory of one device.

    Raises
    ------
    EngineUnavailableError
        If there is no cuda engine here, with the reason.
    BlockError
    """
    for name, array in arrays:
        if type(array) in _HOST or not is_device_array(array):
            raise BlockError(f"{name} is not in device memory, as others are; copy one to where the others are")
    engine = get_engine("cuda")
    if not isinstance(engine, _DeviceEngine):
        raise EngineUnavailableError(f"the engine {engine.name!r} cannot work on device arrays")
    return engine.at(arrays)


def _product(code: _Code, matrix: Matrix) -> Product:
    if matrix.field.w != code.layout.w:
        raise EngineUnavailableError(
            "the code is one of bits, for which the cuda engine has no kernels; copy the arrays to the host"
        )
    return Product(matrix, code.layout)


def _check(what: str, blocks: _DeviceBlocks, count: int, like: _DeviceBlocks | None, multiple: int) -> None:
    """Refuse blocks of another number than `count`, or of another shape than others."""
    if blocks.count != count:
        raise BlockError(f"{what} has {blocks.count} blocks, not {count}")
    if like is None:
        check_length(blocks.length, multiple)
    elif _shape(blocks) != _shape(like):
        raise BlockError(f"the blocks of {what} have shape {_shape(blocks)}, others {_shape(like)}")


def _shape(blocks: _DeviceBlocks) -> tuple[int, ...]:
    return (blocks.length,) if blocks.single else (blocks.stripes, blocks.length)


def _refuse_overlap(inputs: _DeviceBlocks, outputs: _DeviceBlocks, out: object) -> None:
    """Refuse outputs that overlap inputs or each other; if `out`, whose blocks they are, is one array, they do not."""
    read, written, length = inputs.addresses(), outputs.addresses(), inputs.length
    if not (read.size and written.size and length):
        return
    meet = read.min() < written.max() + length and written.min() < read.max() + length
    if meet or isinstance(out, list | tuple | Mapping):
        refuse_overlap(*(Blocks(table.astype(np.uint64), length, None) for table in (read, written)))


def _shards(code: _Code, engine: _DeviceEngine, shards: Mapping[int, Any], low: int = 0) -> _DeviceBlocks:
    """Return the blocks of shards, in the order in which they are given."""
    indices = check_indices(shards, code.n, low)
    blocks = engine.blocks_of(list(shards.values()), writable=low > 0, name=lambda i: f"shard {indices[i]}")
    check_length(blocks.length, code.block_multiple)
    return blocks


def encode(code: _Code, data: object, out: Any = None) -> Any:
    """Make the parity blocks, as `Codec.encode` says."""
    engine = _engine_of([*_named("data", data), *_named("out", out)])
    inputs = engine.blocks_of(data, name="block {} of data".format)
    _check("data", inputs, code.k, None, code.block_multiple)
    if out is None:
        out = engine.new_array((*_shape(inputs)[:-1], code.m, inputs.length))
    if code.m:
        outputs = engine.blocks_of(out, writable=True, name="block {} of out".format)
        _check("out", outputs, code.m, inputs, 1)
        _refuse_overlap(inputs, outputs, out)
        engine.multiply(_product(code, code.parity), inputs, outputs)
    return out


def decode(code: _Code, shards: Mapping[int, Any], out: Any = None) -> Any:
    """Give the data back, as `Codec.decode` says."""
    engine = _engine_of([*_named("", shards), *_named("out", out)])
    given = _shards(code, engine, shards)
    if out is None:
        out = engine.new_array((*_shape(given)[:-1], code.k, given.length))
    _make(code, engine, shards, given, list(range(code.k)), out)
    return out


def reconstruct(code: _Code, shards: Mapping[int, Any], want: Iterable[int], out: Any = None) -> dict[int, Any]:
    """Make wanted shards from others, as `Codec.reconstruct` says."""
    engine = _engine_of([*_named("", shards), *_named("out", out)])
    given, wanted = _shards(code, engine, shards), check_indices(want, code.n)
    made = [shard for shard in wanted if out is not None or shard not in shards]
    new: dict[int, Any] = {}
    if made:
        place = engine.new_array((*_shape(given)[:-1], len(made), given.length)) if out is None else out
        _make(code, engine, shards, given, made, place)
        rows = place if isinstance(place, list | tuple) else _rows(engine.sliceable(place), len(made))
        new = dict(zip(made, rows, strict=True))
    return {shard: new[shard] if shard in new else shards[shard] for shard in wanted}


def _rows(array: Any, count: int) -> list[Any]:
    return [array[..., i, :] for i in range(count)]


def _make(
    code: _Code,
    engine: _DeviceEngine,
    shards: Mapping[int, Any],
    given: _DeviceBlocks,
    want: Sequence[int],
    out: object,
) -> None:
    """Put wanted shards into `out`: copies of those given, the others computed."""
    targets = engine.blocks_of(out, writable=True, name="block {} of out".format)
    _check("out", targets, len(want), given, 1)
    column = {shard: i for i, shard in enumerate(shards)}
    absent = [i for i, shard in enumerate(want) if shard not in column]
    plan = code.plan(shards, [want[i] for i in absent]) if absent else None
    # A block that is its own target is neither read nor written.
    place, to = given.addresses(), targets.addresses()
    copied = [
        (column[shard], i)
        for i, shard in enumerate(want)
        if shard in column and not np.array_equal(place[:, column[shard]], to[:, i])
    ]
    read = [column[shard] for shard in want if shard in column]
    read += [column[shard] for shard in plan.sources] if plan else []
    written = [*absent, *(i for _, i in copied)]
    if written:
        _refuse_overlap(given.select(read), targets.select(written), out)
    if copied:
        engine.copy(given.select([source for source, _ in copied]), targets.select([i for _, i in copied]))
    if plan:
        sources = given.select([column[shard] for shard in plan.sources])
        engine.multiply(_product(code, plan.matrix), sources, targets.select(absent))


def update(code: _Code, parity: Any, index: int, old: object, new: object) -> None:
    """Patch parity blocks, as `Codec.update` says."""
    engine = _engine_of([*_named("parity", parity), ("the old block", old), ("the new block", new)])
    (data,) = check_indices([index], code.k)
    names = ("the old block", "the new block")
    changed = engine.blocks_of([old, new], name=names.__getitem__)
    if isinstance(parity, Mapping):
        rows = [shard - code.k for shard in check_indices(parity, code.n, code.k)]
        targets = _shards(code, engine, parity, code.k)
    else:
        rows = list(range(code.m))
        targets = engine.blocks_of(parity, writable=True, name="block {} of parity".format)
    _check("parity", targets, len(rows), changed, 1)
    check_length(changed.length, code.block_multiple)
    _refuse_overlap(changed, targets, parity)
    matrix = _product(code, code.parity).matrix.rows(rows).columns([data, data])
    engine.add(matrix, code.layout, changed, targets)


def verify(
    code: _Code,
    shards: Mapping[int, Any],
    basis: tuple[int, ...],
    plan: Plan,
    on_host: Callable[[dict[int, npt.NDArray[np.uint8]]], VerifyReport],
) -> VerifyReport:
    """Tell whether shards belong together, as `Codec.verify` says.

    They are compared where they are, and an answer of one word for each block is waited for. Stripes that disagree are
    copied to the host, where it is found out which of their shards are wrong.

    Parameters
    ----------
    code : codec
    shards : mapping of shard index to device array
    basis : tuple of int
    plan : Plan
        Makes the shards given beside those of the basis.
    on_host : callable
        Does the same for blocks of one stripe in host memory.
    """
    engine = _engine_of(_named("", shards))
    given = _shards(code, engine, shards)
    column = {shard: i for i, shard in enumerate(shards)}
    disagreeing: set[int] = set()
    wrong_in: dict[int, tuple[int, ...]] = {}
    stripes: list[int] = []
    located = True
    if plan.want and given.stripes and given.length:
        # What the plan makes and what is given are one and the same if they add up to nothing.
        matrix = _product(code, plan.matrix).matrix
        sums = Matrix.hstack([matrix, Matrix.identity(matrix.field, len(plan.want))])
        inputs = given.select([column[shard] for shard in (*plan.sources, *plan.want)])
        stripes = np.flatnonzero(engine.find_ones(_product(code, sums), inputs).any(axis=1)).tolist()
    for stripe in stripes:
        (blocks,) = engine.copy_out(given.stripe(stripe))
        report = on_host(dict(zip(shards, blocks, strict=True)))
        disagreeing.update(report.disagreeing)
        located = located and report.located
        if report.wrong:
            wrong_in[stripe] = report.wrong
    wrong = tuple(sorted(set().union(*wrong_in.values())))
    found = tuple(sorted(disagreeing))
    return VerifyReport(not stripes, basis, plan.want, found, tuple(stripes), wrong, wrong_in, located)
