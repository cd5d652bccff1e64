"""Verbs beside encode and decode: progressive parity, parts, repair plans, wrong shards, split and join."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfcode.codec import Codec, spans
from gfcode.errors import BlockError, ParameterError, UnrecoverableError
from tests.unit.codec_support import BUFFERS, RecordingEngine, all_shards, random_data

CODEC = Codec(4, 3)
WORDS = Codec(5, 2, layout="words")


@pytest.mark.parametrize("stripes", [None, 1, 5])
@pytest.mark.parametrize("span", [1 << 17, 700])
def test_parity_accumulates_in_any_order(stripes: int | None, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_SPAN", span)
    data = random_data(CODEC, 3, stripes)
    for seed in range(3):
        order = random.Random(seed).sample(range(4), 4)
        out = None if seed else np.full((*data.shape[:-2], 3, 1536), 0xA5, np.uint8)
        progressive = CODEC.progressive(1536, stripes, out)
        assert out is None or progressive.parity is out
        for number, index in enumerate(order):
            assert progressive.missing == tuple(sorted(order[number:]))
            progressive.add(index, np.ascontiguousarray(data[..., index, :]))
            so_far = data.copy()
            so_far[..., order[number + 1 :], :] = 0
            assert (progressive.parity == CODEC.encode(so_far)).all()
        assert progressive.missing == ()
    assert repr(progressive) == "<parity of 4 of 4 data shards>"


def test_shards_added_from_threads_and_buffers() -> None:
    codec = Codec(64, 3)
    data = random_data(codec)
    out = [bytearray(1024) for _ in range(3)]
    progressive = codec.progressive(1024, out=out)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: progressive.add(i, data[i].tobytes()), range(64)))
    assert [bytes(block) for block in out] == [row.tobytes() for row in codec.encode(data)]


def test_what_progressive_parity_refuses() -> None:
    progressive = CODEC.progressive(1024)
    progressive.add(1, bytes(1024))
    for index, block, error, message in [
        (1, bytes(1024), ParameterError, "shard 1 was added before"),
        (4, bytes(1024), ParameterError, "there is no shard 4 here: indices are 0 to 3"),
        (0, bytes(512), BlockError, r"shard 0 has shape \(512,\), the parity's blocks \(1024,\)"),
        (0, progressive.parity[1], BlockError, "overlaps input block 0"),
        (0, None, BlockError, "shard 0 is a NoneType"),
    ]:
        with pytest.raises(error, match=message):
            progressive.add(index, block)
    assert progressive.missing == (0, 2, 3)
    assert not progressive.parity.any()
    with pytest.raises(BlockError, match="no multiple of 512"):
        CODEC.progressive(1000)
    refused: list[tuple[Any, str]] = [
        ((-512,), "length must not be negative: -512"),
        ((512.0,), "length must be an integer, not 512.0"),
        ((512, -1), "stripes must not be negative: -1"),
        ((512, "2"), "stripes must be an integer, not '2'"),
    ]
    for arguments, message in refused:
        with pytest.raises(ParameterError, match=message):
            CODEC.progressive(*arguments)
    memory = np.zeros(1024, np.uint8)
    with pytest.raises(BlockError, match="overlap each other"):
        CODEC.progressive(1024, out=[memory, memory, np.zeros(1024, np.uint8)])
    with pytest.raises(BlockError, match="out has 2 blocks, not 3"):
        CODEC.progressive(1024, out=[memory, memory])


def locations(codec: Codec, wrong: dict[int, list[int]], kept: tuple[int, ...]) -> Any:
    shards = all_shards(codec, random_data(codec, 4, stripes=3))
    for shard, places in wrong.items():
        for place in places:
            shards[shard][place // 2048, place % 2048] ^= 0x41
    return codec.verify({i: shards[i] for i in kept})


@pytest.mark.parametrize("wrong", range(7))
def test_one_wrong_shard_is_named(wrong: int) -> None:
    report = locations(CODEC, {wrong: [0, 2047, 4096]}, tuple(range(7)))
    assert (report.wrong, report.located, report.stripes) == ((wrong,), True, (0, 2))
    assert report.wrong_in == {0: (wrong,), 2: (wrong,)}
    assert not report


def test_half_of_the_spare_shards_may_be_wrong_anywhere() -> None:
    codec = Codec(5, 6)
    for count in (1, 2, 3):
        for seed in range(12):
            choice = random.Random(seed)
            wrong = sorted(choice.sample(range(11), count))
            report = locations(codec, {shard: [100, choice.randrange(6144)] for shard in wrong}, tuple(range(11)))
            assert (report.wrong, report.located) == (tuple(wrong), True)
    report = locations(codec, {0: [7], 1: [7], 2: [7], 9: [7]}, tuple(range(11)))
    assert not report.located or report.wrong != (0, 1, 2)


def test_different_shards_may_be_wrong_at_different_places() -> None:
    report = locations(CODEC, {0: [10], 3: [600], 5: [2100], 6: [5000]}, tuple(range(7)))
    assert (report.wrong, report.located) == ((0, 3, 5, 6), True)
    assert report.wrong_in == {0: (0, 3), 1: (5,), 2: (6,)}


def test_too_little_redundancy_accuses_nobody() -> None:
    report = locations(CODEC, {2: [10]}, (0, 1, 2, 3, 4))
    assert (report.consistent, report.wrong, report.located) == (False, (), False)
    report = locations(CODEC, {}, (0, 1, 2, 3, 4))
    assert (report.consistent, report.wrong, report.located, report.wrong_in) == (True, (), True, {})


@pytest.mark.parametrize("name", ["isa-l-rs", "jerasure-liberation"])
def test_presets_locate_too(name: str) -> None:
    codec = Codec.preset(name, 4, 4, allow_uncertified=True) if name == "isa-l-rs" else Codec.preset(name, 4, 2, w=5)
    shards = all_shards(codec, random_data(codec, 8))
    shards[1][3] ^= 1
    report = codec.verify(shards)
    assert (report.wrong, report.located) == ((1,), True)


def data_of(codec: Codec, stripes: int | None) -> tuple[bytes, dict[int, Any]]:
    data = random_data(codec, 3 if codec is CODEC else 1500, stripes)
    return data.tobytes(), all_shards(codec, data)


@pytest.mark.parametrize("stripes", [None, 3])
@pytest.mark.parametrize("codec", [CODEC, WORDS], ids=["packets", "words"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_part_from_any_k_shards(codec: Codec, stripes: int | None, data: st.DataObject) -> None:
    content, shards = data_of(codec, stripes)
    lost = data.draw(st.sets(st.integers(0, codec.n - 1), max_size=codec.m))
    offset = data.draw(st.integers(0, len(content)))
    length = data.draw(st.integers(0, len(content) - offset))
    kept = {i: block for i, block in shards.items() if i not in lost}
    assert codec.decode_range(kept, offset, length).tobytes() == content[offset : offset + length]
    out = bytearray(length)
    assert codec.decode_range(kept, offset, length, out) is out
    assert out == content[offset : offset + length]


def test_parts_touch_only_their_strips() -> None:
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    content, shards = data_of(CODEC, None)
    base = {i: block.__array_interface__["data"][0] for i, block in shards.items()}
    kept = {i: shards[i] for i in (0, 2, 3, 5)}
    assert codec.decode_range({3: shards[3]}, 3 * 1536 + 7, 90).tobytes() == content[4615:4705]  # sound: one is enough
    assert engine.calls == []
    codec.decode_range(kept, 1536 + 520, 100)
    ((inputs, outputs),) = engine.calls
    assert inputs == [[base[i] + 512 for i in (0, 2, 3, 5)]]
    assert len(outputs[0]) == 1
    with pytest.raises(UnrecoverableError):
        codec.decode_range({i: shards[i] for i in (0, 2, 3)}, 1500, 100)
    assert codec.decode_range({i: shards[i] for i in (0, 2, 3)}, 1400, 136).tobytes() == content[1400:1536]


def test_parts_that_there_are_not() -> None:
    content, shards = data_of(CODEC, None)
    for offset, length in ((0, len(content) + 1), (len(content), 1), (-1, 3), (3, -1), (1.5, 2), (None, 1)):
        with pytest.raises(ParameterError):
            CODEC.decode_range(shards, offset, length)  # type: ignore[arg-type]
    with pytest.raises(BlockError, match=r"out has shape \(3,\), not \(4,\)"):
        CODEC.decode_range(shards, 0, 4, bytearray(3))
    with pytest.raises(BlockError, match="out is read-only"):
        CODEC.decode_range(shards, 0, 4, bytes(4))
    with pytest.raises(BlockError, match="out overlaps shard 2"):
        CODEC.decode_range(shards, 0, 4, shards[2][:4])


def test_repair_plans_say_what_to_read() -> None:
    _, shards = data_of(CODEC, None)
    for lost in (lost for count in (1, 2, 3) for lost in combinations(range(7), count)):
        plan = CODEC.repair_plan(lost, 1536)
        assert plan.lost == lost
        assert len(plan.reads) == 4
        assert plan.sources == tuple(read.shard for read in plan.reads)
        assert not set(plan.sources) & set(lost)
        assert (plan.bytes_read, plan.bytes_made) == (4 * 1536, len(lost) * 1536)
        part = CODEC.repair_plan(lost, 1536, within=(600, 700))
        assert (part.offset, part.length, part.bytes_read) == (512, 512, 2048)
        blocks = {read.shard: shards[read.shard][read.offset : read.offset + read.length] for read in part.reads}
        made = CODEC.reconstruct(blocks, part.lost)
        assert all((made[i] == shards[i][512:1024]).all() for i in lost)
    assert CODEC.repair_plan([0], 1536, available=[1, 2, 5, 6, 3]).sources == (1, 2, 3, 5)
    assert CODEC.repair_plan([0], 1536, within=(9, 9)).reads == ()
    assert CODEC.repair_plan([], 1536).bytes_read == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0, 1, 2, 3], 512, None, None), UnrecoverableError, "any k = 4 shards are needed and 3 are there"),
        (([7], 512, None, None), ParameterError, "there is no shard 7"),
        (([0], 100, None, None), BlockError, "no multiple of 512"),
        (([0], -512, None, None), ParameterError, "length must not be negative"),
        (([0], 512, [0, 1, 2, 3], None), ParameterError, "shard 0 is lost and available"),
        (([0], 512, None, (0, 513)), ParameterError, "there are no bytes 0 to 513 in shards of 512 bytes"),
        (([0], 512, None, (9, 3)), ParameterError, "there are no bytes 9 to 3"),
        (([0], 512, None, 9), ParameterError, "within is 9, not the first byte and the end"),
        (([0], 512, None, (0, 9, 12)), ParameterError, r"within is \(0, 9, 12\), not"),
        (([0], 512, 5, None), ParameterError, "5 are no shard indices"),
        ((None, 512, None, None), ParameterError, "None are no shard indices"),
    ],
)
def test_repairs_that_cannot_be(arguments: Any, error: type[Exception], message: str) -> None:
    lost, length, available, within = arguments
    with pytest.raises(error, match=message):
        CODEC.repair_plan(lost, length, available=available, within=within)


@pytest.mark.parametrize("codec", [CODEC, WORDS, Codec(3, 1)], ids=repr)
@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 9000), strips=st.integers(1, 3))
def test_split_and_join_undo_each_other(codec: Codec, size: int, strips: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    blocks = codec.split(data)
    length = len(blocks[0])
    assert (len(blocks), {len(block) for block in blocks}) == (codec.k, {length})
    assert length % codec.block_multiple == 0
    assert length - codec.block_multiple < -(-size // codec.k)
    assert sum(np.shares_memory(block, data) for block in blocks) == size // length
    assert b"".join(map(bytes, blocks)) == data.tobytes().ljust(codec.k * length, b"\0")
    assert codec.join(blocks, size) == data.tobytes()
    assert codec.join(dict(enumerate(blocks)) | {codec.k: blocks[0]}, size) == data.tobytes()
    assert codec.encode(blocks).shape == (codec.m, length)
    batch = codec.split(data, block=strips * codec.block_multiple)
    assert batch.shape[1:] == (codec.k, strips * codec.block_multiple)
    assert codec.join(batch, size) == data.tobytes()
    out = np.full((len(batch) + 1, *batch.shape[1:]), 0xA5, np.uint8)
    assert codec.split(data, out=out) is out
    assert (out[:-1] == batch).all()
    assert not out[-1].any()
    target = bytearray(size)
    assert codec.join(batch, size, target) is target
    assert target == data.tobytes()


@pytest.mark.parametrize("kind", BUFFERS)
def test_split_takes_every_buffer(kind: str) -> None:
    content = random.Random(1).randbytes(4 * 512)
    blocks = CODEC.split(BUFFERS[kind][0](content))
    assert b"".join(bytes(block) for block in blocks) == content


def test_whole_stripes_are_split_without_a_copy() -> None:
    data = np.arange(3 * 4 * 1024, dtype=np.uint32).astype(np.uint8)
    assert np.shares_memory(CODEC.split(data, block=1024), data)
    assert not np.shares_memory(CODEC.split(data[:-1], block=1024), data)


def test_what_cannot_be_split_or_joined() -> None:
    blocks = CODEC.split(bytes(2048))
    calls: list[tuple[Any, str]] = [
        (lambda: CODEC.split(b""), "there is no data to split"),
        (lambda: CODEC.split(np.zeros((2, 2), np.uint8)), "give it as one row"),
        (lambda: CODEC.split(bytes(9), block=100), "no multiple of 512"),
        (lambda: CODEC.split(bytes(9), block=0), "at least one byte"),
        (lambda: CODEC.split(bytes(9), block=512, out=blocks), "not both"),
        (lambda: CODEC.split(bytes(9000), out=np.zeros((4, 512), np.uint8)), "room for 2048 bytes, and the data has"),
        (lambda: CODEC.split(blocks[0], out=blocks), "block 0 of out"),
        (lambda: CODEC.join(blocks, 2049), "the blocks hold 2048 bytes, not 2049"),
        (lambda: CODEC.join(blocks, -1), "hold 2048 bytes, not -1"),
        (lambda: CODEC.join(blocks[:3], 9), "has 3 blocks, not 4"),
        (lambda: CODEC.join({0: blocks[0], 2: blocks[2], 3: blocks[3]}, 9), "shard 1 is not given"),
        (lambda: CODEC.join(blocks, 9, bytearray(8)), r"out has shape \(8,\), not \(9,\)"),
    ]
    for call, message in calls:
        with pytest.raises(BlockError, match=message):
            call()
    half: Any = 512.5
    with pytest.raises(ParameterError, match=r"block must be an integer, not 512\.5"):
        CODEC.split(bytes(9), block=half)
    with pytest.raises(ParameterError, match=r"size must be an integer, not 512\.5"):
        CODEC.join(blocks, half)
    memory = np.zeros((4, 512), np.uint8)
    with pytest.raises(BlockError, match="out overlaps block 2"):
        CODEC.join(memory, 9, memory[2, :9])
