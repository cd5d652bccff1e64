"""What the engine asks of a device: a dozen calls, all asynchronous unless their name says otherwise.

`gfcode.kernels.cuda.cupy_device` has the one that runs on GPUs. Tests have another, which runs the kernels' own
sources on the CPU.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gfcode.kernels.cuda.launch import Build, DeviceInfo, Launch
from gfcode.kernels.cuda.work import Work

__all__ = ["Device", "Event", "Kernel", "Location", "Memory", "PinnedMemory", "Stream"]

#: Handles that only the device that gave them understands.
Kernel = object
Event = object
#: A stream is its address in the driver, as other libraries hand it over; 0 is the default stream.
Stream = int


class Memory(Protocol):
    """Device memory, given back when the object goes."""

    @property
    def address(self) -> int:
        """Where it starts, at a multiple of 256."""
        ...


class PinnedMemory(Protocol):
    """Page-locked host memory, given back when the object goes."""

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The memory."""
        ...


class Location(NamedTuple):
    """Whose memory an address is: ordinary or page-locked host memory, or that of device number `device`."""

    kind: Literal["host", "pinned", "device"]
    device: int


class Device(Protocol):
    """A GPU and its driver. Safe to use from many threads."""

    @property
    def info(self) -> DeviceInfo:
        """What launches are configured for."""
        ...

    @property
    def number(self) -> int:
        """Number of the device among those of the process."""
        ...

    @property
    def compiler(self) -> str:
        """Name and version of the compiler: part of the key of what it makes."""
        ...

    def compile(self, build: Build) -> bytes:
        """Compile a kernel for this device.

        Raises
        ------
        DeviceError
            With the first line of the compiler's complaint.
        """
        ...

    def load(self, image: bytes, kernel: str) -> Kernel:
        """Make a compiled kernel ready to launch."""
        ...

    def launch(self, kernel: Kernel, launch: Launch, work: Work, stream: Stream) -> None:
        """Start a kernel; `work` is copied."""
        ...

    def current_stream(self) -> Stream:
        """Return the caller's current stream."""
        ...

    def new_stream(self) -> Stream:
        """Make a stream that waits for no other."""
        ...

    def close_stream(self, stream: Stream) -> None:
        """Give a stream back once its work is done."""
        ...

    def record(self, stream: Stream) -> Event:
        """Mark where a stream is."""
        ...

    def wait(self, stream: Stream, event: Event) -> None:
        """Let a stream go on only after a mark."""
        ...

    def synchronize(self, event: Event) -> None:
        """Wait on the host until a mark is reached."""
        ...

    def elapsed(self, start: Event, end: Event) -> float:
        """Seconds between two marks that have been reached."""
        ...

    def allocate(self, size: int, stream: Stream) -> Memory:
        """Take device memory that is first used by `stream`.

        Raises
        ------
        DeviceMemoryError
            If there is not enough.
        """
        ...

    def allocate_pinned(self, size: int) -> PinnedMemory:
        """Take page-locked host memory.

        Raises
        ------
        DeviceMemoryError
            If there is not enough.
        """
        ...

    def copy(self, to: int, source: int, size: int, stream: Stream) -> None:
        """Copy bytes between any two addresses."""
        ...

    def copy_rows(
        self, to: int, to_stride: int, source: int, source_stride: int, width: int, rows: int, stream: Stream
    ) -> None:
        """Copy `rows` runs of `width` bytes, which lie at strides on both sides."""
        ...

    def locate(self, address: int) -> Location:
        """Say whose memory an address is."""
        ...

    def new_array(self, shape: tuple[int, ...]) -> object:
        """Make an uninitialised array of uint8 for a caller, first used by the current stream.

        Raises
        ------
        DeviceMemoryError
            If there is not enough memory.
        """
        ...

    def from_dlpack(self, array: object) -> object:
        """Make an array of this device's own kind, which can be sliced, of one that has `__dlpack__`; no copy.

        Work of the current stream finds its bytes as they are meant to be.
        """
        ...

    def interface_of(self, array: object) -> Mapping[str, Any]:
        """Say of an array of this device's own kind what `__cuda_array_interface__` says of others."""
        ...
