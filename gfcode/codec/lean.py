"""The short way of calls on one small stripe: addresses of blocks straight to the engine, no NumPy call per block.

Each function returns None where it does not know the case at hand, right or wrong; the general way, which knows all
cases and names what is wrong, is taken then. So nothing is refused here. What is known: operators that take bare
addresses (`gfcode.engine.protocol.AddressOperator`); a stripe in one array of shape (count, length), or blocks that
are all `bytes`, all `bytearray`, all memoryviews of bytes, or all arrays of shape (length,).

Addresses are read from where CPython's `bytes` and NumPy's arrays have them: `ctypes` takes as long for one block as a
small stripe takes in all. Both are fixed for extensions that are compiled against them, and are held against what the
interpreter itself says of some objects when this module is loaded; where that differs, the general way is always taken.
Blocks are listed once, and looked at and used in that list, so that another thread that changes the caller's list
meanwhile cannot put something else in their place. Dicts are the callers' copies, for the same reason.
"""

import sys
from array import array
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char, c_char_p, c_uint64, c_void_p
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from gfcode.engine.buffers import ALIGNMENT, row_stride
from gfcode.engine.protocol import Blocks, Operator

__all__ = [
    "COPIED",
    "Quick",
    "Run",
    "addresses_of_bytes",
    "encode",
    "make",
    "quick_change",
    "quick_plan",
    "run_at",
    "run_of",
    "update",
]

#: Pairs of a row of the result and the place of the given shard that is copied there.
_Copies: TypeAlias = Sequence[tuple[int, int]]
#: Shard indices.
Indices: TypeAlias = tuple[int, ...] | bytes
#: `AddressOperator.run`.
Run: TypeAlias = Callable[..., bool]

_ndarray: Final = np.ndarray
_BYTE: Final = np.dtype(np.uint8)
_ROW: Final = (1,)
_empty: Final = np.empty
_from_buffer: Final[Any] = c_char.from_buffer
_frombuffer: Final = np.frombuffer
_step: Final = lru_cache(1 << 8)(row_stride)
#: Bytes of a block up to which copies are made with the interpreter's lock held.
COPIED: Final = 1 << 16

_CPYTHON: Final = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32


def _words(start: int) -> memoryview:
    """All memory of the process from an address on, as 64-bit words."""
    return memoryview((c_uint64 * (1 << 44)).from_address(start)).cast("B").cast("Q")


#: Word number id >> 3 is an object's first own field, behind what every object has; for NumPy's arrays, that is the
#: pointer to their data.
_first: Final = _words(object.__basicsize__) if _CPYTHON else memoryview(b"").cast("Q")
#: Where the content of `bytes` begins, counted from the object's address.
_CONTENT: Final = bytes.__basicsize__ - 1 if _CPYTHON else 0


def _layouts_hold() -> bool:
    """Whether both are so in this interpreter, by what it says itself of some objects."""
    if not _CPYTHON:
        return False
    for size in (1, 7, 64, 70000):
        sample = bytes(size)
        if id(sample) + _CONTENT != c_void_p.from_buffer(c_char_p(sample)).value:
            return False
        for view in (np.empty(size, np.uint8), np.frombuffer(sample, np.uint8), np.empty((size, 3), np.uint8)[1:]):
            if _first[id(view) >> 3] != view.__array_interface__["data"][0]:
                return False
    return True


_QUICK: Final = _layouts_hold()


def run_of(operator: object) -> Run | None:
    """Return `operator.run`, where it has that and addresses can be had."""
    return getattr(operator, "run", None) if _QUICK else None


def addresses_of_bytes(blocks: Sequence[bytes], offset: int) -> list[int]:
    """Return where a byte of the content of each is."""
    if _QUICK:
        offset += _CONTENT
        return [id(block) + offset for block in blocks]
    return [(c_void_p.from_buffer(c_char_p(block)).value or 0) + offset for block in blocks]


def run_at(operator: Operator, inputs: list[int], outputs: list[int], length: int, owners: object) -> None:
    """Run an operator on one stripe by addresses, whatever kind it is; `owners` keeps the blocks."""
    run = run_of(operator)
    table, made = array("Q", inputs), array("Q", outputs)
    if run is None or not run(table.buffer_info()[0], 0, made.buffer_info()[0], 0, length):
        operator(
            Blocks(np.array([inputs], np.uint64), length, owners),
            Blocks(np.array([outputs], np.uint64), length, owners),
        )


def _rows(stripe: Any, count: int, multiple: int, *, writable: bool = False) -> tuple[int, int, int] | None:
    """Address, distance and length of blocks that lie in an array of shape (count, length), apart from each other."""
    if stripe.dtype is not _BYTE or (writable and not stripe.flags.writeable):
        return None
    shape, strides = stripe.shape, stripe.strides
    if len(shape) != 2 or shape[0] != count:
        return None
    length, step = shape[1], strides[0]
    if length <= 0 or length % multiple or step < length or strides[1] != 1:
        return None
    return _first[id(stripe) >> 3], step, length


