"""Host blocks through a device: batches in page-locked buffers, copies in both directions beside the kernel."""

import contextlib
import ctypes
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Blocks
from gfcode.errors import DeviceError, DeviceMemoryError
from gfcode.kernels.cuda.batches import PITCH, Batch, cut, round_up, stride_of, take
from gfcode.kernels.cuda.blocks import DeviceBlocks
from gfcode.kernels.cuda.device import Device, Event, Memory, PinnedMemory, Stream

__all__ = ["Enqueue", "Streamer"]

#: Called with device inputs, device outputs, the number of their first stripe, and the stream.
Enqueue = Callable[[DeviceBlocks, DeviceBlocks, int, Stream], None]

#: Bytes of a batch, inputs and outputs: long enough that a copy runs at full rate, short enough to overlap soon.
_BATCH_BYTES: Final = 32 << 20
#: Batches under way: one comes in, one is worked on, one goes out.
_SLOTS: Final = 3


@dataclass
class _Slot:
    """Buffers of one batch, and how far it is."""

    device: Memory
    staging: PinnedMemory | None = None
    batch: Batch | None = None
    worked: Event | None = None
    sent: Event | None = None


@dataclass
class _Lane:
    """Slots of `size` bytes and streams that one call has to itself."""

    size: int
    slots: list[_Slot]
    incoming: Stream
    working: Stream
    outgoing: Stream

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.incoming, self.working, self.outgoing


def _runs(table: npt.NDArray[np.uint64], length: int) -> Iterator[tuple[int, int, int, int]]:
    """Rows of a table as (first row, rows, address, stride), as few as equal strides allow."""
    stripes, count = table.shape
    addresses = table.astype(np.int64)

    whole = stride_of(addresses.ravel(), length)
    if whole is not None:
        yield 0, stripes * count, int(addresses[0, 0]), whole
        return
    for i, row in enumerate(addresses):
        stride = stride_of(row, length)
        if stride is not None:
            yield i * count, count, int(row[0]), stride
        else:
            for j, address in enumerate(row.tolist()):
                yield i * count + j, 1, address, length


class Streamer:
    """Runs host blocks through a device. Safe to use from many threads: each call has buffers of its own.

    Parameters
    ----------
    device : Device
    batch_bytes : int
        Bytes of a batch.
    """

    def __init__(self, device: Device, batch_bytes: int = _BATCH_BYTES) -> None:
        self._device = device
        self._batch_bytes = batch_bytes
        self._idle: list[_Lane] = []
        self._lock = threading.Lock()

    def run(self, enqueue: Enqueue, inputs: Blocks, outputs: Blocks, strip: int) -> None:
        """Apply `enqueue` to all blocks; done on return.

        Parameters
        ----------
        enqueue : callable
        inputs, outputs : Blocks
            In host memory, checked by the caller; at least one block in each.
        strip : int
            Bytes that a part of a block must be a multiple of.

        Raises
        ------
        DeviceMemoryError
            If not even one strip of one stripe finds room.
        """
        quantum = math.lcm(strip, PITCH)
        rows = inputs.count + outputs.count
        row = round_up(inputs.length, PITCH)
        smallest = rows * min(quantum, row)
        wanted = max(smallest, min(self._batch_bytes, rows * row * inputs.stripes))
        with self._borrow(wanted, smallest) as lane:
            run = _Run(self._device, lane, enqueue, inputs, outputs)
            for number, batch in enumerate(cut(rows, inputs.stripes, inputs.length, lane.size, quantum)):
                run.start(lane.slots[number % _SLOTS], batch)
            for slot in lane.slots:
                run.finish(slot)

    @contextlib.contextmanager
    def _borrow(self, size: int, smallest: int) -> Iterator[_Lane]:
        """Lend buffers of `size` bytes, idle or new ones; smaller ones, down to `smallest`, where memory is short."""
        outgrown: list[_Lane] = []
        with self._lock:
            lane = next((idle for idle in self._idle if idle.size >= size), None)
            if lane is not None:
                self._idle.remove(lane)
            else:
                outgrown, self._idle = self._idle, []
        for small in outgrown:
            self._drop(small)
        lane = lane or self._make(size, smallest)
        try:
            yield lane
        except BaseException:
            self._drop(lane)  # waits: the caller's buffers may still be read or written
            raise
        with self._lock:
            self._idle.append(lane)

    def _drop(self, lane: _Lane) -> None:
        """Give a lane back once nothing uses it; a device that failed cannot be waited for, and need not be."""
        for stream in lane.streams:
            with contextlib.suppress(DeviceError):
                self._device.synchronize(self._device.record(stream))
            self._device.close_stream(stream)

    def _make(self, size: int, smallest: int) -> _Lane:
        device = self._device
        streams = incoming, working, outgoing = tuple(device.new_stream() for _ in range(3))

        def allocate(size: int) -> list[_Slot]:
            return [_Slot(device.allocate(size, working)) for _ in range(_SLOTS)]

        try:
            slots, size = take(allocate, size, smallest, _SLOTS)
        except DeviceMemoryError:
            for stream in streams:
                device.close_stream(stream)
            raise
        return _Lane(size, slots, incoming, working, outgoing)


