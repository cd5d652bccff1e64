"""The codec of MDS codes: Reed–Solomon in all its families, and explicit parity matrices that are certified."""

from collections.abc import Iterable, Mapping
from operator import index as as_index
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from gfcode.codec import device
from gfcode.codec.arguments import (
    BlockLike,
    BlocksLike,
    Bytes,
    arrays_of,
    blocks_of,
    check_indices,
    join,
    outputs_of,
    refuse_overlap,
    rows_of,
    shards_of,
)
from gfcode.codec.plan import Plan, Planner, do_nothing
from gfcode.codec.spans import VerifyReport, patch, verify
from gfcode.engine.protocol import Blocks, Engine, Operator, Product
from gfcode.engine.registry import AutomaticEngine, get_engine
from gfcode.errors import BlockError, MixedFieldsError, ParameterError, UnrecoverableError
from gfcode.gf import GF
from gfcode.matrix.certificate import Certificate, certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix, resolve_auto
from gfcode.params import PACKET_BYTES, Layout, LayoutName, check_shard_counts

if TYPE_CHECKING:
    from gfcode.codec.preset_codec import PresetCodec

__all__ = ["Codec"]

_Out = TypeVar("_Out")


class Codec:
    """A systematic MDS code: k data shards, m parity shards, and any k of the n = k + m give everything back.

    Safe to use from many threads at once, after a fork, and by pickling. Blocks that a method returns and did not get
    as `out` are new memory, each block 64-byte aligned; inputs are never written and never copied.

    Parameters
    ----------
    k, m : int
        Data and parity shards, k ≥ 1 and m ≥ 0. With m = 0 nothing can be lost; with k = 1 parities are multiples of
        the data.
    w : int
        Bits of a symbol: 1 to 16, or 32. A code has at most 2^w + 1 shards.
    matrix : str, array_like of shape (m, k), or Matrix
        Family of the parity matrix ("vandermonde", "powers", "cauchy", "cauchy-good"), "auto" for the fastest that is
        certified, or the matrix itself.
    layout : {"packets", "words"}
        How blocks hold symbols; see `gfcode.params.Layout`.
    polynomial : int, optional
        Of the field, with its x^w bit; by default the usual one.
    packet_bytes : int
        Bytes of a packet in layout `packets`; a multiple of 8.
    engine : str or Engine, optional
        An engine's name is a demand. By default the environment variable GFCODE_ENGINE, and else, for each product,
        the first engine that can run it.

    Attributes
    ----------
    k, m, n, w : int
    field : Field
    layout : Layout
    family : str
        The family that the parity matrix comes from, never "auto"; "explicit" for a given matrix.
    parity : Matrix, shape (m, k)
    certificate : Certificate
        Why any k shards suffice.
    block_multiple : int
        Bytes that the length of every block is a multiple of.

    Raises
    ------
    ParameterError
        For parameters that no code has.
    NotMDSError
        If some loss of m shards defeats the matrix (named in the message), or its safety could not be shown.
    EngineUnavailableError
        If a demanded engine is not usable here.

    Examples
    --------
    >>> import numpy as np
    >>> codec = Codec(4, 2)
    >>> data = np.arange(4 * 512, dtype=np.uint8).reshape(4, 512)
    >>> parity = codec.encode(data)
    >>> shards = {0: data[0], 2: data[2], 4: parity[0], 5: parity[1]}
    >>> bool((codec.decode(shards) == data).all())
    True
    """

    def __init__(
        self,
        k: int,
        m: int,
        w: int = 8,
        matrix: str | Matrix | npt.ArrayLike = "auto",
        layout: LayoutName = "packets",
        *,
        polynomial: int | None = None,
        packet_bytes: int = PACKET_BYTES,
        engine: str | Engine | None = None,
    ) -> None:
        self.k, self.m, self.w = _integer("k", k), _integer("m", m), _integer("w", w)
        self.n = self.k + self.m
        self.field = GF(self.w, polynomial)
        check_shard_counts(self.k, self.m, self.w)
        self.layout = Layout(layout, self.w, packet_bytes)
        self.block_multiple = self.layout.strip_bytes
        if isinstance(matrix, str):
            self.family = resolve_auto(self.field, self.k, self.m) if matrix == "auto" else matrix
            self.parity = parity_matrix(self.family, self.field, self.k, self.m)
        else:
            self.family = "explicit"
            self.parity = self._explicit(matrix)
        self.certificate: Certificate = certify(self.parity)
        self._demand = engine
        self._engine = get_engine(engine) if engine is None or isinstance(engine, str) else engine
        self._encoder: Operator | None = None
        self._planner: Planner | None = None

    @staticmethod
    def preset(
        name: str,
        k: int,
        m: int,
        *,
        allow_uncertified: bool = False,
        engine: str | Engine | None = None,
        **options: int,
    ) -> "PresetCodec":
        """Return the codec whose parity is that of another implementation, byte for byte.

        Parameters
        ----------
        name : str
            A key of `gfcode.codec.presets.PRESETS`.
        k, m : int
        allow_uncertified : bool
            Use a code that some loss of m shards defeats, or that could not be proven safe; `encode` then warns once.
        engine : str or Engine, optional
            As for `Codec`.
        **options : int
            Of the preset: w, packet_bytes.

        Raises
        ------
        ParameterError
            For an unknown preset or option, and a k and m that the other implementation refuses.
        NotMDSError
            For an uncertified code that is not allowed.
        """
        from gfcode.codec.preset_codec import PresetCodec  # noqa: PLC0415 - it derives from this class

        return PresetCodec(name, k, m, allow_uncertified=allow_uncertified, engine=engine, options=options)

    def _explicit(self, matrix: Matrix | npt.ArrayLike) -> Matrix:
        if isinstance(matrix, Matrix):
            if matrix.field != self.field:
                raise MixedFieldsError(f"the matrix is over {matrix.field}, the code over {self.field}")
        else:
            try:
                matrix = Matrix(self.field, np.asarray(matrix))
            except ValueError as error:
                raise ParameterError(f"the parity matrix cannot be used: {error}") from error
        if matrix.shape != (self.m, self.k):
            raise ParameterError(f"the parity matrix has shape {matrix.shape}, not (m, k) = ({self.m}, {self.k})")
        return matrix

    def __repr__(self) -> str:
        layout = repr(self.layout.name)
        if self.layout.name == "packets" and self.layout.packet_bytes != PACKET_BYTES:
            layout += f", packet_bytes={self.layout.packet_bytes}"
        return (
            f"Codec(k={self.k}, m={self.m}, w={self.w}, matrix={self.family!r}, layout={layout}, "
            f"polynomial={self.field.polynomial:#x}, engine={self._engine.name!r})"
        )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_engine"], state["_encoder"], state["_planner"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        engine = self._demand
        self._engine = get_engine(engine) if engine is None or isinstance(engine, str) else engine
        self._encoder = self._planner = None

    @property
    def engine(self) -> Engine:
        """The engine that encodes; the one demanded, or chosen for the parity matrix."""
        if isinstance(self._engine, AutomaticEngine):
            matrix = self.parity if self.m else Matrix.identity(self.field, self.k)
            return self._engine.choose(Product(matrix, self.layout))
        return self._engine

    # For callers that own buffers and batches

    def encoder(self) -> Operator:
        """Return the operator that makes the m parity blocks from the k data blocks of each stripe.

        With m = 0 it does nothing, and no engine is asked.

        Raises
        ------
        EngineUnavailableError
            If the engine cannot run the code.
        """
        if self._encoder is None:
            self._encoder = self._engine.prepare(Product(self.parity, self.layout)) if self.m else do_nothing
        return self._encoder

    def plan(self, available: Iterable[int], want: Iterable[int]) -> Plan:
        """Return how to make the wanted shards from some of the available ones.

        Data shards are preferred, then the parity shards that cost least. Plans are kept, those used last.

        Raises
        ------
        ParameterError
            For an index that is no shard of the code, or is given twice.
        UnrecoverableError
            If shards must be computed and fewer than k are available.
        EngineUnavailableError
            If the engine cannot run the product.
        """
        return self._plans().plan(available, want)

    def _plans(self) -> Planner:
        # No lock: threads that race make two planners, of which one stays.
        if self._planner is None:
            self._planner = Planner(self.parity, self.layout, self._engine)
        return self._planner

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
            of `block_multiple`. An array in a GPU's memory (CuPy, torch, JAX, ...) is worked on there by the cuda
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
        if not isinstance(data, np.ndarray) and device.is_device_array(data):
            return device.multiply(Product(self.parity, self.layout), data, out)
        inputs, stripes = blocks_of(data, self.k, "data")
        self._check_length(inputs.length)
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
        self.encoder()(inputs, outputs)
        return out

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
            one shape.
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
        given = shards_of(shards, self.n)
        shape = self._shape(given)
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
            As in `decode`. Arrays in a GPU's memory are worked on there, as in `encode`.
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
        if device.holds_device_arrays(shards):
            return device.reconstruct(self.plan, self.layout, shards, check_indices(want, self.n), out)
        given = shards_of(shards, self.n)
        wanted = check_indices(want, self.n)
        shape = self._shape(given)
        if out is not None:
            rows = outputs_of(out, len(wanted), shape)
            self._plans().make(given, wanted, rows)
            return dict(zip(wanted, rows, strict=True))
        absent = [shard for shard in wanted if shard not in given]
        made = self._plans().make_new(given, absent, shape)
        new = {shard: made[..., i, :] for i, shard in enumerate(absent)}
        return {shard: new[shard] if shard in new else given[shard] for shard in wanted}

    def verify(self, shards: Mapping[int, BlockLike]) -> VerifyReport:
        """Tell whether shards belong together, by computing some of them from k others.

        Parameters
        ----------
        shards : mapping of shard index to block
            As in `decode`, but more than k, so that there is something to compare; or all n.

        Returns
        -------
        VerifyReport

        Raises
        ------
        BlockError
            For k shards or fewer.
        """
        given = shards_of(shards, self.n)
        if len(given) <= self.k and len(given) < self.n:
            raise BlockError(f"more than k = {self.k} shards are needed to compare any, and {len(given)} are given")
        self._shape(given)
        basis = tuple(sorted(given))[: self.k]
        spare = tuple(sorted(given))[self.k :]
        return verify(given, basis, self._plans().find(basis, spare), self.block_multiple)

    def update(
        self,
        parity: BlocksLike | Mapping[int, BlockLike],
        index: int,
        old: BlockLike,
        new: BlockLike,
    ) -> None:
        """Patch parity blocks in place for one data block that changed, without reading any other data.

        Parameters
        ----------
        parity : array of uint8, shape (m, length) or (stripes, m, length), sequence of m blocks, or mapping
            Writable. A mapping of shard index (k .. n − 1) to block patches only those.
        index : int
            The data shard that changes, 0 .. k − 1.
        old, new : block of shape (length,) or (stripes, length)
            Its bytes before and after.

        Raises
        ------
        BlockError, ParameterError
        """
        (data,) = check_indices([index], self.k)
        if not isinstance(parity, Mapping):
            parity = dict(enumerate(rows_of(parity, self.m, "parity"), self.k))
        targets = shards_of(parity, self.n, self.k, writable=True)
        names = ["the old block", "the new block", *(f"shard {shard}" for shard in targets)]
        before, after, *_ = arrays_of([old, new, *targets.values()], names.__getitem__)
        self._shape({data: before})
        if targets:
            refuse_overlap(join([before, after]), join(list(targets.values())))
            operator = self._plans().patch(tuple(shard - self.k for shard in targets), data)
            patch(list(targets.values()), operator, before, after, self.block_multiple)

    def _shape(self, given: Mapping[int, Bytes]) -> tuple[int, ...]:
        """Return the shape of all blocks given, once their length is known to be whole strips."""
        for block in given.values():
            self._check_length(block.shape[-1])
            return block.shape
        raise UnrecoverableError(f"no shards are given; any k = {self.k} are needed")

    def _check_length(self, length: int) -> None:
        if length % self.block_multiple:
            padded = -(-length // self.block_multiple) * self.block_multiple
            raise BlockError(
                f"blocks have {length} bytes, which is no multiple of {self.block_multiple}; pad them with zeros to "
                f"{padded} bytes"
            )


def _integer(name: str, value: int) -> int:
    try:
        return as_index(value)
    except TypeError:
        raise ParameterError(f"{name} must be an integer, not {value!r}") from None