def _addresses(blocks: list[Any], multiple: int) -> tuple[list[int], int, object] | None:
    """Address of each of one or more blocks of one kind and length, this length, and what keeps them in place."""
    first = blocks[0]
    kind = type(first)
    owners: object = blocks
    if kind is bytes:
        length = len(first)
        found = [id(block) + _CONTENT for block in blocks if type(block) is bytes and len(block) == length]
    elif kind is _ndarray and first.ndim == 1:
        length = len(first)
        found = [
            _first[id(block) >> 3]
            for block in blocks
            if type(block) is _ndarray and block.dtype is _BYTE and block.strides == _ROW and len(block) == length
        ]
    elif kind is bytearray and first:
        length = len(first)
        # As long as these live, nobody can resize the blocks.
        owners = held = [_from_buffer(block) for block in blocks if type(block) is bytearray and len(block) == length]
        found = list(map(addressof, held))
    elif kind is memoryview:
        try:
            length = first.nbytes
            owners = held = [
                _frombuffer(block, _BYTE)
                for block in blocks
                if type(block) is memoryview and block.ndim == 1 and block.format == "B" and block.strides == _ROW
            ]
        except ValueError:  # one that was released
            return None
        found = [_first[id(view) >> 3] for view in held if len(view) == length]
    else:
        return None
    return (found, length, owners) if length and not length % multiple and len(found) == len(blocks) else None


def _new(count: int, length: int) -> tuple[Any, Any, int, int, int]:
    """Make an array of blocks: it, the memory behind it, the byte of that and the address where it begins, its step."""
    step = _step(length)
    memory = _empty(count * step + ALIGNMENT, _BYTE)
    address = _first[id(memory) >> 3]
    offset = -address % ALIGNMENT
    if count == 1:  # a slice takes half the time
        return memory[None, offset : offset + length], memory, offset, address + offset, step
    return _ndarray((count, length), _BYTE, memory, offset, (step, 1)), memory, offset, address + offset, step


def _target(
    out: Any, count: int, length: int, begin: int, end: int, addresses: Sequence[int] = (), copies: _Copies = ()
) -> tuple[int, int] | None:  # fmt: skip
    """Address and distance of blocks to be written, if they lie in an array apart from all inputs.

    Inputs lie from `begin` to `end`, at `addresses` where these are given. One that is copied may be where it is to be.
    """
    rows = _rows(out, count, 1, writable=True) if type(out) is _ndarray else None
    if rows is None or rows[2] != length:
        return None
    start, step, _ = rows
    stop = start + count * step
    if start < end and begin < stop:
        inside = {place for place, address in enumerate(addresses) if start - length < address < stop}
        in_place = {place for row, place in copies if addresses[place] == start + row * step}
        if not addresses or inside != in_place:
            return None
    return start, step


def encode(run: Run, data: Any, out: Any, k: int, m: int, multiple: int) -> Any:
    """Do what `Codec.encode` does."""
    kind = type(data)
    addresses: list[int] = []
    if kind is _ndarray:
        rows = _rows(data, k, multiple)
        if rows is None:
            return None
        inputs, step, length = rows
        begin, end = inputs, inputs + k * step
    elif kind is list or kind is tuple:
        blocks = [*data]
        found = _addresses(blocks, multiple) if len(blocks) == k else None
        if found is None:
            return None
        addresses, length, _ = found
        table = array("Q", addresses)
        inputs, step = table.buffer_info()[0], 0
        begin, end = min(addresses), max(addresses) + length
    else:
        return None
    if out is None:
        out, _, _, outputs, outputs_step = _new(m, length)
    else:
        place = _target(out, m, length, begin, end, addresses)
        if place is None:
            return None
        outputs, outputs_step = place
    return out if run(inputs, step, outputs, outputs_step, length) else None


class Quick(NamedTuple):
    """How to make shards from those given, found by their indices alone.

    Attributes
    ----------
    run : callable or None
        Makes them; None where nothing is to be made.
    pick : callable or None
        Takes the addresses of the shards to be read out of those of all that are given; None where these are all.
    rows : tuple of int
        Where they go, among the rows of the result.
    copies : tuple of (int, int)
        Row and position of given shards that are to be copied.
    """

    run: Run | None
    pick: Callable[[list[int]], tuple[int, ...]] | None
    rows: tuple[int, ...]
    copies: tuple[tuple[int, int], ...]


