"""Where everything is: how a file is cut into stripes, blocks and frames, and where the frames stand in a shard."""

import math
from dataclasses import dataclass

from gfcode.errors import ParameterError
from gfcode.params import Layout
from gfcode.pipeline.frame import HEADER_BYTES

__all__ = ["DEFAULT_FRAME", "MAX_FRAME", "MAX_STRIPE_BYTES", "Geometry", "block_length_for", "block_multiple"]

#: Bytes of a frame unless another size is asked for.
DEFAULT_FRAME = 64 * 1024
#: Longest frame allowed. One write to a shard holds at least one frame.
MAX_FRAME = 4 * 1024 * 1024
#: Most bytes that the frames of one stripe may have together; it bounds the memory of one batch.
MAX_STRIPE_BYTES = 64 * 1024 * 1024


def block_multiple(layout: Layout) -> int:
    """Return the bytes of which every block is a multiple: whole strips, and whole cache lines of 64 bytes."""
    return math.lcm(layout.strip_bytes, 64)


def block_length_for(frame: int, layout: Layout, n: int) -> int:
    """Return the block length of frames of at most `frame` bytes.

    Parameters
    ----------
    frame : int
        Bytes of header and block that a frame may have.
    layout : Layout
    n : int
        Shards of the code.

    Raises
    ------
    ParameterError
        If no block fits, or the frame or a stripe of n frames would be too long.
    """
    multiple = block_multiple(layout)
    if frame < HEADER_BYTES + multiple:
        raise ParameterError(
            f"frames of {frame} bytes are too short for layout {layout.name!r} with w = {layout.w}; "
            f"use at least {HEADER_BYTES + multiple}"
        )
    if frame > MAX_FRAME:
        raise ParameterError(f"frames of {frame} bytes are too long; use at most {MAX_FRAME}")
    block = (frame - HEADER_BYTES) // multiple * multiple
    if n * (HEADER_BYTES + block) > MAX_STRIPE_BYTES:
        raise ParameterError(
            f"a stripe of {n} frames of {HEADER_BYTES + block} bytes is too long; "
            f"use frames of at most {MAX_STRIPE_BYTES // n} bytes"
        )
    return block


@dataclass(frozen=True, slots=True)
class Geometry:
    """Lengths and offsets of a shard set.

    Data shard j of stripe s holds the bytes [s·k·B + j·b, s·k·B + (j + 1)·b) of the file, where B is `block_length` and
    b is B too, save in the last stripe, whose blocks are as short as its data allows.

    Parameters
    ----------
    k : int
    multiple : int
        Bytes of which every block length is a multiple.
    block_length : int
        B.
    metadata_length : int
        Bytes of the metadata frame, which stands before the frames of the stripes.
    """

    k: int
    multiple: int
    block_length: int
    metadata_length: int

    @property
    def frame_length(self) -> int:
        """Bytes of a full frame."""
        return HEADER_BYTES + self.block_length

    @property
    def stripe_data(self) -> int:
        """Data bytes of a full stripe."""
        return self.k * self.block_length

    def stripes(self, size: int) -> int:
        """Return the stripes of a file of `size` bytes; an empty file has one, without data."""
        return max(1, -(-size // self.stripe_data))

    def last_data(self, size: int) -> int:
        """Return the data bytes of the last stripe of a file of `size` bytes."""
        return size - (self.stripes(size) - 1) * self.stripe_data

    def block_for(self, data_length: int) -> int:
        """Return the block length of a last stripe with this many data bytes."""
        return -(-data_length // (self.k * self.multiple)) * self.multiple

    def offset(self, stripe: int) -> int:
        """Return where in a shard file the frame of a stripe begins."""
        return self.metadata_length + stripe * self.frame_length

    def shard_length(self, stripes: int, last_data: int) -> int:
        """Return the bytes of a shard file whose last stripe has `last_data` bytes of data."""
        return self.offset(stripes - 1) + HEADER_BYTES + self.block_for(last_data)
