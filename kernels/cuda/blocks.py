"""Blocks in device memory: what an array offers, and where the kernels find its bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import BlockError
from gfcode.kernels.cuda.device import Device, Memory, Stream

__all__ = ["DeviceBlocks", "Resident", "is_device_array"]


def is_device_array(value: object) -> bool:
    """Tell whether an object is an array in device memory: CuPy, torch, JAX, numba, or any other that says so."""
    if hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and int(device()[0]) in {2, 13}  # kDLCUDA, kDLCUDAManaged


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
    """`count` blocks of `length` bytes in each of `stripes` stripes, in device memory, at strides or from a table.

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
    index : ndarray of int, shape (stripes, count), optional
        Which block of its stripe each one is, where they are not 0, 1, 2, ...
    """

    __slots__ = ("_tables", "address", "count", "index", "length", "owner", "strides", "stripes")

    def __init__(
        self,
        address: int,
        strides: tuple[int, int],
        shape: tuple[int, int, int],
        owner: object,
        index: npt.NDArray[np.integer] | None = None,
    ) -> None:
        self.address = address
        self.strides = strides
        self.stripes, self.count, self.length = shape
        self.owner = owner
        self.index = index
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
        if not hasattr(array, "__cuda_array_interface__"):
            if not hasattr(array, "__dlpack__"):
                raise BlockError(f"{type(array).__name__} is no device array: it has no __cuda_array_interface__")
            array = device.from_dlpack(array)
        view: dict[str, Any] = array.__cuda_array_interface__  # type: ignore[attr-defined] # checked by name above
        shape = tuple(view["shape"])
        if view["typestr"] not in {"|u1", "<u1", "=u1"} or len(shape) not in {2, 3}:
            raise BlockError(
                f"blocks must be uint8 of shape (count, length) or (stripes, count, length), "
                f"not {view['typestr']} of shape {shape}"
            )
        strides = view.get("strides") or tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))
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
        if len(shape) == 2:
            return cls(address, (0, strides[0]), (1, *shape), array)
        return cls(address, (strides[0], strides[1]), shape, array)

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
        if self.index is not None:
            index = np.take_along_axis(self.index, index, axis=1)
        shape = (self.stripes, index.shape[1], self.length)
        if index.size and (index == index[0]).all():
            steps = np.diff(index[0])
            step = int(steps[0]) if steps.size else 1
            if (steps == step).all():  # still at strides: no table is needed
                address = self.address + int(index[0, 0]) * self.strides[1]
                return DeviceBlocks(address, (self.strides[0], step * self.strides[1]), shape, self.owner)
        return DeviceBlocks(self.address, self.strides, shape, self.owner, index)

    def part(self, start: int, stripes: int) -> "DeviceBlocks":
        """Return the blocks of `stripes` stripes from stripe `start` on."""
        index = None if self.index is None else self.index[start : start + stripes]
        address = self.address + start * self.strides[0]
        return DeviceBlocks(address, self.strides, (stripes, self.count, self.length), self.owner, index)

    @property
    def alignment(self) -> int:
        """Largest power of two up to 16 that divides the address of every block."""
        bits = self.address | 16
        if self.stripes > 1:
            bits |= self.strides[0]
        if self.count > 1 or self.index is not None:
            bits |= self.strides[1]
        return bits & -bits

    def table(self, device: Device, stream: Stream) -> int:
        """Address of a device table of the blocks' addresses, for the work of `stream`."""
        if stream not in self._tables:
            index = np.arange(self.count, dtype=np.int64)[None] if self.index is None else self.index
            stripes = np.arange(self.stripes, dtype=np.int64)[:, None]
            table = self.address + stripes * self.strides[0] + index * self.strides[1]
            whole = np.broadcast_to(table, (self.stripes, self.count)).astype(np.uint64)
            self._tables[stream] = Resident(device, whole, stream)
        return self._tables[stream].address
