"""Codecs given arrays in device memory: the work goes where the data is."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.engine import registry
from gfcode.errors import BlockError, EngineUnavailableError, ParameterError, UnrecoverableError
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.engine import CudaEngine
from tests.gpu import shim
from tests.gpu.harness import Bytes, DlpackOnly, random_bytes
from tests.gpu.shim import DeviceArray, ShimDevice

pytestmark = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")


@pytest.fixture
def device(device: ShimDevice, engine: CudaEngine, monkeypatch: pytest.MonkeyPatch) -> ShimDevice:
    monkeypatch.setitem(registry._loaded, "cuda", engine)
    return device


# Any: codecs take device arrays of all kinds, which their types do not name.
CODEC: Any = Codec(4, 3, layout="words", engine="numpy")
LENGTH = 77


def whole_of(*lead: int, codec: Any = CODEC, length: int = LENGTH) -> Bytes:
    """Return all shards of stripes, shape (*lead, n, length)."""
    data = random_bytes(*lead, codec.k, length)
    return np.concatenate([data, codec.encode(data)], axis=-2)


def shards_of(device: ShimDevice, whole: Bytes, kept: Any = None) -> dict[int, DeviceArray]:
    """Return shards as device arrays of their own."""
    return {i: device.device_array(whole[..., i, :]) for i in (range(whole.shape[-2]) if kept is None else kept)}


def zeros(device: ShimDevice, *shape: int) -> DeviceArray:
    return device.device_array(np.zeros(shape, np.uint8))


def taken_out(device: ShimDevice) -> int:
    """Bytes that went from the device to the host, all told."""
    return sum(size for kind, size in device.copies if kind == "out")


LEADS = [(), (3,)]


@pytest.mark.parametrize("lead", LEADS)
def test_encode_stays_on_the_device(device: ShimDevice, lead: tuple[int, ...]) -> None:
    whole = whole_of(*lead)
    data, wanted = whole[..., :4, :], whole[..., 4:, :]
    source = device.device_array(data)
    parity = CODEC.encode(source)
    assert not np.array_equal(parity.array, wanted), "nothing waits: the work is only enqueued"
    device.finish(0)
    assert np.array_equal(parity.array, wanted)
    out = zeros(device, *wanted.shape)
    assert CODEC.encode(source, out) is out
    into = zeros(device, *wanted.shape)
    assert CODEC.encode_into(source, into) is None
    # Blocks that are arrays of their own, on either side, and some that speak nothing but DLPack.
    parts = [device.device_array(data[..., i, :]) for i in range(4)]
    rows = [zeros(device, *lead, LENGTH) for _ in range(3)]
    assert CODEC.encode(parts, rows) is rows
    again = CODEC.encode([DlpackOnly(part.array) for part in parts])
    only = DlpackOnly(zeros(device, *wanted.shape).array)
    assert CODEC.encode(DlpackOnly(source.array), only) is only
    device.finish(0)
    for made in (out.array, into.array, again.array, only.array, np.stack([row.array for row in rows], axis=-2)):
        assert np.array_equal(made, wanted)
    assert taken_out(device) == 0


@pytest.mark.parametrize("lead", LEADS)
def test_every_loss_is_decoded_on_the_device(device: ShimDevice, lead: tuple[int, ...]) -> None:
    whole = whole_of(*lead)
    for lost in itertools.combinations(range(7), 3):
        left = shards_of(device, whole, [i for i in range(7) if i not in lost])
        found = CODEC.decode(left)
        device.finish(0)
        assert np.array_equal(found.array, whole[..., :4, :]), lost
    assert taken_out(device) == 0


@pytest.mark.parametrize("lead", LEADS)
def test_decode_into_memory_of_the_caller(device: ShimDevice, lead: tuple[int, ...]) -> None:
    """An array, a list, an array of which some blocks are the very shards given, and one that speaks DLPack only."""
    whole = whole_of(*lead)
    left = shards_of(device, whole, (1, 3, 4, 6))
    out = zeros(device, *lead, 4, LENGTH)
    rows = [zeros(device, *lead, LENGTH) for _ in range(4)]
    only = DlpackOnly(zeros(device, *lead, 4, LENGTH).array)
    assert CODEC.decode(left, out) is out
    assert CODEC.decode(left, rows) is rows
    assert CODEC.decode({i: DlpackOnly(shard.array) for i, shard in left.items()}, only) is only
    place = device.device_array(whole[..., :4, :])
    inside = {1: place[..., 1, :], 3: place[..., 3, :], 4: left[4], 6: left[6]}
    place.array[..., (0, 2), :] = 0
    device.copies.clear()
    assert CODEC.decode(inside, place) is place
    assert [size for kind, size in device.copies if kind == "rows"] == [], "blocks in their place are not copied"
    device.finish(0)
    for made in (out.array, np.stack([row.array for row in rows], axis=-2), only.array, place.array):
        assert np.array_equal(made, whole[..., :4, :])


@pytest.mark.parametrize("lead", LEADS)
def test_reconstruct_stays_on_the_device(device: ShimDevice, lead: tuple[int, ...]) -> None:
    whole = whole_of(*lead)
    left = shards_of(device, whole, (0, 2, 4, 5))
    for want in [(1, 6), (3,), (6, 1, 2)]:
        found = CODEC.reconstruct(left, want)
        given = zeros(device, *lead, len(want), LENGTH)
        placed = CODEC.reconstruct(left, want, given)
        rows = [zeros(device, *lead, LENGTH) for _ in want]
        listed = CODEC.reconstruct(left, want, rows)
        only = DlpackOnly(zeros(device, *lead, len(want), LENGTH).array)
        foreign = CODEC.reconstruct(left, want, only)
        device.finish(0)
        assert [list(made) for made in (found, placed, listed, foreign)] == [list(want)] * 4
        for i, shard in enumerate(want):
            assert shard not in left or found[shard] is left[shard]
            assert listed[shard] is rows[i]
            for made in (found, placed, listed, foreign):
                assert np.array_equal(made[shard].array, whole[..., shard, :])
            assert np.array_equal(given.array[..., i, :], whole[..., shard, :])
    assert CODEC.reconstruct(left, []) == {}


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("room", [1 << 40, 9_000])
def test_update_patches_on_the_device(device: ShimDevice, lead: tuple[int, ...], room: int) -> None:
    """All parities at once, or some; with scratch memory for everything, or a little at a time."""
    length = 1500
    whole = whole_of(*lead, length=length)
    new = random_bytes(*lead, length)
    changed = whole.copy()
    changed[..., 2, :] = new
    changed[..., 4:, :] = CODEC.encode(np.ascontiguousarray(changed[..., :4, :]))
    parity = device.device_array(whole[..., 4:, :])
    some = shards_of(device, whole, (6, 4))
    rows = [DlpackOnly(device.device_array(whole[..., i, :]).array) for i in (4, 5, 6)]
    old, fresh = device.device_array(whole[..., 2, :]), device.device_array(new)
    device.limit = device.used + room
    CODEC.update(parity, 2, old, fresh)
    assert not np.array_equal(parity.array, changed[..., 4:, :]), "nothing waits"
    device.finish(0)
    CODEC.update(some, 2, old, fresh)
    device.finish(0)
    CODEC.update(rows, 2, old, fresh)
    device.finish(0)
    assert np.array_equal(parity.array, changed[..., 4:, :])
    assert [np.array_equal(some[i].array, changed[..., i, :]) for i in (4, 6)] == [True, True]
    assert np.array_equal(np.stack([row.array for row in rows], axis=-2), changed[..., 4:, :])
    assert taken_out(device) == 0


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("length", [LENGTH, 1024, 3000])
def test_verify_answers_from_the_device(device: ShimDevice, lead: tuple[int, ...], length: int) -> None:
    whole = whole_of(*lead, length=length)
    shards = shards_of(device, whole)
    device.copies.clear()
    report = CODEC.verify(shards)
    assert report == CODEC.verify(dict(enumerate(np.moveaxis(whole, -2, 0))))
    assert report.consistent
    words = 4 * 3 * int(np.prod(lead))
    assert taken_out(device) == words, "a word for each block that is compared, and nothing else"
    # One wrong byte anywhere: at either end of a block, in any shard, in the last stripe.
    for shard, at in ((0, 0), (3, length - 1), (6, length // 2), (2, 511 % length)):
        broken = whole.copy()
        broken[(-1,) * len(lead) + (shard, at)] ^= 1
        found = CODEC.verify({i: DlpackOnly(one.array) for i, one in shards_of(device, broken).items()})
        assert found == CODEC.verify(dict(enumerate(np.moveaxis(broken, -2, 0))))
        assert found.wrong == (shard,)
        some = [i for i in range(7) if i != 5]
        assert CODEC.verify(shards_of(device, broken, some)) == CODEC.verify({i: broken[..., i, :] for i in some})


def test_verify_copies_only_stripes_that_disagree(device: ShimDevice) -> None:
    whole = whole_of(9)
    for stripe, shard in ((2, 1), (7, 4)):
        whole[stripe, shard, 5] ^= 16
    shards = shards_of(device, whole)
    device.copies.clear()
    device.limit = device.used + 3000  # and with little memory, a few stripes at a time
    report = CODEC.verify(shards)
    device.limit = 1 << 40
    assert report == CODEC.verify(dict(enumerate(whole.swapaxes(0, 1))))
    assert (report.stripes, report.wrong_in) == ((2, 7), {2: (1,), 7: (4,)})
    assert taken_out(device) == 4 * 3 * 9 + 2 * 7 * LENGTH
    with pytest.raises(BlockError, match="more than k = 4 shards are needed to compare any, and 4 are given"):
        CODEC.verify(shards_of(device, whole, range(4)))


def test_packets_and_codes_without_parity(device: ShimDevice) -> None:
    codec: Any = Codec(3, 2, engine="numpy")
    whole = whole_of(2, codec=codec, length=1024)
    assert CodecCheck(device, codec, whole).all()
    plain: Any = Codec(3, 0, layout="words", engine="numpy")
    data = device.device_array(random_bytes(3, 8))
    assert plain.encode(data).array.shape == (0, 8)
    assert np.array_equal(plain.decode({i: data[i] for i in range(3)}).array, data.array) is False
    device.finish(0)
    assert plain.verify({i: data[i] for i in range(3)}).consistent


class CodecCheck:
    """All verbs of a codec, once."""

    def __init__(self, device: ShimDevice, codec: Any, whole: Bytes) -> None:
        self.device, self.codec, self.whole = device, codec, whole

    def all(self) -> bool:
        codec, whole, k = self.codec, self.whole, self.codec.k
        parity = codec.encode(self.device.device_array(whole[..., :k, :]))
        left = shards_of(self.device, whole, range(codec.m, codec.n))
        data, made = codec.decode(left), codec.reconstruct(left, [0])
        self.device.finish(0)
        consistent = codec.verify(shards_of(self.device, whole)).consistent
        codec.update(parity, 1, left.get(1, self.device.device_array(whole[..., 1, :])), left[k])
        self.device.finish(0)
        changed = whole[..., :k, :].copy()
        changed[..., 1, :] = whole[..., k, :]
        equal = np.array_equal(data.array, whole[..., :k, :]) and np.array_equal(made[0].array, whole[..., 0, :])
        return bool(consistent and equal and np.array_equal(parity.array, codec.encode(changed)))


@pytest.mark.parametrize("layout", ["packets", "words"])
def test_codecs_run_on_the_engine_from_host_memory(device: ShimDevice, layout: str) -> None:
    codec, plain = (Codec(5, 3, layout=layout, engine=engine) for engine in ("cuda", "numpy"))  # type: ignore[arg-type]
    data = random_bytes(2, 5, 1024)
    parity = codec.encode(data)
    assert np.array_equal(parity, plain.encode(data))
    whole = dict(enumerate(np.concatenate([data, parity], axis=1).swapaxes(0, 1)))
    for lost in ((0, 1, 2), (1, 4, 7), (5, 6, 7), (0, 6)):
        left = {i: block for i, block in whole.items() if i not in lost}
        assert np.array_equal(codec.decode(left), data)
        for shard, block in codec.reconstruct(left, lost).items():
            assert np.array_equal(block, whole[shard])
    assert codec.verify(whole).consistent
    new = random_bytes(2, 1024)
    codec.update(parity, 3, data[:, 3], new)
    data[:, 3] = new
    assert np.array_equal(parity, plain.encode(data))
    assert device.launches


# What is refused

Call = Callable[[ShimDevice, Bytes], object]


def _mixed(device: ShimDevice, whole: Bytes, first: int) -> dict[int, Any]:
    """Shards, of which only the one at a position is in device memory, or only that one is not."""
    shards: dict[int, Any] = {i: whole[i] for i in range(5)}
    here = {i: device.device_array(block) for i, block in shards.items()}
    return {**here, 3: shards[3]} if first else {**shards, 3: here[3]}


MIXTURES: dict[str, tuple[Call, str]] = {
    "data": (
        lambda d, w: CODEC.encode([d.device_array(w[0]), *w[1:4]]),
        "block 1 of data is not in device memory, as others are; copy one to where the others are",
    ),
    "out of encode": (
        lambda d, w: CODEC.encode(d.device_array(w[:4]), np.zeros((3, LENGTH), np.uint8)),
        "out is not in device memory, as others are",
    ),
    "out of host data": (
        lambda d, w: CODEC.encode(w[:4], zeros(d, 3, LENGTH)),
        "out is in device memory, and what is done here with it is done in host memory; copy it",
    ),
    "a block of host data": (
        lambda d, w: CODEC.encode([*w[:3], d.device_array(w[3])]),
        "block 3 of data is in device memory",
    ),
    "decode": (lambda d, w: CODEC.decode(_mixed(d, w, 1)), "shard 3 is not in device memory, as others are"),
    "decode of host shards": (lambda d, w: CODEC.decode(_mixed(d, w, 0)), "shard 3 is in device memory"),
    "reconstruct": (lambda d, w: CODEC.reconstruct(_mixed(d, w, 1), [6]), "shard 3 is not in device memory"),
    "verify": (lambda d, w: CODEC.verify(_mixed(d, w, 1)), "shard 3 is not in device memory"),
    "out of decode": (
        lambda d, w: CODEC.decode(shards_of(d, w), [*[zeros(d, LENGTH)] * 3, np.zeros(LENGTH, np.uint8)]),
        "block 3 of out is not in device memory",
    ),
    "old block": (
        lambda d, w: CODEC.update(w[4:], 0, d.device_array(w[0]), d.device_array(w[1])),
        "parity is not in device memory",
    ),
    "new block": (
        lambda d, w: CODEC.update(d.device_array(w[4:]), 0, d.device_array(w[0]), w[1]),
        "the new block is not in device memory",
    ),
    "parity": (lambda d, w: CODEC.update(d.device_array(w[4:]), 0, w[0], w[1]), "parity is in device memory"),
    "progressive": (
        lambda d, w: CODEC.progressive(LENGTH).add(0, d.device_array(w[0])),
        "shard 0 is in device memory, and what is done here with it is done in host memory",
    ),
    "split": (lambda d, w: CODEC.split(d.device_array(w[0])), "the data is in device memory"),
    "join": (lambda d, w: CODEC.join(d.device_array(w[:4]), 7), "the blocks is in device memory"),
    "part": (lambda d, w: CODEC.decode_range(shards_of(d, w), 0, 7), "shard 0 is in device memory"),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_blocks_of_two_places_are_refused(device: ShimDevice, name: str) -> None:
    call, message = MIXTURES[name]
    with pytest.raises(BlockError, match=message):
        call(device, whole_of())
    assert device.launches == []


WRONG: dict[str, tuple[Call, type[Exception], str]] = {
    "count of data": (lambda d, w: CODEC.encode(d.device_array(w[:3])), BlockError, "data has 3 blocks, not 4"),
    "count of out": (
        lambda d, w: CODEC.encode(d.device_array(w[:4]), zeros(d, 2, LENGTH)), BlockError, "out has 2 blocks, not 3",
    ),
    "shape of out": (
        lambda d, w: CODEC.decode(shards_of(d, w), zeros(d, 1, 4, LENGTH)),
        BlockError,
        r"the blocks of out have shape \(1, 77\), others \(77,\)",
    ),
    "shapes": (
        lambda d, w: CODEC.decode({**shards_of(d, w), 2: zeros(d, 5)}),
        BlockError,
        r"shard 2 has shape \(5,\), shard 0 \(77,\); they must have the same",
    ),
    "length": (
        lambda d, w: Codec(2, 1, engine="numpy").encode(d.device_array(w[:2])),  # type: ignore[call-overload]
        BlockError,
        "blocks have 77 bytes, which is no multiple of 512; pad them with zeros to 512 bytes",
    ),
    "overlap": (
        lambda d, w: CODEC.encode((a := d.device_array(w))[:4], a[1:4]), BlockError, "overlaps input block 1",
    ),
    "overlap of outputs": (
        lambda d, w: CODEC.decode(shards_of(d, w), [zeros(d, LENGTH)] * 4), BlockError, "output blocks overlap",
    ),
    "overlap of a batch's outputs": (
        lambda d, w: CODEC.encode(d.device_array(np.stack([w[:4]] * 2)), [zeros(d, 2, LENGTH)] * 3),
        BlockError,
        "output blocks overlap",
    ),
    "overlap of parity": (
        lambda d, w: CODEC.update((a := d.device_array(w))[4:], 0, a[4], a[1]), BlockError, "overlaps input block 0",
    ),
    "index": (lambda d, w: CODEC.decode({9: d.device_array(w[0])}), ParameterError, "there is no shard 9 here"),
    "index of parity": (
        lambda d, w: CODEC.update({1: (a := d.device_array(w))[1]}, 0, a[2], a[3]), ParameterError, "4 to 6",
    ),
    "index of data": (
        lambda d, w: CODEC.update((a := d.device_array(w))[4:], 4, a[2], a[3]), ParameterError, "no shard 4 here",
    ),
    "too few": (lambda d, w: CODEC.decode(shards_of(d, w, (0, 5))), UnrecoverableError, "any k = 4 shards are needed"),
    "a code of bits": (
        lambda d, w: Codec.preset("jerasure-liberation", 4, 2, engine="numpy").encode(  # type: ignore[call-overload]
            d.device_array(np.resize(w, (4, 14336)))
        ),
        EngineUnavailableError,
        "the code is one of bits, for which the cuda engine has no kernels; copy the arrays to the host",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(device: ShimDevice, name: str) -> None:
    call, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        call(device, whole_of())
    assert device.launches == []


def test_the_engine_is_that_of_the_arrays_device(device: ShimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ShimDevice(90, beside=device)
    second = CudaEngine(Context(other))
    first = CudaEngine(Context(device), {1: second}.__getitem__)
    monkeypatch.setitem(registry._loaded, "cuda", first)
    assert CodecCheck(other, CODEC, whole_of(2)).all()
    assert other.launches
    assert device.launches == []
    whole = whole_of()
    here, there = device.device_array(whole[0]), other.device_array(whole[1])
    with pytest.raises(BlockError, match="shard 1 is on device 1, shard 0 on device 0; copy one to the other"):
        CODEC.decode({0: here, 1: there, 4: here, 5: here})
    with pytest.raises(BlockError, match="out is on device 1, data on device 0"):
        CODEC.encode(device.device_array(whole[:4]), other.device_array(whole[4:]))
    monkeypatch.setitem(registry._loaded, "cuda", CudaEngine(Context(device)))
    with pytest.raises(BlockError, match="blocks are on device 1, but the engine runs on device 0"):
        CODEC.encode(other.device_array(whole[:4]))


def test_without_the_engine_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = EngineUnavailableError("cupy is not installed: pip install 'gfcode[cuda]'")
    monkeypatch.setitem(registry._loaded, "cuda", reason)
    with pytest.raises(EngineUnavailableError, match="engine 'cuda' cannot be used here: cupy is not installed"):
        CODEC.encode(DeviceArray(random_bytes(4, 8)))
