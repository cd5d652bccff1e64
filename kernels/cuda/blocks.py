"""Blocks in device memory: what an array offers, and where the kernels find its bytes."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gfcode.engine.arrays import is_device_array
from gfcode.errors import BlockError
from gfcode.kernels.cuda.batches import Batch
from gfcode.kernels.cuda.device import Device, Memory, Stream

__all__ = ["DeviceBlocks", "Resident", "device_blocks", "device_of"]


class Resident:
    """Constants on a device for the work of one stream; nothing needs to wait, for a stream keeps its order.

    Parameters
    ----------
    device : Device
    values : ndarray
        Copied.
    stream : Stream
        The stream that uploads them, and the only one whose work may use them.
    """

    def __init__(self, device: Device, values: npt.NDArray[Any], stream: Stream) -> None:
        self._values = np.ascontiguousarray(values)  # outlives the copy
        self._memory: Memory = device.allocate(max(1, self._values.nbytes), stream)
        device.copy(self._memory.address, self._values.ctypes.data, self._values.nbytes, stream)

    @property
    def address(self) -> int:
        """Where the constants are."""
        return self._memory.address


class DeviceBlocks:
    """`count` blocks of `length` bytes in each of `stripes` stripes, in device memory: at strides, or anywhere.

    Does not own memory: `owner` is kept referenced. Addresses need no alignment.

    Parameters
    ----------
    address : int
        Block 0 of stripe 0.
    strides : (int, int)
        Bytes from stripe to stripe and from block to block.
    shape : (int, int, int)
        Stripes, blocks of a stripe, bytes of a block.
    owner : object
    table : ndarray of int64, shape (stripes, count), optional
        Address of each block, where they are at no strides; `address` and `strides` then mean nothing.

    Attributes
    ----------
    single : bool
        Whether the arrays that it was made of have no axis of stripes.
    """

    __slots__ = ("_tables", "address", "count", "length", "owner", "single", "strides", "stripes", "table")

    def __init__(
        self,
        address: int,
        strides: tuple[int, int],
        shape: tuple[int, int, int],
        owner: object,
        table: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.address = address
        self.strides = strides
        self.stripes, self.count, self.length = shape
        self.owner = owner
        self.table = table
        self.single = False
        self._tables: dict[Stream, Resident] = {}

    @classmethod
    def of_array(cls, device: Device, array: object, stream: Stream, *, writable: bool = False) -> "DeviceBlocks":
        """Take the blocks of an array of uint8 of shape (count, length) or (stripes, count, length) on this device.

        The last axis is contiguous; the others may have any stride. `stream` is made to wait for the stream that the
        array says it is being written by.

        Raises
        ------
        BlockError
            For another shape, type, stride or device, or a read-only array where a writable one is needed.
        """
        address, shape, strides, owner = _open(device, array, stream, writable=writable)
        if len(shape) == 2:
            blocks = cls(address, (0, strides[0]), (1, shape[0], shape[1]), owner)
            blocks.single = True
            return blocks
        if len(shape) == 3:
            return cls(address, (strides[0], strides[1]), (shape[0], shape[1], shape[2]), owner)
        raise BlockError(
            f"blocks must be uint8 of shape (count, length) or (stripes, count, length), not of shape {shape}"
        )

    @classmethod
    def of_arrays(
        cls,
        device: Device,
        arrays: Sequence[object],
        stream: Stream,
        *,
        writable: bool = False,
        name: Callable[[int], str] = "block {}".format,
    ) -> "DeviceBlocks":
        """Take blocks that are arrays of their own, each of shape (length,) or (stripes, length), all alike.

        `name` says in errors which array is meant.

        Raises
        ------
        BlockError
            As `of_array`; or if the arrays differ in shape, or there are none.
        """
        if not arrays:
            raise BlockError("there are no blocks: give arrays of one shape, (length,) or (stripes, length)")
        found = [_open(device, array, stream, writable=writable) for array in arrays]
        first = found[0].shape
        for i, one in enumerate(found):
            if len(one.shape) not in {1, 2}:
                raise BlockError(f"{name(i)} has shape {one.shape}, not (length,) or (stripes, length)")
            if one.shape != first:
                raise BlockError(f"{name(i)} has shape {one.shape}, {name(0)} {first}; they must have the same")
        stripes, length = first if len(first) == 2 else (1, first[0])
        steps = np.arange(stripes, dtype=np.int64)[:, None]
        starts = np.array([one.address for one in found], np.int64)
        strides = np.array([one.strides[0] if len(first) == 2 else 0 for one in found], np.int64)
        owners = tuple(one.owner for one in found)
        blocks = cls.of_table(starts + steps * strides, length, owners)
        blocks.single = len(first) == 1
        return blocks

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the address of every block, shape (stripes, count)."""
        if self.table is not None:
            return self.table
        stripes = np.arange(self.stripes, dtype=np.int64)[:, None] * self.strides[0]
        return self.address + stripes + np.arange(self.count, dtype=np.int64) * self.strides[1]

    def select(self, columns: Sequence[int]) -> "DeviceBlocks":
        """Return the blocks of these columns, in this order, in every stripe."""
        return self.gather(np.broadcast_to(np.asarray(columns, np.int64), (self.stripes, len(columns))))

    def gather(self, index: npt.NDArray[np.integer]) -> "DeviceBlocks":
        """Return other blocks in each stripe.

        Parameters
        ----------
        index : ndarray of int, shape (stripes, blocks)
            Which blocks of a stripe, stripe by stripe.
        """
        index = np.asarray(index, np.int64)
        if index.ndim != 2 or index.shape[0] != self.stripes:
            raise BlockError(f"an index of blocks has shape ({self.stripes}, blocks), not {index.shape}")
        if index.size and not (index.min() >= 0 and index.max() < self.count):
            raise BlockError(f"blocks of a stripe are 0 to {self.count - 1}, not {index.min()} to {index.max()}")
        return self.of_table(np.take_along_axis(self.addresses(), index, axis=1), self.length, self.owner)

    def part(self, batch: Batch) -> "DeviceBlocks":
        """Return the stripes and bytes of a batch."""
        start, stripes, offset, length = batch
        table = None if self.table is None else self.table[start : start + stripes] + offset
        address = self.address + start * self.strides[0] + offset
        return DeviceBlocks(address, self.strides, (stripes, self.count, length), self.owner, table)

    def stripe(self, number: int) -> "DeviceBlocks":
        """Return the blocks of one stripe."""
        return self.part(Batch(number, 1, 0, self.length))

    @classmethod
    def in_memory(cls, memory: Memory, count: int, batch: Batch) -> "DeviceBlocks":
        """Take the blocks of a batch that lie in a buffer of its own, stripe after stripe at the batch's pitch."""
        strides = (count * batch.pitch, batch.pitch)
        return cls(memory.address, strides, (batch.stripes, count, batch.length), memory)

    @classmethod
    def join(cls, parts: Sequence["DeviceBlocks"]) -> "DeviceBlocks":
        """Take the blocks of several in each stripe, those of the first part first; all of as many stripes."""
        table = np.concatenate([part.addresses() for part in parts], axis=1)
        return cls.of_table(table, parts[0].length, tuple(part.owner for part in parts))

    @classmethod
    def of_table(cls, table: npt.NDArray[np.int64], length: int, owner: object) -> "DeviceBlocks":
        """Take blocks at any addresses, shape (stripes, count); at strides if they lie so, which needs no table."""
        stripes, count = table.shape
        down, across = np.diff(table, axis=0), np.diff(table, axis=1)
        if table.size and (down == down[:1, :1]).all() and (across == across[:1, :1]).all():
            strides = (int(down[0, 0]) if down.size else 0, int(across[0, 0]) if across.size else 0)
            return cls(int(table[0, 0]), strides, (stripes, count, length), owner)
        return cls(0, (0, 0), (stripes, count, length), owner, table)

    @property
    def alignment(self) -> int:
        """Largest power of two up to 16 that divides the address of every block."""
        if self.table is not None:
            bits = int(np.bitwise_or.reduce(self.table, axis=None)) | 16
        else:
            bits = self.address | 16
            bits |= self.strides[0] if self.stripes > 1 else 0
            bits |= self.strides[1] if self.count > 1 else 0
        return bits & -bits

    def device_table(self, device: Device, stream: Stream) -> int:
        """Return the address of a device table of the blocks' addresses, for the work of `stream`."""
        if stream not in self._tables:
            self._tables[stream] = Resident(device, self.addresses().astype(np.uint64), stream)
        return self._tables[stream].address


