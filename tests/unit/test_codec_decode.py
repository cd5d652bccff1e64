"""Decoding and reconstructing: only what is needed is read and computed, and given shards are taken as they are."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.errors import BlockError, ParameterError, UnrecoverableError
from tests.unit.codec_support import BUFFERS, Bytes, RecordingEngine, address, all_shards, random_data

CODEC = Codec(4, 3)


@pytest.fixture
def data() -> Bytes:
    return random_data(CODEC)


@pytest.fixture
def shards(data: Bytes) -> dict[int, Bytes]:
    return all_shards(CODEC, data)


def without(shards: dict[int, Bytes], *lost: int) -> dict[int, Bytes]:
    return {i: block for i, block in shards.items() if i not in lost}


def test_exactly_k_and_more_than_k_shards(data: Bytes, shards: dict[int, Bytes]) -> None:
    for count in (4, 5, 6, 7):
        for kept in combinations(range(7), count):
            decoded = CODEC.decode({i: shards[i] for i in kept})
            assert decoded.shape == data.shape
            assert (decoded == data).all(), kept


def test_the_order_of_shards_does_not_matter(data: Bytes, shards: dict[int, Bytes]) -> None:
    assert (CODEC.decode({i: shards[i] for i in (6, 2, 4, 1)}) == data).all()
    numpy_integers: Any = {np.int64(i): shards[i] for i in (6, 2, 4, 1)}
    assert (CODEC.decode(numpy_integers) == data).all()


def test_batches(data: Bytes) -> None:
    many = random_data(CODEC, 3, stripes=5, seed=4)
    shards = all_shards(CODEC, many)
    assert shards[0].shape == (5, 1536)
    decoded = CODEC.decode(without(shards, 0, 2, 5))
    assert decoded.shape == many.shape
    assert (decoded == many).all()
    assert (CODEC.reconstruct(without(shards, 0, 2, 5), [5, 0])[5] == shards[5]).all()
    wide = {i: np.repeat(block, 2, axis=0)[::2] for i, block in without(shards, 0, 2, 5).items()}
    assert (CODEC.decode(wide) == many).all()
    assert CODEC.decode({i: np.zeros((0, 512), np.uint8) for i in range(3, 7)}).shape == (0, 4, 512)


@pytest.mark.parametrize("kind", BUFFERS)
def test_every_kind_of_buffer_is_read_in_place(kind: str, data: Bytes, shards: dict[int, Bytes]) -> None:
    make, _ = BUFFERS[kind]
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    given = {i: make(shards[i].tobytes()) for i in (1, 2, 3, 6)}
    assert (codec.decode(given) == data).all()
    ((inputs, outputs),) = engine.calls
    assert inputs == [[address(np.frombuffer(given[i], np.uint8)) for i in (1, 2, 3, 6)]]
    assert len(outputs[0]) == 1
    assert all(bytes(block) == shards[i].tobytes() for i, block in given.items())


def test_only_what_is_missing_is_computed(data: Bytes, shards: dict[int, Bytes]) -> None:
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    assert (codec.decode(shards) == data).all()
    assert engine.calls == []
    codec.decode(without(shards, 2))
    assert engine.products[-1].matrix.shape == (1, 4)
    codec.decode(without(shards, 1, 2, 5))
    assert engine.products[-1].matrix.shape == (2, 4)


def test_a_single_loss_is_a_plain_xor_where_a_parity_of_ones_is_there(shards: dict[int, Bytes]) -> None:
    engine = RecordingEngine()
    for family in ("powers", "cauchy-good", "vandermonde"):
        Codec(4, 3, matrix=family, engine=engine).reconstruct(without(shards, 2), [2])
        assert engine.products[-1].matrix.values.tolist() == [[1, 1, 1, 1]]


def test_results_lie_where_out_says(data: Bytes, shards: dict[int, Bytes]) -> None:
    given = without(shards, 1, 3, 4)
    out = np.full((4, 1024), 0xA5, np.uint8)
    assert CODEC.decode(given, out=out) is out
    assert (out == data).all()
    separate = [bytearray(1024) for _ in range(4)]
    assert CODEC.decode(given, out=separate) is separate
    assert [bytes(block) for block in separate] == [row.tobytes() for row in data]
    target = np.full((3, 1024), 0xA5, np.uint8)
    made = CODEC.reconstruct(given, [4, 0, 3], out=target)
    assert list(made) == [4, 0, 3]
    for i, shard in enumerate((4, 0, 3)):
        assert (target[i] == shards[shard]).all()
        assert address(made[shard]) == address(target[i])


def test_given_data_may_already_lie_in_out(data: Bytes, shards: dict[int, Bytes]) -> None:
    out = data.copy()
    out[1] = out[3] = 0xA5
    given = {0: out[0], 2: out[2], 4: shards[4], 6: shards[6]}
    before = {i: block.copy() for i, block in given.items()}
    assert CODEC.decode(given, out=out) is out
    assert (out == data).all()
    assert all((given[i] == block).all() for i, block in before.items())


def test_a_batch_of_given_data_may_already_lie_in_out() -> None:
    many = random_data(CODEC, stripes=3)
    shards = all_shards(CODEC, many)
    out = many.copy()
    out[:, 2] = 0
    CODEC.decode({0: out[:, 0], 1: out[:, 1], 3: out[:, 3], 5: shards[5]}, out=out)
    assert (out == many).all()


def test_out_must_not_overlap_in_any_other_way(shards: dict[int, Bytes]) -> None:
    memory = np.zeros((8, 1024), np.uint8)
    out = memory[:4]
    for i in (0, 2):
        out[i] = shards[i]
    memory[5], memory[6] = shards[4], shards[6]
    swapped = {0: out[2], 2: out[0], 4: memory[5], 6: memory[6]}
    shifted = {0: memory.reshape(-1)[5 : 5 + 1024], 2: out[2], 4: memory[5], 6: memory[6]}
    lost = {0: out[0], 2: out[2], 4: out[1], 6: memory[6]}
    unread = {0: out[0], 2: out[2], 4: memory[5], 5: memory[6], 6: out[3]}
    assert CODEC.plan(unread, [1, 3]).sources == (0, 2, 4, 5)
    before = memory.copy()
    for given in (swapped, shifted, lost, unread):
        with pytest.raises(BlockError, match="overlap"):
            CODEC.decode(given, out=out)
    with pytest.raises(BlockError, match="overlap"):
        CODEC.reconstruct(unread, [1], out=[out[3]])
    with pytest.raises(BlockError, match="overlap each other"):
        CODEC.decode({i: shards[i] for i in range(3, 7)}, out=[memory[0], memory[1], memory[1], memory[2]])
    assert (memory == before).all()


def test_without_out_a_given_shard_is_returned_as_it_was_given(shards: dict[int, Bytes]) -> None:
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    wrong: Bytes = np.bitwise_xor(shards[1], np.uint8(1))  # reconstruct takes what it is given, and verifies nothing
    made = codec.reconstruct({**without(shards, 0), 1: wrong}, [1, 6])
    assert engine.calls == []
    assert address(made[1]) == address(wrong)
    assert address(made[6]) == address(shards[6])
    view = codec.reconstruct({**without(shards, 1, 2), 3: shards[3].tobytes()}, [3])[3]
    assert not view.flags.writeable
    assert (view == shards[3]).all()


def test_reconstruct_computes_only_what_is_wanted(shards: dict[int, Bytes]) -> None:
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    made = codec.reconstruct(without(shards, 0, 3, 5), [5, 3])
    assert list(made) == [5, 3]
    assert all((made[i] == shards[i]).all() for i in made)
    (product,) = engine.products
    assert product.matrix.shape == (2, 4)
    assert codec.reconstruct(without(shards, 0, 3, 5), []) == {}
    assert len(engine.calls) == 1


def test_wanted_shards_that_are_given_need_no_k_shards(shards: dict[int, Bytes]) -> None:
    made = CODEC.reconstruct({5: shards[5]}, [5])
    assert (made[5] == shards[5]).all()
    with pytest.raises(UnrecoverableError, match="any k = 4 shards are needed and 1 are there"):
        CODEC.reconstruct({5: shards[5]}, [5, 0])


@pytest.mark.parametrize("lost", [(0, 1, 2, 3), (0, 2, 4, 6), (0, 1, 2, 3, 4, 5)])
def test_fewer_than_k_shards_name_what_is_missing(lost: tuple[int, ...], shards: dict[int, Bytes]) -> None:
    listed = ", ".join(map(str, lost))
    message = f"any k = 4 shards are needed and {7 - len(lost)} are there: missing are shards {listed}"
    with pytest.raises(UnrecoverableError, match=message):
        CODEC.decode(without(shards, *lost))
    with pytest.raises(UnrecoverableError, match=message):
        CODEC.reconstruct(without(shards, *lost), [lost[0]])


def test_no_shards_at_all() -> None:
    with pytest.raises(UnrecoverableError, match="no shards are given; any k = 4 are needed"):
        CODEC.decode({})
    with pytest.raises(UnrecoverableError, match="no shards are given"):
        CODEC.reconstruct({}, [1])


def test_long_lists_of_missing_shards_are_cut_short() -> None:
    codec = Codec(30, 10)
    with pytest.raises(UnrecoverableError, match=r"missing are shards 1, 2, 3, .* 24 and 15 more$"):
        codec.decode({0: bytes(512)})


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (7, "there is no shard 7 here: indices are 0 to 6"),
        (-1, "there is no shard -1 here"),
        ("0", "'0' is no shard index: it must be an integer"),
        (1.5, "1.5 is no shard index"),
        (None, "None is no shard index"),
    ],
)
def test_indices_that_are_none_are_refused(index: Any, message: str, shards: dict[int, Bytes]) -> None:
    given = {**shards, index: shards[0]}
    with pytest.raises(ParameterError, match=message):
        CODEC.decode(given)
    with pytest.raises(ParameterError, match=message):
        CODEC.reconstruct(shards, [0, index])
    with pytest.raises(ParameterError, match=message):
        CODEC.plan([0, 1, 2, index], [3])


def test_an_index_given_twice_is_refused(shards: dict[int, Bytes]) -> None:
    with pytest.raises(ParameterError, match="shard 3 is given twice"):
        CODEC.reconstruct(shards, [3, 0, 3])
    with pytest.raises(ParameterError, match="shard 1 is given twice"):
        CODEC.plan([0, 1, 2, 1], [3])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (bytes(512), r"shard 5 has shape \(512,\), shard 1 \(1024,\)"),
        (np.zeros((1, 1024), np.uint8), r"shard 5 has shape \(1, 1024\)"),
        (None, "shard 5 is a NoneType, not an array of uint8 or a buffer"),
        (7, "shard 5 is a int"),
        ([1, 2, 3], "shard 5 is a list"),
        (np.zeros(1024, np.int8), "shard 5 is an array of int8"),
        (np.zeros(128), "shard 5 is an array of float64"),
        (np.zeros((2, 2, 256), np.uint8), "shard 5 is an array of uint8 of shape"),
        (np.zeros(2048, np.uint8)[::2], "the bytes of shard 5 are not contiguous"),
    ],
)
def test_blocks_that_are_none_are_named(wrong: Any, message: str, shards: dict[int, Bytes]) -> None:
    given = {1: shards[1], 2: shards[2], 3: shards[3], 5: wrong}
    with pytest.raises(BlockError, match=message):
        CODEC.decode(given)
    with pytest.raises(BlockError, match=message):
        CODEC.reconstruct(given, [0])


def test_shards_are_a_mapping(data: Bytes) -> None:
    with pytest.raises(BlockError, match="mapping of shard index to block, not as a ndarray"):
        CODEC.decode(data)  # type: ignore[call-overload]
    with pytest.raises(BlockError, match="not as a list"):
        CODEC.reconstruct(list(data), [0])  # type: ignore[arg-type]


def test_lengths_that_are_no_whole_strips_are_refused() -> None:
    with pytest.raises(BlockError, match="no multiple of 512; pad them with zeros to 1024 bytes"):
        CODEC.decode({i: bytes(1000) for i in range(4)})


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((3, 1024), np.uint8), "out has shape"),
        (np.zeros((4, 512), np.uint8), r"the blocks of out have shape \(512,\), the inputs \(1024,\)"),
        (np.zeros((1, 4, 1024), np.uint8), r"the blocks of out have shape \(1, 1024\)"),
        ([bytearray(1024)] * 3, "out has 3 blocks, not 4"),
        ([bytes(1024)] * 4, "block 0 of out is read-only"),
        (np.broadcast_to(np.zeros(1024, np.uint8), (4, 1024)), "block 0 of out is read-only"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(out: object, message: str, shards: dict[int, Bytes]) -> None:
    with pytest.raises(BlockError, match=message):
        CODEC.decode(without(shards, 1), out=out)


def test_new_blocks_are_aligned(shards: dict[int, Bytes]) -> None:
    decoded = CODEC.decode(without(shards, 0, 1))
    assert all(address(row) % 64 == 0 for row in decoded)
    assert address(CODEC.reconstruct(without(shards, 0, 1), [1])[1]) % 64 == 0
