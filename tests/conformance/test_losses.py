"""Every loss of up to m shards decodes, for every family, layout and engine; what no code survives is refused."""

from functools import lru_cache
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt
import pytest

from gfcode.codec import Codec
from gfcode.engine.protocol import Product
from gfcode.errors import NotMDSError, ParameterError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import LayoutName
from tests.conformance.engines import USABLE, Bytes, expected

# "auto" is one of these for every code here: see `test_auto_is_a_family_that_is_tested`.
FAMILIES = ("powers", "vandermonde", "cauchy", "cauchy-good", "explicit")
SMALL_CODES = ((4, 2), (6, 3), (5, 5), (3, 3))
LAYOUTS: tuple[LayoutName, ...] = ("packets", "words")

#: Losses that defeat many matrices in use, and whether `powers` is one of them.
NAMED = (
    (10, 5, (0, 3, 5, 12, 13), True),
    (6, 5, (0, 3, 5, 8, 9), True),
    (5, 6, (0, 3, 4, 6, 8, 9), True),
    (22, 4, (0, 10, 21, 24), True),
    (10, 10, (5, 8, 9, 11, 13, 14, 16, 17, 18, 19), True),
    (9, 9, (0, 1, 2, 5, 7, 9, 10, 14, 16), True),
)


def explicit_matrix(k: int, m: int) -> npt.NDArray[np.int64]:
    """Make a parity matrix of no family: Cauchy on scattered points, rows and columns scaled at random."""
    rng = np.random.default_rng(k * 100 + m)
    field = GF(8)
    points = rng.permutation(256)[: k + m].astype(np.uint8)
    values = field.inv(points[:m, None] ^ points[m:])
    values = field.mul(values, rng.integers(1, 256, (m, 1)))
    return field.mul(values, rng.integers(1, 256, (1, k))).astype(np.int64)


@lru_cache
def codec_for(k: int, m: int, family: str, layout: LayoutName, engine: str) -> Codec:
    return Codec(k, m, matrix=explicit_matrix(k, m) if family == "explicit" else family, layout=layout, engine=engine)


@lru_cache
def shards_for(k: int, m: int, family: str, layout: LayoutName) -> Bytes:
    """Return all n blocks of one or more strips, made by the oracle: the data that the engines share."""
    codec = codec_for(k, m, family, layout, "numpy")
    rng = np.random.default_rng(k * 1000 + m)
    data = rng.integers(0, 256, (k, 512 if layout == "packets" else 80), dtype=np.uint8)
    shards = np.vstack([data, codec.encode(data)])
    shards.flags.writeable = False
    return shards


def losses(k: int, m: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(k + m), count) for count in range(m + 1)))


@pytest.mark.parametrize(("k", "m"), [(10, 4), *SMALL_CODES])
def test_auto_is_a_family_that_is_tested(k: int, m: int) -> None:
    codec = Codec(k, m)
    assert codec.family in FAMILIES
    assert codec.parity == codec_for(k, m, codec.family, "packets", "numpy").parity


def test_there_are_as_many_losses_as_claimed() -> None:
    assert len(losses(10, 4)) == 1471


@pytest.mark.parametrize("engine", USABLE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_loss_of_ten_plus_four(family: str, layout: LayoutName, engine: str) -> None:
    codec, shards = codec_for(10, 4, family, layout, engine), shards_for(10, 4, family, layout)
    data = shards[:10]
    for lost in losses(10, 4):
        given = {i: shards[i] for i in range(14) if i not in lost}
        assert (codec.decode(given) == data).all(), lost


@pytest.mark.parametrize("engine", USABLE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("k", "m"), SMALL_CODES)
def test_every_loss_of_small_codes(k: int, m: int, family: str, layout: LayoutName, engine: str) -> None:
    codec, shards = codec_for(k, m, family, layout, engine), shards_for(k, m, family, layout)
    for lost in losses(k, m):
        given = {i: shards[i] for i in range(k + m) if i not in lost}
        rebuilt = codec.reconstruct(given, lost)
        assert list(rebuilt) == list(lost)
        assert all((rebuilt[i] == shards[i]).all() for i in lost), lost


@pytest.mark.parametrize("engine", USABLE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_loss_of_single_parity_and_of_replication(k: int, layout: LayoutName, engine: str) -> None:
    for m in (1, 2) if k > 1 else (1, 2, 5):
        codec, shards = codec_for(k, m, "auto", layout, engine), shards_for(k, m, "auto", layout)
        for lost in losses(k, m):
            given = {i: shards[i] for i in range(k + m) if i not in lost}
            rebuilt = codec.reconstruct(given, lost)
            assert all((rebuilt[i] == shards[i]).all() for i in lost), (m, lost)


@pytest.mark.parametrize("engine", USABLE)
@pytest.mark.parametrize(("k", "m", "lost", "defeats_powers"), NAMED)
def test_named_losses_decode(k: int, m: int, lost: tuple[int, ...], defeats_powers: bool, engine: str) -> None:
    assert len(lost) == m
    for layout in LAYOUTS:
        codec, shards = codec_for(k, m, "auto", layout, engine), shards_for(k, m, "auto", layout)
        given = {i: shards[i] for i in range(k + m) if i not in lost}
        assert (codec.decode(given) == shards[:k]).all()
        rebuilt = codec.reconstruct(given, lost)
        assert all((rebuilt[i] == shards[i]).all() for i in lost)


@pytest.mark.parametrize(("k", "m", "lost", "defeats_powers"), NAMED)
def test_matrices_that_named_losses_defeat_are_refused(
    k: int, m: int, lost: tuple[int, ...], defeats_powers: bool
) -> None:
    field = GF(8)
    exponents = np.arange(m)[:, None] * np.arange(k)
    generator = np.vstack([np.eye(k, dtype=np.int64), field.pow(np.full((m, k), 2), exponents)])
    kept = [i for i in range(k + m) if i not in lost]
    assert (Matrix(field, generator[kept]).rank() < k) is defeats_powers
    with pytest.raises(NotMDSError, match="cannot be decoded") as refusal:
        Codec(k, m, matrix="powers")
    named = refusal.value.lost
    assert str(named[0]) in str(refusal.value)
    assert len(named) <= m
    kept = [i for i in range(k + m) if i not in named]
    assert Matrix(field, generator[kept]).rank() < k


def test_too_many_shards_for_the_field_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"375 shards are too many for GF\(2\^8\), which has room for 257"):
        Codec(250, 125, w=8)


@pytest.mark.parametrize("engine", [name for name in USABLE if name != "numpy"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_wide_code_over_a_wide_field(layout: LayoutName, engine: str) -> None:
    codec = Codec(250, 125, w=16, layout=layout, engine=engine)
    if reason := codec.engine.refuses(Product(codec.parity, codec.layout)):
        pytest.skip(f"engine {engine!r} refuses this code: {reason}")
    rng = np.random.default_rng(6)
    data = rng.integers(0, 256, (250, codec.block_multiple * 2), dtype=np.uint8)
    parity = codec.encode(data)
    shards = dict(enumerate([*data, *parity]))
    kept = rng.permutation(375)[:250].tolist()
    assert (codec.decode({i: shards[i] for i in kept}) == data).all()
    reference = Codec(250, 125, w=16, layout=layout, engine="numpy")
    few = [data[:, : codec.block_multiple], parity[:3, : codec.block_multiple]]
    product = Product(reference.parity.rows(range(3)), reference.layout)
    assert (expected(product, few[0][None])[0] == few[1]).all()
