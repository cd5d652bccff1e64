"""Codecs of presets: also those that only a bit matrix gives, and those that are not MDS."""

import warnings
from collections.abc import Mapping
from itertools import combinations
from operator import index as as_index

from gfcode.codec.group_plan import GroupPlanner, prepare
from gfcode.codec.plan import Planner
from gfcode.codec.presets import Recipe, find_preset
from gfcode.codec.reed_solomon import Codec
from gfcode.engine.protocol import Engine, Operator, Product
from gfcode.engine.registry import AutomaticEngine, get_engine
from gfcode.errors import NotMDSError, ParameterError
from gfcode.matrix import gf2
from gfcode.matrix.certificate import Certificate, certify
from gfcode.params import Layout

__all__ = ["PresetCodec", "UncertifiedWarning"]


class UncertifiedWarning(UserWarning):
    """Data is encoded with a code that some loss of m shards defeats, or that is not known to survive all."""


class PresetCodec(Codec):
    """The codec of a preset; `Codec.preset` makes it.

    Attributes beyond those of `Codec`, or with another meaning:

    Attributes
    ----------
    family : str
        The preset's name.
    options : dict
        The preset's options, defaults included.
    parity : Matrix
        Shape (m, k); for bit-matrix codes (m · w, k · w) over GF(2), and `field` is GF(2).
    certificate : Certificate
        With method "none" where the code is used uncertified.
    """

    def __init__(
        self,
        name: str,
        k: int,
        m: int,
        *,
        allow_uncertified: bool = False,
        engine: str | Engine | None = None,
        options: Mapping[str, int],
    ) -> None:
        preset = find_preset(name)
        k, m = _integer("k", k), _integer("m", m)
        options = {option: _integer(option, value) for option, value in options.items()}
        recipe = preset.recipe(k, m, **options)
        self.k, self.m, self.n = k, m, k + m
        self.family = preset.name
        self.options = {**preset.options, **options}
        self.layout = recipe.layout
        self.w = recipe.layout.w
        self.block_multiple = recipe.layout.strip_bytes
        self.parity = recipe.parity
        self.field = recipe.parity.field
        self.certificate = _certificate(preset.name, recipe, allow_uncertified=allow_uncertified)
        self._plain = not recipe.is_bit_matrix and self.certificate.method != "none"
        self._demand, self.threads = engine, 1
        self._engine = get_engine(engine) if engine is None or isinstance(engine, str) else engine
        self._encoder: Operator | None = None
        self._run = None
        self._planner: Planner | None = None

    def __repr__(self) -> str:
        options = "".join(f", {name}={value}" for name, value in self.options.items())
        uncertified = ", allow_uncertified=True" if self.certificate.method == "none" else ""
        return (
            f"Codec.preset({self.family!r}, k={self.k}, m={self.m}{options}{uncertified}, engine={self._engine.name!r})"
        )

    @property
    def engine(self) -> Engine:
        """The engine that encodes; the one demanded, or chosen for the parity matrix."""
        if isinstance(self._engine, AutomaticEngine):
            bits = self.field.w != self.w
            layout = Layout("packets", 1, self.layout.packet_bytes) if bits else self.layout
            return self._engine.choose(Product(self.parity, layout))
        return self._engine

    def encoder(self) -> Operator:
        """Return the operator that makes the m parity blocks from the k data blocks of each stripe.

        The first call warns if the code is not certified.
        """
        if self._encoder is None:
            if self.certificate.method == "none":
                warnings.warn(f"{self.certificate.detail}", UncertifiedWarning, stacklevel=2)
            self._encoder = prepare(self._engine, self.parity, self.layout)
        return self._encoder

    def _plans(self) -> Planner:
        if self._planner is None and not self._plain:
            self._planner = GroupPlanner(self.k, self.m, self.parity, self.layout, self._engine)
        return super()._plans()


def _integer(name: str, value: int) -> int:
    try:
        return as_index(value)
    except TypeError:
        raise ParameterError(f"{name} must be an integer, not {value!r}") from None


def _certificate(name: str, recipe: Recipe, *, allow_uncertified: bool) -> Certificate:
    """Certify the code of a recipe, or say what speaks against it."""
    try:
        return _certify_bits(recipe) if recipe.is_bit_matrix else certify(recipe.parity)
    except NotMDSError as error:
        reason = f"preset '{name}' with k = {recipe.k}, m = {recipe.m}: {error}"
        if not allow_uncertified:
            raise NotMDSError(
                f"{reason}; allow_uncertified (--allow-uncertified) uses the code all the same", error.lost
            ) from error
        return Certificate("none", reason)


def _certify_bits(recipe: Recipe) -> Certificate:
    """Check every loss of m shards of a bit-matrix code: the lost data's squares of the parities left."""
    k, m, w = recipe.k, recipe.m, recipe.layout.w
    bits = recipe.parity.values
    checked = 0
    for lost in combinations(range(k + m), m):
        data = [shard for shard in lost if shard < k]
        rows = [shard - k for shard in range(k, k + m) if shard not in lost]
        columns = [shard * w + b for shard in data for b in range(w)]
        square = bits[[row * w + b for row in rows for b in range(w)]][:, columns]
        if gf2.rank(square) < len(data) * w:
            names = ",".join(map(str, lost))
            raise NotMDSError(f"the bit matrix is not MDS: the loss of shards {{{names}}} cannot be decoded", lost)
        checked += 1
    return Certificate("exhaustive", f"the squares that undo each of {checked} losses of {m} shards are non-singular")