class _Run:
    """One call: batches one after the other through the slots of a lane."""

    def __init__(self, device: Device, lane: _Lane, enqueue: Enqueue, inputs: Blocks, outputs: Blocks) -> None:
        self._device = device
        self._lane = lane
        self._enqueue = enqueue
        self._inputs, self._outputs = inputs, outputs
        # Page-locked blocks need no staging. A wrong guess costs time only: the driver copies from and to any memory.
        self._input_direct, self._output_direct = self._pinned(inputs), self._pinned(outputs)

    def _pinned(self, blocks: Blocks) -> bool:
        ends = (int(blocks.table.min()), int(blocks.table.max()) + blocks.length - 1) if blocks.table.size else ()
        return bool(ends) and all(self._device.locate(end).kind == "pinned" for end in ends)

    def start(self, slot: _Slot, batch: Batch) -> None:
        """Enqueue a batch, after the one that had the slot before is out of the way."""
        device, lane = self._device, self._lane
        if not (self._input_direct and self._output_direct):
            self.finish(slot)  # staging is about to be filled again; streams alone keep the order of the rest
        input_rows = batch.stripes * self._inputs.count
        source = slot.device.address
        target = source + input_rows * batch.pitch
        if slot.worked is not None:
            device.wait(lane.incoming, slot.worked)
        self._bring(slot, batch, source)
        device.wait(lane.working, device.record(lane.incoming))
        if slot.sent is not None:
            device.wait(lane.working, slot.sent)
        sources = self._device_blocks(source, self._inputs.count, batch, slot)
        targets = self._device_blocks(target, self._outputs.count, batch, slot)
        self._enqueue(sources, targets, batch.start, lane.working)
        slot.worked = device.record(lane.working)
        device.wait(lane.outgoing, slot.worked)
        self._send(slot, batch, target)
        slot.sent = device.record(lane.outgoing)
        slot.batch = batch

    @staticmethod
    def _device_blocks(address: int, count: int, batch: Batch, slot: _Slot) -> DeviceBlocks:
        strides = (count * batch.pitch, batch.pitch)
        return DeviceBlocks(address, strides, (batch.stripes, count, batch.length), slot)

    @staticmethod
    def _table(blocks: Blocks, batch: Batch) -> npt.NDArray[np.uint64]:
        return blocks.table[batch.start : batch.start + batch.stripes] + np.uint64(batch.offset)

    def _staging(self, slot: _Slot) -> int:
        if slot.staging is None:
            slot.staging = self._device.allocate_pinned(self._lane.size)
        return int(slot.staging.bytes.ctypes.data)

    def _bring(self, slot: _Slot, batch: Batch, source: int) -> None:
        """Copy a batch's inputs to the device."""
        table, stream = self._table(self._inputs, batch), self._lane.incoming
        if self._input_direct:
            for first, rows, address, stride in _runs(table, batch.length):
                to = source + first * batch.pitch
                self._device.copy_rows(to, batch.pitch, address, stride, batch.length, rows, stream)
            return
        staging = self._staging(slot)
        for row, address in enumerate(table.ravel().tolist()):
            ctypes.memmove(staging + row * batch.pitch, address, batch.length)
        self._device.copy(source, staging, table.size * batch.pitch, stream)

    def _send(self, slot: _Slot, batch: Batch, target: int) -> None:
        """Copy a batch's outputs from the device: to their place, or to the part of staging behind the inputs."""
        table, stream = self._table(self._outputs, batch), self._lane.outgoing
        if self._output_direct:
            for first, rows, address, stride in _runs(table, batch.length):
                source = target + first * batch.pitch
                self._device.copy_rows(address, stride, source, batch.pitch, batch.length, rows, stream)
            return
        staging = self._staging(slot) + target - slot.device.address
        self._device.copy(staging, target, table.size * batch.pitch, stream)

    def finish(self, slot: _Slot) -> None:
        """Wait until a slot's batch is out of the device, and hand over the outputs that are in staging."""
        batch, slot.batch = slot.batch, None
        if batch is None:
            return
        self._device.synchronize(slot.sent)
        if not self._output_direct:
            staging = self._staging(slot) + batch.stripes * self._inputs.count * batch.pitch
            for row, address in enumerate(self._table(self._outputs, batch).ravel().tolist()):
                ctypes.memmove(address, staging + row * batch.pitch, batch.length)
