"""Codecs of presets: what is refused, bit-matrix codes, codes that are not MDS, and the codec's other operations."""

import copy
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfcode import Codec
from gfcode.codec.bitcodes import blaum_roth, liber8tion, liberation, raid6_bits
from gfcode.codec.preset_codec import PresetCodec, UncertifiedWarning
from gfcode.codec.presets import PRESETS, find_preset
from gfcode.errors import BlockError, NotMDSError, ParameterError, UnrecoverableError
from gfcode.matrix import gf2
from tests.peers.base import Bytes, filled

BIT_CODES: list[tuple[str, int, dict[str, Any]]] = [
    ("jerasure-liberation", 5, {"w": 7, "packet_bytes": 8}),
    ("jerasure-blaum-roth", 4, {"w": 6, "packet_bytes": 16}),
    ("jerasure-liber8tion", 6, {"packet_bytes": 8}),
]


def shards_of(codec: Codec, data: Bytes) -> dict[int, Bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertifiedWarning)
        return dict(enumerate(np.concatenate([data, codec.encode(data)])))


def without(shards: dict[int, Bytes], lost: tuple[int, ...]) -> dict[int, Bytes]:
    return {index: shard for index, shard in shards.items() if index not in lost}


def test_unknown_names_and_options() -> None:
    with pytest.raises(ParameterError, match=r"no preset 'isal'.*isa-l-rs.*zfec"):
        Codec.preset("isal", 4, 2)
    with pytest.raises(ParameterError, match=r"'isa-l-rs' has no option 'w' \(it has: none\)"):
        Codec.preset("isa-l-rs", 4, 2, w=16)
    with pytest.raises(ParameterError, match="has: w, packet_bytes"):
        Codec.preset("jerasure-cauchy-good", 4, 2, packetsize=8)


@pytest.mark.parametrize(("arguments", "named"), [((4.0, 2), "k"), ((4, "2"), "m"), ((4, None), "m")])
def test_numbers_are_integers(arguments: tuple[Any, Any], named: str) -> None:
    assert Codec.preset("zfec", *np.array([4, 2])).n == 6
    with pytest.raises(ParameterError, match=f"{named} must be an integer, not"):
        Codec.preset("zfec", *arguments)


@pytest.mark.parametrize("w", ["8", 8.0, None])
def test_options_are_integers(w: Any) -> None:
    with pytest.raises(ParameterError, match="w must be an integer, not"):
        Codec.preset("jerasure-reed-sol-van", 4, 2, w=w)


def test_underscores_are_hyphens() -> None:
    assert find_preset("jerasure_reed_sol_van") is PRESETS["jerasure-reed-sol-van"]


@pytest.mark.parametrize("name", PRESETS)
def test_no_data_or_no_parity(name: str) -> None:
    for k, m in ((0, 2), (4, 0), (-1, 2)):
        with pytest.raises(ParameterError, match="at least 1"):
            Codec.preset(name, k, m)


@pytest.mark.parametrize("w", [0, 7, 9, 12, 64])
def test_jerasure_words_take_three_sizes(w: int) -> None:
    for name in ("jerasure-reed-sol-van", "jerasure-reed-sol-r6"):
        with pytest.raises(ParameterError, match=f"w of 8, 16, 32, not {w}"):
            Codec.preset(name, 4, 2, w=w)


def test_bit_codes_take_their_w_only() -> None:
    for w in (1, 2, 4, 8, 9, 15):
        with pytest.raises(ParameterError, match="odd prime"):
            Codec.preset("jerasure-liberation", 2, 2, w=w)
    for w in (1, 3, 5, 8, 9, 11):
        with pytest.raises(ParameterError, match="prime"):
            Codec.preset("jerasure-blaum-roth", 2, 2, w=w)
    with pytest.raises(ParameterError, match="multiple of 8"):
        Codec.preset("jerasure-liberation", 2, 2, packet_bytes=12)


def test_repr_names_the_preset() -> None:
    codec = Codec.preset("jerasure-cauchy-good", 4, 2, packet_bytes=8, engine="numpy")
    assert repr(codec) == "Codec.preset('jerasure-cauchy-good', k=4, m=2, w=8, packet_bytes=8, engine='numpy')"


@pytest.mark.parametrize(("name", "k", "options"), BIT_CODES)
def test_bit_codes_survive_every_loss_of_two(name: str, k: int, options: dict[str, Any]) -> None:
    codec = Codec.preset(name, k, 2, **options)
    assert codec.certificate.method == "exhaustive"
    shards = shards_of(codec, filled(k, 3 * codec.block_multiple))
    for count in (0, 1, 2):
        for lost in combinations(range(k + 2), count):
            plan = codec.plan(without(shards, lost), lost)
            assert len(plan.sources) <= k
            assert plan.want == lost
            found = codec.reconstruct(without(shards, lost), lost)
            assert all(np.array_equal(found[i], shards[i]) for i in lost), lost
    with pytest.raises(UnrecoverableError, match=f"k = {k} shards are needed and {k - 1} are there"):
        codec.decode(without(shards, (0, 1, 2)))