class _Opened(NamedTuple):
    """Where a device array is, and what keeps it there."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: object


def _open(device: Device, array: object, stream: Stream, *, writable: bool) -> _Opened:
    """Open a device array, whose bytes can be used on `stream` from here on."""
    if not is_device_array(array):
        raise BlockError(f"{type(array).__name__} is no array in device memory: it says so by no protocol")
    view: Mapping[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    if view is None:
        array = device.from_dlpack(array)
        view = device.interface_of(array)
    shape = tuple(int(size) for size in view["shape"])
    if view["typestr"] not in {"|u1", "<u1", "=u1"} or not shape:
        raise BlockError(f"blocks must be arrays of uint8, not of {view['typestr']} and shape {shape}")
    strides = view.get("strides") or tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    address, read_only = view["data"]
    if shape[-1] > 1 and strides[-1] != 1:
        raise BlockError("the bytes of each block must be contiguous")
    if writable and read_only:
        raise BlockError("output blocks are read-only")
    if 0 not in shape:
        place = device.locate(address)
        if place.kind == "device" and place.device != device.number:
            raise BlockError(f"blocks are on device {place.device}, but the engine runs on device {device.number}")
        producer = view.get("stream")
        if producer is not None and producer != stream:
            device.wait(stream, device.record(producer))
    return _Opened(int(address), shape, tuple(int(stride) for stride in strides), array)


def device_blocks(
    device: Device,
    arrays: object,
    stream: Stream,
    *,
    writable: bool = False,
    name: Callable[[int], str] = "block {}".format,
) -> DeviceBlocks:
    """Take blocks as callers give them: `DeviceBlocks`, an array of all, or a list of arrays of their own."""
    if isinstance(arrays, DeviceBlocks):
        return arrays
    if isinstance(arrays, list | tuple):
        return DeviceBlocks.of_arrays(device, arrays, stream, writable=writable, name=name)
    return DeviceBlocks.of_array(device, arrays, stream, writable=writable)


def device_of(device: Device, arrays: Iterable[tuple[str, object]]) -> int:
    """Return the number of the device that holds all arrays; empty ones are everywhere.

    Parameters
    ----------
    device : Device
        To be asked, and the answer if nothing else is.
    arrays : iterable of (str, device array)
        With their names, for errors.

    Raises
    ------
    BlockError
        If they are on different devices.
    """
    first: tuple[str, int] | None = None
    for name, array in arrays:
        view: Mapping[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
        if view is None:
            number = int(array.__dlpack_device__()[1])  # type: ignore[attr-defined] # is_device_array saw it
        elif 0 in view["shape"] or (place := device.locate(int(view["data"][0]))).kind != "device":
            continue
        else:
            number = place.device
        if first is None:
            first = name, number
        elif number != first[1]:
            raise BlockError(f"{name} is on device {number}, {first[0]} on device {first[1]}; copy one to the other")
    return device.number if first is None else first[1]
