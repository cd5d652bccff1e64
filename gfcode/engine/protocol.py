"""The contract between codes and whatever runs their products.

Every operation on a linear code is one product over GF(2^w): outputs = matrix · inputs. A `Product` names the matrix
and the layout; an `Engine` prepares it once and returns an `Operator`; the operator is then called on `Blocks`, any
number of stripes at a time, without further allocation or checking of the matrix.
"""

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import address_of, addresses_of, place
from gfcode.errors import BlockError, ParameterError
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["AddingOperator", "AddressOperator", "Blocks", "CompilingOperator", "Engine", "Operator", "Product"]

_BYTE: Final = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class Product:
    """outputs (r blocks) = matrix (r × c) · inputs (c blocks), symbol by symbol.

    Parameters
    ----------
    matrix : Matrix
        r × c elements of the field.
    layout : Layout
        How blocks hold symbols; its w is the field's.

    Raises
    ------
    ParameterError
        If r or c is 0, so that no engine has to mind, or the layout is of another w.
    """

    matrix: Matrix
    layout: Layout

    def __post_init__(self) -> None:
        if 0 in self.matrix.shape:
            raise ParameterError(f"a product needs rows and columns; its matrix has shape {self.matrix.shape}")
        if self.matrix.field.w != self.layout.w:
            raise ParameterError(f"the matrix is over {self.matrix.field}, and the layout is for w = {self.layout.w}")

    def check(self, inputs: "Blocks", outputs: "Blocks") -> None:
        """Refuse blocks that this product cannot be applied to; engines call it, for they trust addresses after it.

        Raises
        ------
        BlockError
            If counts, stripes or lengths do not fit the matrix, the layout, or each other.
        """
        rows, columns = self.matrix.shape
        stripes, count = inputs.stripes, inputs.count
        if count != columns:
            raise BlockError(f"the product takes {columns} input blocks a stripe, not {count}")
        if (outputs.stripes, outputs.count) != (stripes, rows):
            raise BlockError(
                f"the product makes {rows} output blocks in each of {stripes} stripes, "
                f"not {outputs.count} in {outputs.stripes}"
            )
        length = inputs.length
        if outputs.length != length:
            raise BlockError(f"output blocks have {outputs.length} bytes, input blocks {length}")
        if length % self.layout.strip_bytes:
            raise BlockError(
                f"blocks of {length} bytes are no whole number of strips of {self.layout.strip_bytes} bytes"
            )


class Blocks:
    """Addresses of `count` blocks in each of `stripes` stripes, all of one length, and what keeps them alive.

    Blocks do not own memory: `owners` holds references to the buffers behind the addresses. Addresses need no
    alignment. The same address may stand in several places of an input table.

    Parameters
    ----------
    table : ndarray of uint64, shape (stripes, count)
        Address of each block; C-contiguous.
    length : int
        Bytes of every block.
    owners : object
        Kept referenced for as long as this object lives.

    Attributes
    ----------
    stripes, count : int
        Stripes, and blocks of each.
    table : ndarray of uint64, shape (stripes, count)
    """

    __slots__ = ("_address", "count", "length", "owners", "stripes", "table")

    def __init__(self, table: npt.NDArray[np.uint64], length: int, owners: object) -> None:
        if table.ndim != 2 or table.dtype != np.uint64:
            raise BlockError(f"a block table is a 2-d array of uint64, not {table.ndim}-d of {table.dtype}")
        self.table: npt.NDArray[np.uint64] = np.ascontiguousarray(table)
        self._address: int | None = None
        self.stripes, self.count = table.shape
        self.length = length
        self.owners = owners

    @property
    def address(self) -> int:
        """Address of the table itself, for engines that hand it to native code (found once: it takes NumPy a µs)."""
        if self._address is None:
            self._address = address_of(self.table)
        return self._address

    @classmethod
    def of_array(cls, array: npt.NDArray[np.uint8], *, writable: bool = False) -> "Blocks":
        """Blocks that lie in one array.

        Parameters
        ----------
        array : ndarray of uint8, shape (count, length) or (stripes, count, length)
            The last axis is contiguous; the others may have any stride.
        writable : bool
            Whether an engine will write to the blocks.

        Raises
        ------
        BlockError
            For another shape, type or stride, or a read-only array where a writable one is needed.
        """
        shape, strides = array.shape, array.strides
        if array.dtype != _BYTE or len(shape) not in {2, 3}:
            raise BlockError(
                f"blocks must be uint8 of shape (count, length) or (stripes, count, length), "
                f"not {array.dtype} of shape {shape}"
            )
        if strides[-1] != 1 and shape[-1] > 1 and array.size:
            raise BlockError("the bytes of each block must be contiguous")
        if writable and not array.flags.writeable:
            raise BlockError("output blocks are read-only")
        return cls(_table(address_of(array), shape, strides), shape[-1], array)

    @classmethod
    def allocate(cls, *shape: int) -> tuple[npt.NDArray[np.uint8], "Blocks"]:
        """Make an array as `gfcode.engine.buffers.allocate` does, of two or three dimensions, and its blocks."""
        array, address = place(*shape)
        return array, cls(_table(address, shape, array.strides), shape[-1], array)

    @classmethod
    def of_buffers(cls, buffers: Sequence[npt.NDArray[np.uint8]], *, writable: bool = False) -> "Blocks":
        """Blocks of one stripe, each a 1-d contiguous uint8 array of its own.

        Raises
        ------
        BlockError
            If lengths differ, an array is not 1-d contiguous uint8, or is read-only where it will be written.
        """
        length = buffers[0].shape[0] if buffers else 0
        for index, buffer in enumerate(buffers):
            if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
                raise BlockError(f"block {index} is not a contiguous 1-d array of uint8")
            if buffer.shape[0] != length:
                raise BlockError(f"block {index} has {buffer.shape[0]} bytes, block 0 has {length}")
            if writable and not buffer.flags.writeable:
                raise BlockError(f"output block {index} is read-only")
        table = np.array([addresses_of(buffers)], np.uint64).reshape(1, len(buffers))
        return cls(table, length, tuple(buffers))

    def select(self, columns: Iterable[int]) -> "Blocks":
        """Return the blocks of these columns, in this order, in every stripe."""
        return Blocks(self.table[:, list(columns)], self.length, self.owners)

    def first(self, stripes: int) -> "Blocks":
        """Return the blocks of the first `stripes` stripes."""
        return Blocks(self.table[:stripes], self.length, self.owners)

    def views(self) -> Iterator[list[npt.NDArray[np.uint8]]]:
        """Yield the blocks of each stripe as 1-d uint8 arrays over the very memory (slow; for the oracle and tests)."""
        for addresses in self.table.tolist():
            yield [
                np.frombuffer(memoryview((ctypes.c_uint8 * self.length).from_address(address)), np.uint8)
                if self.length
                else np.empty(0, np.uint8)
                for address in addresses
            ]


