"""What callers pass as blocks, turned into addresses: checked, and never copied."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from gfcode.engine.arrays import is_device_array
from gfcode.engine.buffers import address_of, addresses_of
from gfcode.engine.protocol import Blocks
from gfcode.errors import BlockError, ParameterError, UnrecoverableError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "BlockLike",
    "BlocksLike",
    "Bytes",
    "array_of",
    "arrays_of",
    "blocks_of",
    "check_indices",
    "check_length",
    "count_of",
    "integer_of",
    "join",
    "outputs_of",
    "refuse_device_array",
    "refuse_overlap",
    "rows_of",
    "same_memory",
    "shape_of",
    "shards_of",
]

Bytes: TypeAlias = npt.NDArray[np.uint8]
#: One block: an array of uint8, or anything with the buffer protocol.
BlockLike: TypeAlias = Union[Bytes, "Buffer"]
#: The blocks of all shards: an array (count, length) or (stripes, count, length), or one `BlockLike` for each.
BlocksLike: TypeAlias = Bytes | Sequence[BlockLike]

_BYTE: Final = np.dtype(np.uint8)
# Blocks up to which `refuse_overlap` compares Python integers.
_FEW: Final = 64


def array_of(block: BlockLike, what: str, *, writable: bool = False) -> Bytes:
    """View a block as bytes, without a copy.

    Parameters
    ----------
    block : array of uint8, shape (length,) or (stripes, length), or contiguous buffer
        The bytes of a buffer are taken as they lie in memory, whatever its format; two-dimensional buffers of bytes
        are (stripes, length).
    what : str
        Names the block in errors.
    writable : bool
        Whether it will be written.

    Raises
    ------
    BlockError
        If it is none of that, its bytes are not contiguous, or it is read-only where it will be written.
    """
    if isinstance(block, np.ndarray):
        array = block
    else:
        try:
            view = memoryview(block)
        except TypeError:
            refuse_device_array(block, what)
            raise BlockError(f"{what} is a {type(block).__name__}, not an array of uint8 or a buffer") from None
        except ValueError as error:  # a released memoryview, a closed mmap
            raise BlockError(f"{what} cannot be used: {error}") from None
        if not view.c_contiguous:
            raise BlockError(f"the bytes of {what} are not contiguous")
        two_dimensional = view.ndim == 2 and view.itemsize == 1
        array = np.frombuffer(view, np.uint8)
        if two_dimensional:
            array = array.reshape(view.shape)
    if array.dtype != _BYTE or array.ndim not in {1, 2}:
        raise BlockError(
            f"{what} is an array of {array.dtype} of shape {array.shape}, not of uint8 of shape (length,) or "
            "(stripes, length)"
        )
    if array.strides[-1] != 1 and array.shape[-1] > 1 and array.size:
        raise BlockError(f"the bytes of {what} are not contiguous")
    if writable and not array.flags.writeable:
        raise BlockError(f"{what} is read-only")
    return array


def arrays_of(blocks: Iterable[BlockLike], name: Callable[[int], str], *, writable: bool = False) -> list[Bytes]:
    """View several blocks as bytes and hold their shapes against each other.

    Parameters
    ----------
    blocks : iterable of blocks
    name : callable
        Names the block of a position in errors.
    writable : bool
        Whether they will be written.

    Raises
    ------
    BlockError
        As `array_of` does, and if two blocks differ in shape.
    """
    arrays: list[Bytes] = []
    shape: tuple[int, ...] | None = None
    for position, block in enumerate(blocks):
        # What most callers have, passed without another look: arrays of contiguous bytes.
        if type(block) is np.ndarray and block.dtype is _BYTE and block.strides == (1,) and not writable:
            array: Bytes = block
        else:
            array = array_of(block, name(position), writable=writable)
        if shape is None:
            shape = array.shape
        elif array.shape != shape:
            raise BlockError(f"{name(position)} has shape {array.shape}, {name(0)} {shape}; they must have the same")
        arrays.append(array)
    return arrays


def join(arrays: Sequence[Bytes]) -> Blocks:
    """Make blocks of arrays of one shape, one array for each shard."""
    first = arrays[0]
    if first.ndim == 1:
        return Blocks(np.array([addresses_of(arrays)], np.uint64), first.shape[0], arrays)
    stripes = np.arange(first.shape[0], dtype=np.int64)[:, None]
    table = np.array(addresses_of(arrays), np.int64) + stripes * [array.strides[0] for array in arrays]
    return Blocks(table.astype(np.uint64), first.shape[1], arrays)


def refuse_device_array(value: object, what: str) -> None:
    """Refuse an array in device memory among blocks of host memory, or where only those can be worked on."""
    if is_device_array(value):
        raise BlockError(f"{what} is in device memory, and what is done here with it is done in host memory; copy it")


def rows_of(blocks: BlocksLike, count: int, what: str) -> list[Any]:
    """Split the blocks of `count` shards into one for each.

    Parameters
    ----------
    blocks : array of uint8, shape (count, length) or (stripes, count, length), or sequence of `count` blocks
    count : int
    what : str
        Names the blocks in errors.

    Raises
    ------
    BlockError
        If it is none of that.
    """
    given: object = blocks
    if isinstance(given, memoryview) and given.ndim > 1:
        given = np.asarray(given)
    if isinstance(given, np.ndarray):
        if given.ndim not in {2, 3} or given.shape[-2] != count:
            raise BlockError(f"{what} has shape {given.shape}, not ({count}, length) or (stripes, {count}, length)")
        return [given[..., i, :] for i in range(count)]
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray | memoryview):
        refuse_device_array(given, what)
        raise BlockError(f"{what} is a {type(given).__name__}, not an array or a sequence of {count} blocks")
    rows = list(given)  # listed first: another thread may change the caller's
    if len(rows) != count:
        raise BlockError(f"{what} has {len(rows)} blocks, not {count}")
    return rows


def blocks_of(blocks: BlocksLike, count: int, what: str, *, writable: bool = False) -> tuple[Blocks, int | None]:
    """Turn the blocks of `count` shards, given as in `rows_of`, into addresses.

    Returns
    -------
    blocks : Blocks
    stripes : int or None
        None for a single stripe, given without an axis for stripes.

    Raises
    ------
    BlockError
    """
    if isinstance(blocks, np.ndarray) and blocks.ndim in {2, 3} and blocks.shape[-2] == count:
        return Blocks.of_array(blocks, writable=writable), blocks.shape[0] if blocks.ndim == 3 else None
    rows = rows_of(blocks, count, what)
    if not count:
        return Blocks(np.empty((1, 0), np.uint64), 0, None), None
    arrays = arrays_of(rows, lambda i: f"block {i} of {what}", writable=writable)
    return join(arrays), arrays[0].shape[0] if arrays[0].ndim == 2 else None


def outputs_of(out: BlocksLike, count: int, shape: tuple[int, ...]) -> list[Bytes]:
    """View the blocks that a caller gave for `count` shards of this shape, to be written.

    Raises
    ------
    BlockError
    """
    rows = arrays_of(rows_of(out, count, "out"), lambda i: f"block {i} of out", writable=True)
    if rows and rows[0].shape != shape:
        raise BlockError(f"the blocks of out have shape {rows[0].shape}, the inputs {shape}")
    return rows


def same_memory(first: Bytes, second: Bytes) -> bool:
    """Tell whether two arrays of one shape are the same bytes in memory."""
    return address_of(first) == address_of(second) and first.strides == second.strides


def check_indices(indices: Iterable[int], n: int, low: int = 0) -> tuple[int, ...]:
    """Return shard indices as integers.

    Raises
    ------
    ParameterError
        For one that is no integer in low .. n − 1, or appears twice, and for what is no iterable at all.
    """
    checked = []
    try:
        values = iter(indices)
    except TypeError:
        raise ParameterError(f"{indices!r} are no shard indices; give them in a list") from None
    for value in values:
        try:
            number = as_index(value)
        except TypeError:
            raise ParameterError(f"{value!r} is no shard index: it must be an integer") from None
        if not low <= number < n:
            raise ParameterError(f"there is no shard {number} here: indices are {low} to {n - 1}")
        checked.append(number)
    if len(set(checked)) != len(checked):
        twice = next(number for number in checked if checked.count(number) > 1)
        raise ParameterError(f"shard {twice} is given twice")
    return tuple(checked)


def shards_of(shards: Mapping[int, BlockLike], n: int, low: int = 0, *, writable: bool = False) -> dict[int, Bytes]:
    """View blocks, by shard index, as bytes; all of one shape.

    Indices and blocks are listed together: another thread that changes the mapping meanwhile cannot mix them up.

    Raises
    ------
    BlockError, ParameterError
    """
    if type(shards) is not dict and not isinstance(shards, Mapping):
        raise BlockError(f"shards are given as a mapping of shard index to block, not as a {type(shards).__name__}")
    pairs = list(shards.items())
    indices = check_indices([index for index, _ in pairs], n, low)
    arrays = arrays_of([block for _, block in pairs], lambda i: f"shard {indices[i]}", writable=writable)
    return dict(zip(indices, arrays, strict=True))


def integer_of(name: str, value: int) -> int:
    """Return an integer as such.

    Raises
    ------
    ParameterError
        For what is none.
    """
    try:
        return as_index(value)
    except TypeError:
        raise ParameterError(f"{name} must be an integer, not {value!r}") from None


def count_of(name: str, value: int) -> int:
    """Return a number of bytes or the like as an integer.

    Raises
    ------
    ParameterError
        For one that is none, or negative.
    """
    number = integer_of(name, value)
    if number < 0:
        raise ParameterError(f"{name} must not be negative: {number}")
    return number


def check_length(length: int, multiple: int) -> None:
    """Refuse blocks that are no whole strips.

    Raises
    ------
    BlockError
    """
    if length % multiple:
        padded = -(-length // multiple) * multiple
        raise BlockError(
            f"blocks have {length} bytes, which is no multiple of {multiple}; pad them with zeros to {padded} bytes"
        )


def shape_of(given: Mapping[int, Bytes], k: int, multiple: int) -> tuple[int, ...]:
    """Return the shape of all blocks given, once their length is known to be whole strips.

    Raises
    ------
    UnrecoverableError
        If none is given.
    BlockError
    """
    for block in given.values():
        check_length(block.shape[-1], multiple)
        return block.shape
    raise UnrecoverableError(f"no shards are given; any k = {k} are needed")


def refuse_overlap(inputs: Blocks, outputs: Blocks) -> None:
    """Refuse outputs that overlap inputs or each other.

    Raises
    ------
    BlockError
    """
    length = outputs.length
    if not length or not outputs.table.size:
        return
    if outputs.table.size <= _FEW and inputs.table.size <= _FEW:
        # Plain integers beat NumPy here. Inputs and outputs in different regions of memory are the rule.
        few = sorted(outputs.table.ravel().tolist())
        others = inputs.table.ravel().tolist()
        apart = not others or max(others) + length <= few[0] or few[-1] + length <= min(others)
        if apart and all(second - first >= length for first, second in pairwise(few)):
            return
    written = np.sort(outputs.table, axis=None)
    if (np.diff(written) < length).any():
        raise BlockError("output blocks overlap each other")
    read = inputs.table.ravel()
    after = np.searchsorted(written, read)  # the first output at or after each input
    following = written[np.minimum(after, written.size - 1)]
    preceding = written[np.maximum(after, 1) - 1]
    overlapping = (after < written.size) & (following - read < length) | (after > 0) & (read - preceding < length)
    if overlapping.any():
        column = int(np.flatnonzero(overlapping)[0]) % inputs.count
        raise BlockError(f"an output block overlaps input block {column}; give outputs of their own")
