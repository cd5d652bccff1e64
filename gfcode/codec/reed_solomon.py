"""The codec of MDS codes: Reed–Solomon in all its families, and explicit parity matrices that are certified."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gfcode.codec.arguments import integer_of
from gfcode.codec.plan import Planner, do_nothing
from gfcode.codec.verbs import StorageCodec
from gfcode.engine.protocol import Engine, Operator, Product
from gfcode.engine.registry import AutomaticEngine, get_engine
from gfcode.engine.threads import ThreadedEngine, threaded
from gfcode.errors import MixedFieldsError, ParameterError
from gfcode.gf import GF
from gfcode.matrix.certificate import Certificate, certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import family_field, parity_matrix, resolve_auto
from gfcode.params import PACKET_BYTES, Layout, LayoutName, check_matrix_size, check_shard_counts

if TYPE_CHECKING:
    from gfcode.codec.lean import Run
    from gfcode.codec.preset_codec import PresetCodec

__all__ = ["Codec"]


class Codec(StorageCodec):
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
        Family of the parity matrix ("vandermonde", "powers", "cauchy", "cauchy-good", "fft", "searched"), "auto" for
        the fastest that is certified, or the matrix itself (with m = 0, `[]`).
    layout : {"packets", "words"}
        How blocks hold symbols; see `gfcode.params.Layout`.
    polynomial : int, optional
        Of the field, with its x^w bit; by default the usual one, and with "searched" that of the matrix.
    packet_bytes : int
        Bytes of a packet in layout `packets`; a multiple of 8.
    engine : str or Engine, optional
        An engine's name is a demand. By default the environment variable GFCODE_ENGINE, and else, for each product,
        the first engine that can run it.
    threads : int
        Threads that a large call is split over, the calling one among them: large is from about 8 MiB of inputs and
        outputs a thread. They belong to a pool of the process. With the default, calls stay in their thread.

    Attributes
    ----------
    k, m, n, w, threads : int
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
        threads: int = 1,
    ) -> None:
        self.k, self.m, self.w = integer_of("k", k), integer_of("m", m), integer_of("w", w)
        self.n = self.k + self.m
        if polynomial is None and isinstance(matrix, str):
            self.field = family_field(matrix, self.k, self.m, self.w)
        else:
            self.field = GF(self.w, polynomial)
        check_shard_counts(self.k, self.m, self.w)
        if not (isinstance(matrix, str) and matrix == "fft"):  # whose matrix need not be written out
            check_matrix_size(self.k, self.m)
        self.layout = Layout(layout, self.w, packet_bytes)
        self.block_multiple = self.layout.strip_bytes
        if isinstance(matrix, str):
            self.family = resolve_auto(self.field, self.k, self.m) if matrix == "auto" else matrix
            self.parity = parity_matrix(self.family, self.field, self.k, self.m)
        else:
            self.family = "explicit"
            self.parity = self._explicit(matrix)
        self.certificate: Certificate = certify(self.parity)
        self._demand, self.threads = engine, integer_of("threads", threads)
        self._engine = threaded(_engine_of(engine), self.threads)
        self._encoder: Operator | None = None
        self._run: Run | None = None
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
                values = np.asarray(matrix)
                if not self.m and not values.size:  # a list of no rows does not say how long they are
                    values = np.empty((0, self.k), self.field.dtype)
                matrix = Matrix(self.field, values)
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
            f"polynomial={self.field.polynomial:#x}, engine={self._engine.name!r}"
            + (f", threads={self.threads})" if self.threads > 1 else ")")
        )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_engine"], state["_encoder"], state["_run"], state["_planner"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._engine = threaded(_engine_of(self._demand), self.threads)
        self._encoder = self._run = self._planner = None

    @property
    def engine(self) -> Engine:
        """The engine that encodes; the one demanded, or chosen for the parity matrix."""
        if isinstance(self._engine, AutomaticEngine | ThreadedEngine):
            matrix = self.parity if self.m else Matrix.identity(self.field, self.k)
            return self._engine.choose(Product(matrix, self.layout))
        return self._engine

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

    def _plans(self) -> Planner:
        # No lock: threads that race make two planners, of which one stays.
        if self._planner is None:
            self._planner = Planner(self.parity, self.layout, self._engine)
        return self._planner


def _engine_of(demand: object) -> Engine:
    """Return the engine that a caller asked for by name, or gave."""
    if demand is None or isinstance(demand, str):
        return get_engine(demand)
    if not isinstance(demand, Engine):
        raise ParameterError(f"engine is {demand!r}, neither an engine nor the name of one")
    return demand
