"""The presets against the peers that are installed: encode here, rebuild there, and the reverse."""

import math
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from gfcode import Codec
from gfcode.errors import ParameterError, UnrecoverableError
from gfcode.pipeline.raw import raw_encode
from tests.peers.base import Bytes, Peer, PeerError, PeerMissingError, Variant, filled
from tests.peers.isal import isal_pq
from tests.peers.served import klauspost, split_file
from tests.peers.variants import VARIANTS

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore::gfcode.codec.preset_codec.UncertifiedWarning")]
TITLES = list(VARIANTS)
#: Every loss of m is tried where there are at most this many; all of (10, 4), then.
ALL_LOSSES = 1001
SAMPLE = 5


def peers_of(variant: Variant) -> list[Peer]:
    peers, missing = variant.peers()
    if not peers:
        pytest.skip("; ".join(missing))
    return peers


def codec_of(variant: Variant, k: int, m: int) -> Codec:
    return Codec.preset(variant.preset, k, m, allow_uncertified=(k, m) in variant.uncertified, **variant.options)


def losses(k: int, m: int) -> Iterator[tuple[int, ...]]:
    """Yield every loss of m shards, or a sample of them with the extreme ones."""
    n = k + m
    if math.comb(n, m) <= ALL_LOSSES:
        yield from combinations(range(n), m)
        return
    yield tuple(range(m))
    yield tuple(range(k, n))
    random = np.random.default_rng(k * 1000 + m)
    for _ in range(SAMPLE):
        yield tuple(sorted(random.choice(n, m, replace=False).tolist()))


def shards_of(data: Bytes, parity: Bytes, lost: tuple[int, ...] = ()) -> dict[int, Bytes]:
    everything = np.concatenate([data, parity])
    return {i: shard for i, shard in enumerate(everything) if i not in lost}


@pytest.mark.parametrize("title", TITLES)
def test_same_parity(title: str) -> None:
    variant = VARIANTS[title]
    for peer in peers_of(variant):
        for k, m in variant.shapes:
            codec = codec_of(variant, k, m)
            for length in variant.lengths:
                data = filled(k, length, seed=k + length)
                assert np.array_equal(codec.encode(data), peer.encode(data, m)), (k, m, length)


@pytest.mark.parametrize("title", TITLES)
def test_every_loss_rebuilt_here_and_there(title: str) -> None:
    """Shards written there are rebuilt here, and the reverse; what cannot be decoded here, cannot there."""
    variant = VARIANTS[title]
    peers = peers_of(variant)
    for k, m in variant.shapes:
        codec = codec_of(variant, k, m)
        data = filled(k, variant.lengths[0], seed=k)
        ours, theirs = codec.encode(data), peers[0].encode(data, m)
        undecodable = 0
        for lost in losses(k, m):
            wanted = {i: shard for i, shard in shards_of(data, theirs).items() if i in lost}
            try:
                found = codec.reconstruct(shards_of(data, theirs, lost), lost)
            except UnrecoverableError:
                undecodable += 1
                assert (k, m) in variant.uncertified
                with pytest.raises(PeerError):
                    peers[0].rebuild(k, m, shards_of(data, ours, lost), lost)
                continue
            assert all(np.array_equal(found[i], wanted[i]) for i in lost), lost
            if variant.preset == "linux-raid6" and len(peers) == 1:
                continue  # ISA-L makes P and Q and checks them; it rebuilds nothing
            found = peers[-1].rebuild(k, m, shards_of(data, ours, lost), lost)
            assert all(np.array_equal(found[i], wanted[i]) for i in lost), lost
        assert bool(undecodable) == ((k, m) in variant.uncertified and math.comb(k + m, m) <= ALL_LOSSES)


@pytest.mark.parametrize("title", TITLES)
def test_what_the_peer_refuses_is_refused(title: str) -> None:
    variant = VARIANTS[title]
    for k, m in variant.refused:
        with pytest.raises(ParameterError, match=rf"{variant.preset}|codes with w"):
            codec_of(variant, k, m)
    for peer in peers_of(variant):
        for k, m in variant.refused:
            with pytest.raises(PeerError):
                # An odd length where possible: klauspost takes more shards of whole lines, by another code (Leopard).
                peer.encode(filled(k, variant.lengths[-1]), m)


def test_pq_check_accepts_what_is_rebuilt_here() -> None:
    variant = VARIANTS["linux-raid6"]
    peers_of(variant)
    peer = isal_pq()
    for k in (2, 4, 10):
        codec = Codec.preset("linux-raid6", k, 2)
        data = filled(k, 4096)
        shards = shards_of(data, codec.encode(data))
        for lost in combinations(range(k + 2), 2):
            kept = {i: shard for i, shard in shards.items() if i not in lost}
            everything = {**kept, **codec.reconstruct(kept, lost)}
            assert peer.consistent(np.stack([everything[i] for i in range(k + 2)]))
        wrong = np.stack([shards[i] for i in range(k + 2)])
        wrong[k, 100] ^= 1
        assert not peer.consistent(wrong)


@pytest.mark.parametrize("size", [1, 3, 4, 1000, 4097])
def test_raw_files_are_those_of_klauspost_split(tmp_path: Path, size: int) -> None:
    """Its example programs write what Split and Encode make, to FILE.0, FILE.1, ..."""
    try:
        peer = klauspost("default")()
    except PeerMissingError as error:
        pytest.skip(str(error))
    content = filled(1, size).tobytes()
    (tmp_path / "f").write_bytes(content)
    report = raw_encode(str(tmp_path / "f"), Codec.preset("klauspost", 4, 2), out=str(tmp_path))
    assert [Path(path).name for path in report.paths] == [f"f.{index}" for index in range(6)]
    assert [Path(path).read_bytes() for path in report.paths] == split_file(peer, content, 4, 2)


def test_pyeclib_fragments_hold_the_same_bytes() -> None:
    """Fragments of liberasurecode behind their 80-byte headers, written by its two ISA-L codes."""
    driver = pytest.importorskip("pyeclib.ec_iface", reason="pyeclib is not installed: pip install pyeclib")
    for ec_type, preset in (("isa_l_rs_vand", "isa-l-rs"), ("isa_l_rs_cauchy", "isa-l-cauchy")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ec = driver.ECDriver(k=10, m=4, ec_type=ec_type)
            except driver.ECDriverError as error:
                pytest.skip(f"pyeclib has no {ec_type} here: {error}")
        data = filled(10, 4096)
        fragments = [np.frombuffer(fragment, np.uint8)[80:] for fragment in ec.encode(data.tobytes())]
        assert np.array_equal(np.stack(fragments[:10]), data)
        assert np.array_equal(np.stack(fragments[10:]), Codec.preset(preset, 10, 4).encode(data))
