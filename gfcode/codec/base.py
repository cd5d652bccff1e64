"""What every codec does with whole blocks, whatever its code: encode, decode, reconstruct."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from operator import index as as_index
from typing import Any, TypeVar, overload

import numpy as np

from gfcode.codec import device, lean
from gfcode.codec.arguments import (
    BlockLike,
    BlocksLike,
    Bytes,
    blocks_of,
    check_indices,
    check_length,
    outputs_of,
    refuse_overlap,
    shape_of,
    shards_of,
)
from gfcode.codec.plan import Plan, Planner
from gfcode.engine.protocol import Blocks, CompilingOperator, Operator
from gfcode.errors import BlockError, ParameterError
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["BlockCodec"]

_Out = TypeVar("_Out")


class BlockCodec(ABC):
    """A systematic code of k data and m parity shards, and what can be done with its blocks.

    Attributes
    ----------
    k, m, n : int
    layout : Layout
    block_multiple : int
        Bytes that the length of every block is a multiple of.
    parity : Matrix
    """

    k: int
    m: int
    n: int
    layout: Layout
    block_multiple: int
    parity: Matrix
    _encoder: Operator | None
    _planner: Planner | None
    #: What `encode` runs on small stripes, once it has been called.
    _run: lean.Run | None

    # For callers that own buffers and batches

    @abstractmethod
    def encoder(self) -> Operator:
        """Return the operator that makes the m parity blocks from the k data blocks of each stripe."""

    @abstractmethod
    def _plans(self) -> Planner:
        """Return the planner, made at first use. No lock: threads that race make two, of which one stays."""

    def plan(self, available: Iterable[int], want: Iterable[int]) -> Plan:
        """Return how to make the wanted shards from some of the available ones.

        Data shards are preferred, then the parity shards that cost least. Plans are kept, those used last.

        Raises
        ------
        ParameterError
            For an index that is no shard of the code, or is given twice.
        UnrecoverableError
            If shards must be computed and what is available does not determine them: fewer than k, in an MDS code.
        EngineUnavailableError
            If the engine cannot run the product.
        """
        return self._plans().plan(available, want)

    def basis(self, given: Iterable[int]) -> tuple[int, ...]:
        """Return the shards, of those given, that determine all others given: the first k of them in an MDS code."""
        return self._plans().basis(tuple(sorted(check_indices(given, self.n))))

    def prepare(self, lost: Iterable[int] = ()) -> bool:
        """Compile kernels for one loss, or for encoding: worth it where many calls follow.

        Any call runs without, on kernels that take the matrix as data. One compiled for the very matrix takes up to a
        third less time for blocks that come from the CPU's caches. Compiling takes 20 to 200 ms, once on a machine: it
        is kept on disk. Bytes are the same.

        Parameters
        ----------
        lost : iterable of int
            Shards that will be missing, all others being given: `decode`, and `reconstruct` of just these, are
            prepared. None of them: `encode` is.

        Returns
        -------
        bool
            Whether there is anything to gain: the engine is `simd`, blocks are packets of 64 bytes with w of at most 8,
            the matrix is small, and the rows are neither plain sums nor powers of x, for which there is better.

        Raises
        ------
        ParameterError, UnrecoverableError, EngineUnavailableError
            As `plan`.
        """
        missing = tuple(sorted(check_indices(lost, self.n)))
        if missing:
            left = [shard for shard in range(self.n) if shard not in missing]
            data = tuple(shard for shard in missing if shard < self.k)
            operators = [self.plan(left, want).operator for want in dict.fromkeys((data, missing)) if want]
        else:
            operators = [self.encoder()]
        gained = [isinstance(operator, CompilingOperator) and operator.compile() for operator in operators]
        return any(gained)

    # For callers with blocks

    @overload
    def encode(self, data: BlocksLike) -> Bytes: ...
    @overload
    def encode(self, data: BlocksLike, out: None) -> Bytes: ...
    @overload
    def encode(self, data: BlocksLike, out: _Out) -> _Out: ...
    def encode(self, data: BlocksLike, out: Any = None) -> Any:
        """Make the parity blocks.

        Parameters
        ----------
        data : array of uint8, shape (k, length) or (stripes, k, length), or sequence of k blocks
            A block is a buffer, or an array of shape (length,) or (stripes, length). `length` is in bytes, a multiple
            of `block_multiple`. Arrays in a GPU's memory (CuPy, torch, JAX, ...) are worked on there by the cuda
            engine, on the current CuPy stream: the result is a CuPy array, and nothing waits.
        out : like `data` with m for k, optional
            Where to put the parity blocks; overwritten. Must not overlap the data.

        Returns
        -------
        ndarray of uint8, shape (m, length) or (stripes, m, length)
            Or `out`, if that is given.

        Raises
        ------
        BlockError
        """
        if self._run is not None:
            made = lean.encode(self._run, data, out, self.k, self.m, self.block_multiple)
            if made is not None:
                return made
        if type(data) is not np.ndarray and device.holds_device_arrays(data):
            return device.encode(self, data, out)
        return self._encode(data, out)

    def _encode(self, data: BlocksLike, out: Any) -> Any:
        inputs, stripes = blocks_of(data, self.k, "data")
        check_length(inputs.length, self.block_multiple)
        if out is None:
            out, outputs = Blocks.allocate(*(() if stripes is None else (stripes,)), self.m, inputs.length)
        else:
            outputs, out_stripes = blocks_of(out, self.m, "out", writable=True)
            if (out_stripes, outputs.length) != (stripes, inputs.length) and self.m:
                raise BlockError(
                    f"out has blocks of {outputs.length} bytes (stripes: {out_stripes}), data of {inputs.length} "
                    f"({stripes})"
                )
            refuse_overlap(inputs, outputs)
        encoder = self.encoder()
        encoder(inputs, outputs)
        self._run = lean.run_of(encoder)
        return out

    def encode_into(self, data: BlocksLike, out: BlocksLike) -> None:
        """Make the parity blocks in the caller's memory: `encode` with `out`, for those who want no result.

        Parameters
        ----------
        data, out
            As for `encode`. Two arrays of one stripe, contiguous in memory, cost least.

        Raises
        ------
        BlockError
        """
        if out is None:
            raise BlockError("encode_into needs an out to write to; encode makes one")
        self.encode(data, out)

    @overload
    def decode(self, shards: Mapping[int, BlockLike]) -> Bytes: ...
    @overload
    def decode(self, shards: Mapping[int, BlockLike], out: None) -> Bytes: ...
    @overload
    def decode(self, shards: Mapping[int, BlockLike], out: _Out) -> _Out: ...
    def decode(self, shards: Mapping[int, BlockLike], out: Any = None) -> Any:
        """Give the data back from any k shards.

        Parameters
        ----------
        shards : mapping of shard index to block
            At least k, from 0 .. n − 1. Blocks are buffers, or arrays of shape (length,) or (stripes, length); all of
            one shape. Arrays in a GPU's memory are worked on there, as in `encode`.
        out : array of uint8, shape (k, length) or (stripes, k, length), or sequence of k writable blocks, optional
            Where to put the data; overwritten. A block of it may be the very memory of the data shard given for it,
            which then stays as it is; apart from that it must not overlap the shards.

        Returns
        -------
        ndarray of uint8, shape (k, length) or (stripes, k, length)
            Or `out`, if that is given.

        Raises
        ------
        UnrecoverableError
            For fewer than k shards.
        BlockError, ParameterError
        """
        if type(shards) is dict:
            shards = shards.copy()  # another thread may change the caller's
            plans = self._plans()
            made = lean.make(plans.quick, shards, plans.data, self.block_multiple, copied=lean.COPIED, out=out)
            if made is not None:
                return made
        if device.holds_device_arrays(shards):
            return device.decode(self, shards, out)
        given = shards_of(shards, self.n)
        shape = shape_of(given, self.k, self.block_multiple)
        if out is None:
            return self._plans().make_new(given, range(self.k), shape)
        self._plans().make(given, range(self.k), outputs_of(out, self.k, shape))
        return out

    def reconstruct(
        self, shards: Mapping[int, BlockLike], want: Iterable[int], out: BlocksLike | None = None
    ) -> dict[int, Bytes]:
        """Make the wanted shards, data or parity, from any k others; nothing else is read or computed.

        Parameters
        ----------
        shards : mapping of shard index to block
            As in `decode`.
        want : iterable of int
            Shard indices, each once.
        out : array of uint8, shape (len(want), length) or (stripes, len(want), length), or sequence of blocks, optional
            Where to put them, in the order of `want`; overwritten. What `decode` says of `out` holds.

        Returns
        -------
        dict of int to ndarray of uint8, shape (length,) or (stripes, length)
            In the order of `want`. Without `out`, a wanted shard that was given is returned as it was given, without a
            copy: an array over the caller's memory.

        Raises
        ------
        UnrecoverableError
            If shards must be computed and fewer than k are given.
        BlockError, ParameterError
        """
        try:
            wanted = tuple(want)
        except TypeError:
            raise ParameterError(f"want is {want!r}, not shard indices in a list") from None
        if type(shards) is dict and wanted:
            shards = shards.copy()  # another thread may change the caller's
            quick = lean.make(self._plans().quick, shards, wanted, self.block_multiple, out=out)
            if quick is not None:
                if len(wanted) == 1:
                    return {as_index(wanted[0]): quick[0]}
                return {as_index(shard): quick[row] for row, shard in enumerate(wanted)}
        if device.holds_device_arrays(shards):
            return device.reconstruct(self, shards, wanted, out)
        given = shards_of(shards, self.n)
        wanted = check_indices(wanted, self.n)
        shape = shape_of(given, self.k, self.block_multiple)
        if out is not None:
            rows = outputs_of(out, len(wanted), shape)
            self._plans().make(given, wanted, rows)
            return dict(zip(wanted, rows, strict=True))
        absent = [shard for shard in wanted if shard not in given]
        made = self._plans().make_new(given, absent, shape)
        new = {shard: made[..., i, :] for i, shard in enumerate(absent)}
        return {shard: new[shard] if shard in new else given[shard] for shard in wanted}