def by_definition(bits: npt.NDArray[np.uint8], data: Bytes, w: int, packet_bytes: int) -> Bytes:
    """Parity of a bit matrix, packet by packet."""
    k, length = data.shape
    packets = data.reshape(k, -1, w, packet_bytes)
    out = np.zeros((bits.shape[0] // w, *packets.shape[1:]), np.uint8)
    for row, column in zip(*np.nonzero(bits), strict=True):
        out[row // w, :, row % w] ^= packets[column // w, :, column % w]
    return out.reshape(-1, length)


@pytest.mark.parametrize("engine", ["numpy", "numba", None])
@pytest.mark.parametrize(("name", "k", "options"), BIT_CODES)
def test_bit_codes_by_definition(name: str, k: int, options: dict[str, Any], engine: str | None) -> None:
    codec = Codec.preset(name, k, 2, engine=engine, **options)
    strips = 5000 if engine != "numpy" else 3  # more packets than are handed to the engine at a time
    data = filled(k, strips * codec.block_multiple)
    expected = by_definition(codec.parity.values, data, codec.w, codec.layout.packet_bytes)
    assert np.array_equal(codec.encode(data), expected)
    batch = np.stack([data, data[:, ::-1], data[::-1]])
    parities = codec.encode(np.ascontiguousarray(batch))
    assert np.array_equal(parities[0], expected)
    assert np.array_equal(
        parities[2], by_definition(codec.parity.values, data[::-1], codec.w, codec.layout.packet_bytes)
    )


@pytest.mark.parametrize(("name", "k", "options"), BIT_CODES)
def test_bit_codes_verify_update_pickle(name: str, k: int, options: dict[str, Any]) -> None:
    codec = Codec.preset(name, k, 2, **options)
    data = filled(k, 4 * codec.block_multiple)
    shards = shards_of(codec, data)
    assert codec.verify(shards)
    changed = data.copy()
    changed[1] = filled(1, data.shape[1], seed=9)
    parity = codec.encode(data)
    codec.update(parity, 1, data[1], changed[1])
    assert np.array_equal(parity, codec.encode(changed))
    other = copy.deepcopy(codec)  # by pickling's protocol
    assert isinstance(other, PresetCodec)
    assert np.array_equal(other.encode(data), codec.encode(data))
    shards[k + 1] = shards[k + 1].copy()
    shards[k + 1][5] ^= 1
    report = codec.verify(shards)
    assert report.disagreeing == (k + 1,)


def test_squares_of_raid6_codes_are_as_sparse_as_can_be() -> None:
    """Minimum density: k·w + k − 1 ones in the second parity, the least that an MDS code of its kind has."""
    for squares in (liberation(5, 7), blaum_roth(6, 6), liber8tion(8)):
        k, w, _ = squares.shape
        assert squares.sum() == k * w + k - 1
        assert raid6_bits(squares)[:w].sum() == k * w
        assert all(gf2.rank(a ^ b) == w for a, b in combinations(squares, 2))


def test_ceph_default_blaum_roth_is_refused_from_three() -> None:
    assert Codec.preset("jerasure-blaum-roth", 2, 2, w=7).certificate.method == "exhaustive"
    with pytest.raises(NotMDSError, match=r"k = 3.*loss of shards \{0,2\}.*--allow-uncertified") as caught:
        Codec.preset("jerasure-blaum-roth", 3, 2, w=7)
    assert caught.value.lost == (0, 2)


def test_uncertified_codes_need_permission() -> None:
    with pytest.raises(NotMDSError, match=r"k = 22, m = 4.*allow_uncertified") as caught:
        Codec.preset("isa-l-rs", 22, 4)
    assert len(caught.value.lost) == 4
    assert Codec.preset("isa-l-rs", 21, 4).certificate.method == "exhaustive"
    assert Codec.preset("isa-l-rs", 21, 4, allow_uncertified=True).certificate.method == "exhaustive"


@pytest.mark.parametrize(
    ("name", "m", "first_bad", "lost"),
    [
        ("isa-l-rs", 4, 22, (0, 10, 21, 24)),
        ("isa-l-rs", 5, 6, (0, 3, 5, 8, 9)),
        ("isa-l-rs", 6, 5, (0, 3, 4, 6, 8, 9)),
        ("klauspost-par1", 4, 3, (0, 1, 2, 5)),
        ("klauspost-par1", 5, 3, (0, 1, 2, 5, 7)),
    ],
)
def test_first_bad_of_the_presets_that_are_not_mds(name: str, m: int, first_bad: int, lost: tuple[int, ...]) -> None:
    assert Codec.preset(name, first_bad - 1, m).certificate.method != "none"
    with pytest.raises(NotMDSError) as caught:
        Codec.preset(name, first_bad, m)
    assert caught.value.lost == lost


@pytest.mark.parametrize("name", ["isa-l-rs", "klauspost-par1"])
def test_three_parities_are_safe_at_every_length(name: str) -> None:
    assert Codec.preset(name, 253, 3).certificate.method == "conic"


def test_encode_warns_once() -> None:
    codec = Codec.preset("isa-l-rs", 6, 5, allow_uncertified=True)
    assert codec.certificate.method == "none"
    assert repr(codec).startswith("Codec.preset('isa-l-rs', k=6, m=5, allow_uncertified=True")
    data = filled(6, 64)
    with pytest.warns(UncertifiedWarning, match=r"'isa-l-rs' with k = 6, m = 5.*not MDS"):
        parity = codec.encode(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(codec.encode(data), parity)


def test_certified_codes_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Codec.preset("isa-l-rs", 10, 4, allow_uncertified=True).encode(filled(10, 64))


def test_bad_loss_is_named_with_what_would_help() -> None:
    """The loss of data shards 0, 3, 5 with parity rows 0, 1, 4 left: singular in ISA-L's matrix for m = 5."""
    codec = Codec.preset("isa-l-rs", 6, 5, allow_uncertified=True)
    shards = shards_of(codec, filled(6, 64))
    lost = (0, 3, 5, 8, 9)
    with pytest.raises(UnrecoverableError) as caught:
        codec.decode(without(shards, lost))
    message = str(caught.value)
    assert "not MDS" in message
    assert "shards 0, 3, 5, 8, 9 missing" in message
    assert "does not determine shards 0, 3, 5" in message
    assert "any one of shards 0, 3, 5, 8, 9 besides would be enough" in message
    for helpful in lost:
        data = codec.decode(without(shards, tuple(shard for shard in lost if shard != helpful)))
        assert np.array_equal(data, np.stack([shards[i] for i in range(6)]))


def test_what_is_still_determined_is_said_and_made() -> None:
    """Ceph's w = 7: losing data 0 and 2 is fatal, and yet a parity shard or a third shard comes back."""
    codec = Codec.preset("jerasure-blaum-roth", 4, 2, w=7, packet_bytes=8, allow_uncertified=True)
    shards = shards_of(codec, filled(4, 2 * codec.block_multiple))
    with pytest.raises(UnrecoverableError, match="does not determine shards 0, 2"):
        codec.decode(without(shards, (0, 2)))
    for lost in combinations(range(6), 2):
        if lost == (0, 2):
            continue
        found = codec.reconstruct(without(shards, lost), lost)
        assert all(np.array_equal(found[i], shards[i]) for i in lost)


def test_recoverable_part_of_a_bad_loss() -> None:
    """PAR1, lost {0,1,2,12} of (10,4) is singular; with shard 9 lost too, 9 alone may still be wanted in vain."""
    codec = Codec.preset("klauspost-par1", 10, 4, allow_uncertified=True)
    shards = shards_of(codec, filled(10, 64))
    bad = (0, 1, 2, 12)
    with pytest.raises(UnrecoverableError, match="not MDS"):
        codec.decode(without(shards, bad))
    # Fewer are lost: any three data shards come back when all four parities are there, whichever the planner reads.
    found = codec.reconstruct(without(shards, (0, 1, 2)), (0, 1, 2))
    assert all(np.array_equal(found[i], shards[i]) for i in (0, 1, 2))
    with pytest.raises(UnrecoverableError, match="9 are there"):
        codec.decode(without(shards, (0, 1, 2, 3, 12)))


def test_verify_of_an_uncertified_code_compares_what_can_be() -> None:
    codec = Codec.preset("isa-l-rs", 6, 5, allow_uncertified=True)
    shards = shards_of(codec, filled(6, 64))
    assert codec.verify(shards)
    # Eight shards, of which five are data and three parities singular on the three others: rank 5, one to compare.
    rest = without(shards, (0, 3, 5, 8))
    assert codec.verify(rest).consistent
    with pytest.raises(BlockError, match="nothing can be compared"):
        codec.verify(without(shards, (0, 3, 5, 8, 9, 10)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_uncertified_decoding_is_right_or_refused_rightly(data: st.DataObject) -> None:
    """Whatever is there: what comes back is what was lost, and what is refused has no full rank."""
    codec = Codec.preset("isa-l-rs", 5, 6, allow_uncertified=True)
    shards = shards_of(codec, filled(5, 16))
    lost = tuple(sorted(data.draw(st.sets(st.integers(0, 10), max_size=7))))
    want = tuple(data.draw(st.permutations(lost)))
    try:
        found = codec.reconstruct(without(shards, lost), want)
    except UnrecoverableError:
        gone = [shard for shard in lost if shard < 5]
        rows = [shard - 5 for shard in range(5, 11) if shard not in lost]
        assert codec.parity.rows(rows).columns(gone).rank() < len(gone)
    else:
        assert all(np.array_equal(found[i], shards[i]) for i in want)
