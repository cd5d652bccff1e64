"""gfcode's driver beside the installed PyECLib: every byte, every answer."""

import random
from collections.abc import Iterator
from itertools import combinations

import pytest

from gfcode.compat.checksums import ENVIRONMENT_VARIABLE
from gfcode.compat.pyeclib import ECDriver, ECDriverError
from tests.compat.peer import Peer, PeerRaisedError
from tests.compat.shapes import SHAPES, options
from tests.peers.base import PeerMissingError

pytestmark = pytest.mark.peer

EVERY = [(ec_type, k, m) for ec_type, shapes in SHAPES.items() for k, m in shapes]
SMALL = [(ec_type, k, m) for ec_type, shapes in SHAPES.items() for k, m in shapes[:2]]


@pytest.fixture(scope="module")
def pyeclib() -> Iterator[Peer]:
    try:
        peer = Peer()
    except PeerMissingError as error:
        pytest.skip(str(error))
    yield peer
    peer.close()


@pytest.fixture
def peer(pyeclib: Peer, request: pytest.FixtureRequest) -> Peer:
    ec_type = request.getfixturevalue("ec_type")
    if ec_type not in pyeclib.types:
        pytest.skip(f"pyeclib has no {ec_type} here; Jerasure's are there after apt-get install libjerasure2")
    return pyeclib