def quick_plan(n: int, find: Callable[..., Any], available: bytes, want: bytes) -> Quick | None:
    """Plan for shards by index; None if any is no shard of the code or is named twice, or for another kind of engine.

    Parameters
    ----------
    n : int
    find : callable
        From tuples of available and wanted indices, none of which is available, to a `Plan`.
    available, want : bytes
        Indices, which is what a short way knows: those below 256.
    """
    if len({*available}) != len(available) or len({*want}) != len(want) or max(available + want, default=0) >= n:
        return None
    rows = tuple([row for row, shard in enumerate(want) if shard not in available])
    copies = tuple([(row, available.index(shard)) for row, shard in enumerate(want) if shard in available])
    if not rows:
        return Quick(None, None, rows, copies)
    plan = find(tuple(available), tuple([want[row] for row in rows]))
    run = run_of(plan.operator)
    if run is None or not plan.sources:
        return None
    places = [available.index(shard) for shard in plan.sources]
    pick = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
    return Quick(run, None if places == [*range(len(available))] else pick, rows, copies)


def quick_change(rows: Indices, patch: Callable[..., Operator], data: int) -> Run | None:
    """Return what adds the change of a data shard to all parities."""
    return run_of(patch(rows, data, 2))


def _copy(
    copies: _Copies, blocks: list[Any], addresses: list[int], shape: tuple[int, int], out: Any
) -> tuple[Any, int, int] | None:  # fmt: skip
    """Copy given blocks into a new array, or into `out`; return it with the address of its first row and their step."""
    count, length = shape
    if out is None:
        out, memory, offset, start, step = _new(count, length)
        if copies:
            view = memoryview(memory)
            for row, position in copies:
                begin = offset + row * step
                view[begin : begin + length] = blocks[position]
        return out, start, step
    place = _target(out, count, length, min(addresses), max(addresses) + length, addresses, copies)
    if place is None:
        return None
    start, step = place
    for row, position in copies:
        if addresses[position] != start + row * step:
            out[row].data[:] = blocks[position]
    return out, start, step


def make(
    quick: Callable[[bytes, bytes], Quick | None], shards: dict[int, Any], want: Indices, multiple: int, *,
    copied: int = 0, out: Any = None,
) -> Any:  # fmt: skip
    """Return an array of the wanted shards: copies of those given, the others computed.

    Parameters
    ----------
    quick : callable
        `quick_plan` for a code.
    shards : dict of int to block
        One that no other thread changes.
    want : tuple of int, or bytes
        Indices.
    multiple : int
    copied : int
        Bytes of a block up to which shards that are given are copied.
    out : object
        Where to put them. A shard that is given may be there already.
    """
    blocks = [*shards.values()]
    found = _addresses(blocks, multiple) if blocks else None
    if found is None:
        return None
    addresses, length, _ = found
    try:
        available, wanted = bytes([*shards]), bytes(want)
    except (TypeError, ValueError, OverflowError):
        return None
    plan = quick(available, wanted) if len(available) == len(addresses) else None
    if plan is None or (plan.copies and length > copied):
        return None
    place = _copy(plan.copies, blocks, addresses, (len(wanted), length), out)
    if place is None:
        return None
    out, outputs, step = place
    if plan.run is not None:
        table = array("Q", addresses if plan.pick is None else plan.pick(addresses))
        if plan.copies:
            places = array("Q", [outputs + row * step for row in plan.rows])
            outputs, step = places.buffer_info()[0], 0
        if not plan.run(table.buffer_info()[0], 0, outputs, step, length):
            return None
    return out


def update(run: Run, parity: Any, count: int, old: Any, new: Any, multiple: int) -> bool:
    """Do what `Codec.update` does, where `run` adds what two blocks, before and after, mean for all parities."""
    before, length = _address(old)
    after, other = _address(new)
    if not length or length != other or length % multiple:
        return False
    if type(parity) is _ndarray:
        rows = _rows(parity, count, multiple, writable=True)
        if rows is None or rows[2] != length:
            return False
        outputs, step, _ = rows
        begin, end = outputs - length, outputs + count * step
        apart = not (begin < before < end or begin < after < end)
    elif type(parity) is list or type(parity) is tuple:
        blocks = [*parity]
        found = _addresses(blocks, multiple) if len(blocks) == count else None
        if found is None or found[1] != length or not all(map(_is_writable, blocks)):
            return False
        table = array("Q", found[0])
        outputs, step = table.buffer_info()[0], 0
        every = sorted(found[0])
        apart = all(second - first >= length for first, second in pairwise(every))
        apart = apart and all(abs(address - place) >= length for place in every for address in (before, after))
    else:
        return False
    if not apart:
        return False
    # Two blocks are a table of their own: the first, and the distance of the second.
    return after != before and run(before, after - before, outputs, step, length, True)


def _is_writable(block: Any) -> bool:
    return type(block) is bytearray or (type(block) is _ndarray and block.flags.writeable)


def _address(block: Any) -> tuple[int, int]:
    """Address and length of one block of `bytes`, or of an array of shape (length,); no length for another kind."""
    if type(block) is _ndarray and block.dtype is _BYTE and block.strides == _ROW:
        return _first[id(block) >> 3], len(block)
    return (id(block) + _CONTENT, len(block)) if type(block) is bytes else (0, 0)
