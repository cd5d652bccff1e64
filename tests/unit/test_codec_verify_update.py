"""Verifying what belongs together, and patching parities for one changed data block."""

from itertools import combinations

import numpy as np
import pytest

from gfcode.codec import Codec, spans
from gfcode.errors import BlockError, ParameterError
from tests.unit.codec_support import Bytes, RecordingEngine, address, all_shards, random_data

CODEC = Codec(4, 3)


def test_shards_that_belong_together_are_consistent() -> None:
    shards = all_shards(CODEC, random_data(CODEC))
    for count in (5, 6, 7):
        for kept in combinations(range(7), count):
            report = CODEC.verify({i: shards[i] for i in kept})
            assert report.consistent
            assert report
            assert (report.basis, report.compared) == (kept[:4], kept[4:])
            assert (report.disagreeing, report.stripes) == ((), ())


@pytest.mark.parametrize("wrong", range(7))
@pytest.mark.parametrize("position", [0, 511, 512, 1023])
def test_any_wrong_byte_is_found(wrong: int, position: int) -> None:
    shards = all_shards(CODEC, random_data(CODEC))
    shards[wrong][position] ^= 0x10
    report = CODEC.verify(shards)
    assert not report
    assert report.disagreeing == ((wrong,) if wrong >= 4 else (4, 5, 6))
    assert report.stripes == (0,)


def test_wrong_stripes_of_a_batch_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for span in (1 << 17, 1024, 3000):
        monkeypatch.setattr(spans, "_SPAN", span)
        shards = all_shards(CODEC, random_data(CODEC, 3, stripes=9))
        assert CODEC.verify(shards)
        shards[5][2, 700] ^= 1
        shards[6][7, 1535] ^= 1
        report = CODEC.verify({i: shards[i] for i in (0, 1, 2, 3, 5, 6)})
        assert (report.disagreeing, report.stripes) == ((5, 6), (2, 7))
        report = CODEC.verify({i: shards[i] for i in (0, 1, 2, 3, 4, 5)})
        assert (report.disagreeing, report.stripes) == ((5,), (2,))


def test_verify_copies_no_shard_and_writes_none() -> None:
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    shards = all_shards(CODEC, random_data(CODEC))
    for block in shards.values():
        block.flags.writeable = False
    assert codec.verify({i: block.data for i, block in shards.items()})
    ((inputs, _),) = engine.calls
    assert inputs == [[shards[i].__array_interface__["data"][0] for i in range(4)]]


def test_there_must_be_something_to_compare() -> None:
    shards = all_shards(CODEC, random_data(CODEC))
    with pytest.raises(BlockError, match="more than k = 4 shards are needed to compare any, and 4 are given"):
        CODEC.verify({i: shards[i] for i in (0, 1, 2, 6)})
    with pytest.raises(BlockError, match="and 0 are given"):
        CODEC.verify({})
    empty = dict.fromkeys(range(7), b"")
    assert CODEC.verify(empty)
    assert CODEC.verify({i: np.zeros((0, 512), np.uint8) for i in range(7)})


@pytest.mark.parametrize("layout", ["packets", "words"])
@pytest.mark.parametrize("span", [1 << 17, 600])
def test_updated_parity_is_the_parity_of_the_new_data(layout: str, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_SPAN", span)
    codec = Codec(4, 3, layout=layout)  # type: ignore[arg-type]
    for stripes in (None, 1, 5):
        data = random_data(codec, 1536 // codec.block_multiple, stripes)
        parity = codec.encode(data)
        for index in range(4):
            new = random_data(codec, 1536 // codec.block_multiple, stripes, seed=index + 1)[..., 0, :]
            old = data[..., index, :].copy()
            assert codec.update(parity, index, old, new) is None  # type: ignore[func-returns-value]
            data[..., index, :] = new
            assert (parity == codec.encode(data)).all()


def test_update_of_every_form_of_parity() -> None:
    data = random_data(CODEC)
    new = random_data(CODEC, seed=1)[0]
    changed = data.copy()
    changed[2] = new
    wanted = CODEC.encode(changed)
    parity = list(CODEC.encode(data))
    CODEC.update(parity, 2, data[2].tobytes(), memoryview(new))
    assert all((parity[i] == wanted[i]).all() for i in range(3))
    buffers = [bytearray(row) for row in CODEC.encode(data)]
    CODEC.update(buffers, np.int64(2), data[2], new)  # type: ignore[arg-type]
    assert [bytes(block) for block in buffers] == [row.tobytes() for row in wanted]
    some = {6: CODEC.encode(data)[2], 4: CODEC.encode(data)[0]}
    CODEC.update(some, 2, data[2], new)
    assert (some[6] == wanted[2]).all()
    assert (some[4] == wanted[0]).all()
    CODEC.update({}, 2, data[2], new)


def test_update_reads_the_block_before_and_after_in_place_and_no_other_data() -> None:
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    data = random_data(codec)
    parity = CODEC.encode(data)
    codec.update(parity, 1, data[1], data[1])
    codec.update(parity, 1, data[1], data[0])
    (product,) = engine.products  # prepared once, for both
    assert product.matrix == codec.parity.columns([1, 1])
    before, other = address(data[1]), address(data[0])
    assert [inputs for inputs, _ in engine.calls] == [[[before, before]], [[before, other]]]


def blocks(length: int = 1024) -> Bytes:
    return np.zeros((3, length), np.uint8)


@pytest.mark.parametrize(
    ("parity", "index", "old", "new", "error", "message"),
    [
        (blocks(), 4, bytes(1024), bytes(1024), ParameterError, "there is no shard 4 here: indices are 0 to 3"),
        (blocks(), -1, bytes(1024), bytes(1024), ParameterError, "there is no shard -1"),
        (
            blocks(),
            0,
            bytes(512),
            bytes(1024),
            BlockError,
            r"the new block has shape \(1024,\), the old block \(512,\)",
        ),
        (blocks(), 0, bytes(512), bytes(512), BlockError, r"shard 4 has shape \(1024,\), the old block \(512,\)"),
        (blocks(1000), 0, bytes(1000), bytes(1000), BlockError, "no multiple of 512"),
        (blocks()[:2], 0, bytes(1024), bytes(1024), BlockError, "parity has shape"),
        ([bytes(1024)] * 3, 0, bytes(1024), bytes(1024), BlockError, "shard 4 is read-only"),
        (
            {3: bytearray(1024)},
            0,
            bytes(1024),
            bytes(1024),
            ParameterError,
            "there is no shard 3 here: indices are 4 to",
        ),
        ({7: bytearray(1024)}, 0, bytes(1024), bytes(1024), ParameterError, "there is no shard 7"),
        (blocks(), 0, None, bytes(1024), BlockError, "the old block is a NoneType"),
    ],
)
def test_updates_that_make_no_sense_are_refused(
    parity: object, index: int, old: object, new: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        CODEC.update(parity, index, old, new)  # type: ignore[arg-type]


def test_update_refuses_overlaps_and_then_changes_nothing() -> None:
    parity = random_data(Codec(3, 1))
    before = parity.copy()
    with pytest.raises(BlockError, match="overlaps input block 0"):
        CODEC.update(parity, 0, parity[1], bytes(1024))
    with pytest.raises(BlockError, match="overlaps input block 1"):
        CODEC.update(parity, 0, bytes(1024), parity.reshape(-1)[500:1524])
    with pytest.raises(BlockError, match="overlap each other"):
        CODEC.update([parity[0], parity[1], parity[0]], 0, bytes(1024), bytes([1]) * 1024)
    assert (parity == before).all()