def data_of(length: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(length)


def lengths(k: int) -> list[int]:
    return [0, 1, k - 1, k, 4 * k + 1, 1021, 32 * k, 20_011]


@pytest.mark.parametrize(("ec_type", "k", "m"), EVERY)
def test_fragments_are_the_same_bytes(peer: Peer, ec_type: str, k: int, m: int) -> None:
    for checksum in ("none", "inline_crc32"):
        keywords = options(ec_type, k, m, checksum)
        driver = ECDriver(**keywords)
        for length in lengths(k):
            data = data_of(length)
            theirs = peer.call(keywords, "encode", data)
            assert driver.encode(data) == theirs, (checksum, length)


@pytest.mark.parametrize(("ec_type", "k", "m"), SMALL)
def test_legacy_checksums_are_the_same_bytes(
    peer: Peer, ec_type: str, k: int, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords = options(ec_type, k, m, "inline_crc32")
    driver = ECDriver(**keywords)
    for length in (0, 999, 65_537):
        data = data_of(length)
        theirs = peer.call(keywords, "encode", data, legacy=True)
        assert length == 0 or theirs != peer.call(keywords, "encode", data)
        for value in ("1", "yes", "01"):
            monkeypatch.setenv(ENVIRONMENT_VARIABLE, value)
            assert driver.encode(data) == theirs
        # Read without being told.
        for value in ("", "0"):
            monkeypatch.setenv(ENVIRONMENT_VARIABLE, value)
            assert driver.decode(theirs[1:], force_metadata_checks=True) == data
        assert [driver.get_metadata(f, 1)["chksum_mismatch"] for f in theirs] == [0] * (k + m)


@pytest.mark.parametrize(("ec_type", "k", "m"), SMALL)
def test_each_decodes_what_the_other_encodes(peer: Peer, ec_type: str, k: int, m: int) -> None:
    keywords = options(ec_type, k, m, "inline_crc32")
    driver = ECDriver(**keywords)
    data = data_of(5003)
    ours, theirs = driver.encode(data), peer.call(keywords, "encode", data)
    spare = {"flat_xor_hd_3": 2, "flat_xor_hd_4": 3, "isa_l_rs_lrc": m - 2 + 1}.get(ec_type, m)
    losses = list(combinations(range(k + m), spare))
    for lost in random.Random(2).sample(losses, min(60, len(losses))):
        left = [i for i in range(k + m) if i not in lost]
        random.Random(len(losses)).shuffle(left)
        assert driver.decode([theirs[i] for i in left]) == data, lost
        assert peer.call(keywords, "decode", [ours[i] for i in left]) == data, lost
        rebuilt = driver.reconstruct([theirs[i] for i in left], list(lost))
        assert rebuilt == [theirs[i] for i in lost], lost
        assert peer.call(keywords, "reconstruct", [ours[i] for i in left], list(lost)) == rebuilt, lost


@pytest.mark.parametrize(("ec_type", "k", "m"), SMALL)
def test_metadata(peer: Peer, ec_type: str, k: int, m: int) -> None:
    for checksum in ("none", "inline_crc32"):
        keywords = options(ec_type, k, m, checksum)
        driver = ECDriver(**keywords)
        fragments = driver.encode(data_of(3001))
        broken = [f[:90] + bytes([f[90] ^ 1]) + f[91:] if i in {1, k} else f for i, f in enumerate(fragments)]
        for fragment in (*fragments, *broken):
            for formatted in (0, 1):
                theirs = peer.call(keywords, "get_metadata", fragment, formatted)
                assert driver.get_metadata(fragment, formatted) == theirs
        for stripe in (fragments, broken):
            metadata = [driver.get_metadata(fragment) for fragment in stripe]
            assert driver.verify_stripe_metadata(metadata) == peer.call(keywords, "verify_stripe_metadata", metadata)


@pytest.mark.parametrize(("ec_type", "k", "m"), SMALL)
def test_ranges(peer: Peer, ec_type: str, k: int, m: int) -> None:
    keywords = options(ec_type, k, m)
    driver = ECDriver(**keywords)
    data = data_of(4 * k * 100 - 3)
    fragments = driver.encode(data)[1:]
    chosen = random.Random(3)
    ranges = [(0, 0), (0, len(data) - 1), (len(data) - 1, len(data) - 1), (7, 6)]
    ranges += [tuple(sorted(chosen.choices(range(len(data)), k=2))) for _ in range(20)]  # type: ignore[misc] # pairs
    assert driver.decode(fragments, ranges) == peer.call(keywords, "decode", fragments, ranges)
    assert driver.decode(fragments, ranges) == [data[begin : end + 1] for begin, end in ranges]


@pytest.mark.parametrize(("ec_type", "k", "m"), EVERY)
def test_segments(peer: Peer, ec_type: str, k: int, m: int) -> None:
    keywords = options(ec_type, k, m)
    driver = ECDriver(**keywords)
    chosen = random.Random(4)
    sizes = [(0, 1000), (1, 1), (2000, 1000), (2001, 1000), (1003, 1000), (10 << 20, 1 << 20), (100, 10_000)]
    sizes += [(chosen.randrange(1 << 22), chosen.randrange(1, 1 << 21)) for _ in range(30)]
    sizes += [(2 * size + few, size) for size in (5000, 100_000) for few in (0, 1, 2, 3, 4, 40, 4096)]
    for length, size in sizes:
        theirs = peer.call(keywords, "get_segment_info", length, size)
        assert driver.get_segment_info(length, size) == theirs, (length, size)


@pytest.mark.parametrize(("ec_type", "k", "m"), [case for case in SMALL if "_rs_" in case[0] and "lrc" not in case[0]])
def test_fragments_needed(peer: Peer, ec_type: str, k: int, m: int) -> None:
    keywords = options(ec_type, k, m)
    driver = ECDriver(**keywords)
    for count in range(m + 1):
        for gone in combinations(range(k + m), count):
            for split in range(count + 1):
                wanted, excluded = list(gone[:split]), list(gone[split:])
                theirs = peer.call(keywords, "fragments_needed", wanted, excluded)
                assert driver.fragments_needed(wanted, excluded) == theirs, (wanted, excluded)


@pytest.mark.parametrize(("ec_type", "k", "m"), [case for case in SMALL if "flat_xor" in case[0]])
def test_flat_xor_needs_no_more_fragments(peer: Peer, ec_type: str, k: int, m: int) -> None:
    """One lost fragment is made from as few; several from no more than PyECLib reads."""
    keywords = options(ec_type, k, m)
    driver = ECDriver(**keywords)
    data = data_of(700)
    fragments = driver.encode(data)
    for count in range(1, int(ec_type[-1])):
        for lost in combinations(range(k + m), count):
            ours = driver.fragments_needed(list(lost))
            theirs = peer.call(keywords, "fragments_needed", list(lost), [])
            assert len(ours) <= len(theirs), lost
            assert driver.reconstruct([fragments[i] for i in ours], list(lost)) == [fragments[i] for i in lost]


@pytest.mark.parametrize("ec_type", sorted(SHAPES))
def test_shapes_that_pyeclib_refuses_are_refused(peer: Peer, ec_type: str) -> None:
    shapes = [(3, 2), (4, 4), (2, 6), (11, 5), (16, 6), (21, 6), (12, 5), (200, 57), (252, 4), (10, 7), (3, 4)]
    for k, m in shapes:
        keywords = options(ec_type, k, m)
        try:
            peer.call(keywords, "")
        except PeerRaisedError:
            with pytest.raises(ECDriverError):
                ECDriver(**keywords)
        else:
            # The points of this code repeat from the 256th fragment on, which would be a copy of the first.
            if (ec_type, k, m) != ("isa_l_rs_vand_inv", 252, 4):
                ECDriver(**keywords)