def _table(base: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Addresses of the blocks of an array of shape (count, length) or (stripes, count, length)."""
    count, stride = shape[-2], strides[-2]
    if len(shape) == 2 and stride > 0:  # the common case, in a quarter of the time of the general one
        return np.arange(base, base + count * stride, stride, dtype=np.uint64)[None]
    table = np.arange(count, dtype=np.int64)[None] * stride + base
    if len(shape) == 3:
        table = table + np.arange(shape[0], dtype=np.int64)[:, None] * strides[0]
    return table.astype(np.uint64)


class Operator(Protocol):
    """A prepared product. Safe to call from many threads at once on disjoint outputs."""

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Overwrite `outputs` with matrix · `inputs`.

        Parameters
        ----------
        inputs : Blocks
            c blocks in each stripe. Never written.
        outputs : Blocks
            r blocks in each of as many stripes and of the same length, a multiple of the layout's `strip_bytes`.
            Owned by the caller, overwritten whole; must not overlap the inputs.
        """
        ...


@runtime_checkable
class AddingOperator(Operator, Protocol):
    """An operator that can also add to its outputs, as patching parities needs it."""

    def add(self, inputs: Blocks, outputs: Blocks) -> bool:
        """Add matrix · `inputs` to `outputs`; False, and nothing is done, if this product cannot be added.

        Parameters
        ----------
        inputs, outputs : Blocks
            As in a call, except that the outputs hold what is added to.
        """
        ...


@runtime_checkable
class AddressOperator(Operator, Protocol):
    """An operator that also takes one stripe by bare addresses, which spares small ones the making of `Blocks`."""

    def run(
        self, inputs: int, inputs_step: int, outputs: int, outputs_step: int, length: int, add: bool = False
    ) -> bool:  # fmt: skip
        """Do what a call does, or `add`; False, and nothing is done, where `Blocks` are wanted after all.

        The caller answers for the addresses: as many blocks as the matrix has columns and rows, in memory that is
        there, outputs apart from inputs and from each other.

        Parameters
        ----------
        inputs, outputs : int
            Address of the first block, or of a table of the addresses of all.
        inputs_step, outputs_step : int
            Bytes from one block to the next; 0 for a table.
        length : int
            Bytes of a block; a positive multiple of the layout's `strip_bytes`.
        add : bool
            Whether to add to the outputs.
        """
        ...


@runtime_checkable
class CompilingOperator(Operator, Protocol):
    """An operator that can be made faster by compiling its one matrix."""

    def compile(self) -> bool:
        """Compile a kernel for this matrix and use it from now on; False, and nothing is done, where none is faster.

        Takes some hundredths of a second or more, unless this machine has done it before. Others may call the operator
        meanwhile.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """One way to run products."""

    @property
    def name(self) -> str:
        """The name by which a user asks for the engine."""
        ...

    def refuses(self, product: Product) -> str | None:
        """Why this engine cannot run `product`, in one line; None if it can."""
        ...

    def prepare(self, product: Product) -> Operator:
        """Bind a product. Cheap enough to be called once per loss pattern.

        Raises
        ------
        EngineUnavailableError
            If `refuses` gives a reason.
        """
        ...
