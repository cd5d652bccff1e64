"""What codecs do with device arrays beside products: copies, outputs that are added to, outputs that are looked at.

All is enqueued on one stream, in batches whose scratch memory is bounded. The same scratch serves batch after batch,
for a stream keeps its order.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from gfcode.kernels.cuda.batches import PITCH, Batch, cut, round_up, stride_of, take
from gfcode.kernels.cuda.blocks import DeviceBlocks, Resident
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.device import Device, Stream
from gfcode.kernels.cuda.launch import bit_search_launch
from gfcode.kernels.cuda.work import Work

__all__ = ["add", "copy", "copy_out", "find_ones"]

#: Scratch memory of a call, at most.
_SCRATCH: Final = 64 << 20

#: Enqueue a product: inputs, outputs.
Enqueue = Callable[[DeviceBlocks, DeviceBlocks], None]


def copy(device: Device, source: DeviceBlocks, target: DeviceBlocks, stream: Stream) -> None:
    """Enqueue copies of blocks to as many others; those that are their own targets stay as they are."""
    length = source.length
    for start, to in zip(source.addresses().T, target.addresses().T, strict=True):
        if not length or np.array_equal(start, to):
            continue
        step, to_step = stride_of(start, length), stride_of(to, length)
        if step is not None and to_step is not None:
            device.copy_rows(int(to[0]), to_step, int(start[0]), step, length, len(start), stream)
        else:
            for one, other in zip(start.tolist(), to.tolist(), strict=True):
                device.copy(other, one, length, stream)


def copy_out(device: Device, blocks: DeviceBlocks, stream: Stream) -> npt.NDArray[np.uint8]:
    """Copy blocks to the host, and wait for them.

    Returns
    -------
    ndarray of uint8, shape (stripes, count, length)
    """
    shape = (blocks.stripes, blocks.count, blocks.length)
    staging = device.allocate_pinned(max(1, math.prod(shape)))
    place = int(staging.bytes.ctypes.data)
    for i, address in enumerate(blocks.addresses().ravel().tolist()):
        device.copy(place + i * blocks.length, address, blocks.length, stream)
    device.synchronize(device.record(stream))
    return staging.bytes[: math.prod(shape)].reshape(shape).copy()


def _batches(
    device: Device, like: DeviceBlocks, rows: int, strip: int, stream: Stream
) -> Iterator[tuple[Batch, DeviceBlocks]]:
    """Cut stripes into batches, with scratch blocks for `rows` blocks of each stripe."""
    quantum, row = math.lcm(strip, PITCH), round_up(like.length, PITCH)
    smallest = rows * min(quantum, row)
    wanted = max(smallest, min(_SCRATCH, rows * row * like.stripes))
    memory, size = take(lambda size: device.allocate(size, stream), wanted, smallest)
    for batch in cut(rows, like.stripes, like.length, size, quantum):
        yield batch, DeviceBlocks.in_memory(memory, rows, batch)


def add(
    device: Device, enqueue: Enqueue, inputs: DeviceBlocks, outputs: DeviceBlocks, strip: int, stream: Stream
) -> None:
    """Enqueue outputs += product of the inputs.

    Kernels take it that their inputs stay as they are while they run. So what is added to is copied first.

    Parameters
    ----------
    device : Device
    enqueue : callable
        A product whose first inputs are the outputs as they were, and whose others are `inputs`.
    inputs, outputs : DeviceBlocks
    strip : int
        Bytes that a part of a block is a multiple of.
    stream : Stream
    """
    for batch, before in _batches(device, outputs, outputs.count, strip, stream):
        target = outputs.part(batch)
        copy(device, target, before, stream)
        enqueue(DeviceBlocks.join([before, inputs.part(batch)]), target)


def find_ones(
    context: Context, enqueue: Enqueue, inputs: DeviceBlocks, rows: int, strip: int, stream: Stream
) -> npt.NDArray[np.bool_]:
    """Tell which outputs of a product have a one anywhere. Waits: the answer is for the host.

    Parameters
    ----------
    context : Context
    enqueue : callable
        The product.
    inputs : DeviceBlocks
    rows : int
        Outputs of a stripe.
    strip : int
        Bytes that a part of a block is a multiple of.
    stream : Stream

    Returns
    -------
    ndarray of bool, shape (stripes, rows)
    """
    device = context.device
    flags = Resident(device, np.zeros((inputs.stripes, rows), np.uint32), stream)
    for batch, made in _batches(device, inputs, rows, strip, stream):
        enqueue(inputs.part(batch), made)
        work = Work(length=batch.length, c=rows, stripes=batch.stripes)
        work.input, (work.input_stripe, work.input_block) = made.address, made.strides
        work.output = flags.address + 4 * batch.start * rows
        context.launch(bit_search_launch(batch.stripes, batch.length, device.info), work, stream)
    shape = (1, 1, 4 * inputs.stripes * rows)
    found = copy_out(device, DeviceBlocks(flags.address, (0, 0), shape, flags), stream)
    ones: npt.NDArray[np.bool_] = found.view(np.uint32).reshape(inputs.stripes, rows) != 0
    return ones
