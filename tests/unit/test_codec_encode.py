"""Encoding blocks that callers own: every shape and kind of buffer, no copies, nothing else written."""

from itertools import pairwise

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.errors import BlockError
from tests.unit.codec_support import BUFFERS, Bytes, RecordingEngine, address, random_data

CODEC = Codec(4, 2)
WORDS = Codec(4, 2, layout="words")


@pytest.mark.parametrize("codec", [CODEC, WORDS], ids=["packets", "words"])
def test_every_form_of_data_gives_the_same_parity(codec: Codec) -> None:
    data = random_data(codec, 512 // codec.block_multiple * 3, stripes=3)
    parity = codec.encode(data)
    assert parity.shape == (3, 2, data.shape[2])
    assert parity.dtype == np.uint8
    for s in range(3):
        single = codec.encode(data[s])
        assert single.shape == (2, data.shape[2])
        assert (single == parity[s]).all()
        assert (codec.encode(list(data[s])) == parity[s]).all()
        assert (codec.encode(tuple(data[s])) == parity[s]).all()
        assert (codec.encode(memoryview(data[s])) == parity[s]).all()
    assert (codec.encode([data[:, i] for i in range(4)]) == parity).all()
    assert (codec.encode(memoryview(data)) == parity).all()  # type: ignore[arg-type]
    assert (codec.encode(np.asfortranarray(data.transpose(2, 0, 1)).transpose(1, 2, 0)) == parity).all()
    padded = np.zeros((3, 4, data.shape[2] + 9), np.uint8)[:, :, 5:-4]
    padded[...] = data
    assert (codec.encode(padded) == parity).all()
    assert (codec.encode(data[::-1]) == parity[::-1]).all()


@pytest.mark.parametrize("kind", BUFFERS)
def test_every_kind_of_buffer_is_read_in_place(kind: str) -> None:
    make, _ = BUFFERS[kind]
    data = random_data(CODEC)
    engine = RecordingEngine()
    codec = Codec(4, 2, engine=engine)
    buffers = [make(block.tobytes()) for block in data]
    parity = codec.encode(buffers)
    assert (parity == CODEC.encode(data)).all()
    ((inputs, outputs),) = engine.calls
    assert inputs == [[address(np.frombuffer(buffer, np.uint8)) for buffer in buffers]]
    assert outputs == [[address(row) for row in parity]]
    assert [bytes(buffer) for buffer in buffers] == [block.tobytes() for block in data]


@pytest.mark.parametrize("kind", [kind for kind, (_, writable) in BUFFERS.items() if writable])
def test_every_writable_buffer_is_written_in_place(kind: str) -> None:
    make, _ = BUFFERS[kind]
    data = random_data(CODEC)
    engine = RecordingEngine()
    codec = Codec(4, 2, engine=engine)
    out = [make(bytes(data.shape[1])) for _ in range(2)]
    assert codec.encode(data, out=out) is out
    assert [bytes(buffer) for buffer in out] == [row.tobytes() for row in CODEC.encode(data)]
    ((inputs, outputs),) = engine.calls
    assert inputs == [[address(row) for row in data]]
    assert outputs == [[address(np.frombuffer(buffer, np.uint8)) for buffer in out]]


@pytest.mark.parametrize("kind", [kind for kind, (_, writable) in BUFFERS.items() if not writable])
def test_read_only_buffers_are_no_outputs(kind: str) -> None:
    make, _ = BUFFERS[kind]
    data = random_data(CODEC)
    out = [make(bytes(data.shape[1])) for _ in range(2)]
    with pytest.raises(BlockError, match="block 0 of out is read-only"):
        CODEC.encode(data, out=out)
    assert all(bytes(buffer) == bytes(data.shape[1]) for buffer in out)


def test_read_only_data_is_data() -> None:
    data = random_data(CODEC)
    parity = CODEC.encode(data)
    data.flags.writeable = False
    assert (CODEC.encode(data) == parity).all()
    assert (CODEC.encode([row.data.toreadonly() for row in data]) == parity).all()


def test_outputs_of_every_shape() -> None:
    data = random_data(CODEC, stripes=3)
    wanted = CODEC.encode(data)
    out = np.full((3, 2, data.shape[2]), 0xA5, np.uint8)
    assert CODEC.encode(data, out=out) is out
    assert (out == wanted).all()
    single = np.full((2, data.shape[2]), 0xA5, np.uint8)
    assert CODEC.encode(data[1], single) is single
    assert (single == wanted[1]).all()
    wide = np.full((3, 2, 2 * data.shape[2]), 0xA5, np.uint8)
    CODEC.encode(data, out=wide[:, ::-1, 100 : 100 + data.shape[2]])
    assert (wide[:, ::-1, 100 : 100 + data.shape[2]] == wanted).all()
    wide[:, :, 100 : 100 + data.shape[2]] = 0xA5
    assert (wide == 0xA5).all()
    separate = [np.empty((3, data.shape[2]), np.uint8) for _ in range(2)]
    assert CODEC.encode(data, out=separate) is separate
    assert all((separate[i] == wanted[:, i]).all() for i in range(2))


def test_new_blocks_are_aligned_and_staggered() -> None:
    codec = Codec(4, 3)
    for length in (512, 65536):
        parity = codec.encode(np.zeros((2, 4, length), np.uint8))
        starts = [address(parity[s, i]) for s in range(2) for i in range(3)]
        assert all(start % 64 == 0 for start in starts)
        if length == 65536:
            assert all((second - first) % 4096 for first, second in pairwise(starts))


def test_no_bytes_and_no_stripes() -> None:
    for codec in (CODEC, WORDS):
        assert codec.encode(np.zeros((4, 0), np.uint8)).shape == (2, 0)
        assert codec.encode([b""] * 4).shape == (2, 0)
        assert codec.encode(np.zeros((0, 4, 512), np.uint8)).shape == (0, 2, 512)
        assert codec.encode(np.zeros((3, 4, 0), np.uint8)).shape == (3, 2, 0)


@pytest.mark.parametrize("length", [1, 511, 513, 1000])
def test_lengths_that_are_no_whole_strips_are_refused_with_the_multiple(length: int) -> None:
    padded = -(-length // 512) * 512
    message = f"blocks have {length} bytes, which is no multiple of 512; pad them with zeros to {padded} bytes"
    with pytest.raises(BlockError, match=message):
        CODEC.encode(np.zeros((4, length), np.uint8))
    with pytest.raises(BlockError, match=message):
        CODEC.encode([bytes(length)] * 4)
    assert WORDS.encode(np.zeros((4, length), np.uint8)).shape == (2, length)
    with pytest.raises(BlockError, match="no multiple of 2"):
        Codec(4, 2, w=16, layout="words").encode(np.zeros((4, 7), np.uint8))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((3, 512), np.uint8), r"data has shape \(3, 512\), not \(4, length\) or \(stripes, 4, length\)"),
        (np.zeros((4, 4, 4, 512), np.uint8), "data has shape"),
        (np.zeros(2048, np.uint8), "data has shape"),
        (np.zeros((4, 512), np.int8), "uint8"),
        (np.zeros((4, 64)), "uint8"),
        (np.zeros((512, 4), np.uint8).T, "contiguous"),
        (np.zeros((4, 1024), np.uint8)[:, ::2], "contiguous"),
        ([bytes(512)] * 3, "data has 3 blocks, not 4"),
        ([bytes(512)] * 5, "data has 5 blocks, not 4"),
        ([bytes(512)] * 3 + [bytes(1024)], r"block 3 of data has shape \(1024,\), block 0 of data \(512,\)"),
        ([bytes(512)] * 3 + [None], "block 3 of data is a NoneType"),
        ([bytes(512)] * 3 + ["x" * 512], "block 3 of data is a str"),
        ([bytes(512)] * 3 + [np.zeros(512, np.int8)], "block 3 of data is an array of int8"),
        ([bytes(512)] * 3 + [np.zeros((1, 512), np.uint8)], "block 3 of data has shape"),
        ([bytes(512)] * 3 + [memoryview(bytes(1024))[::2]], "block 3 of data are not contiguous"),
        ([bytes(512)] * 3 + [np.zeros(1024, np.uint8)[::2]], "block 3 of data are not contiguous"),
        (bytes(2048), "data is a bytes"),
        (bytearray(2048), "data is a bytearray"),
        (memoryview(bytes(2048)), "data is a memoryview"),
        ("x" * 4, "data is a str"),
        ({0: bytes(512)}, "data is a dict"),
        (None, "data is a NoneType"),
        (iter([bytes(512)] * 4), "data is a list_iterator"),
    ],
)
def test_what_is_no_data_is_refused(data: object, message: str) -> None:
    with pytest.raises(BlockError, match=message):
        CODEC.encode(data)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((3, 512), np.uint8), "out has shape"),
        (np.zeros((1, 2, 512), np.uint8), "out has blocks of 512 bytes"),
        (np.zeros((2, 1024), np.uint8), "out has blocks of 1024 bytes"),
        (np.zeros((2, 512), np.int8), "uint8"),
        ([bytearray(512)], "out has 1 blocks, not 2"),
        ([bytearray(512), bytearray(511)], "block 1 of out has shape"),
        (bytearray(1024), "out is a bytearray"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(out: object, message: str) -> None:
    with pytest.raises(BlockError, match=message):
        CODEC.encode(np.zeros((4, 512), np.uint8), out=out)


def rows_at(memory: Bytes, *starts: int) -> list[Bytes]:
    return [memory[start : start + 512] for start in starts]


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ((1024, 4000), "overlaps input block 0"),
        ((2560, 4000), "overlaps input block 3"),
        ((4000, 1535), "overlaps input block 0"),
        ((4000, 3071), "overlaps input block 3"),
        ((4000, 513), "overlaps input block 0"),
        ((1700, 4000), "overlaps input block [12]"),
        ((4000, 4000), "output blocks overlap each other"),
        ((4000, 4511), "output blocks overlap each other"),
    ],
)
def test_overlapping_outputs_are_refused_and_nothing_written(starts: tuple[int, int], message: str) -> None:
    memory = np.random.default_rng(0).integers(0, 256, 8192, dtype=np.uint8)
    before = memory.copy()
    data = memory[1024:3072].reshape(4, 512)
    for blocks in (data, list(data)):
        with pytest.raises(BlockError, match=message):
            CODEC.encode(blocks, out=rows_at(memory, *starts))
    assert (memory == before).all()


def test_outputs_beside_and_between_inputs_are_fine() -> None:
    memory = np.random.default_rng(0).integers(0, 256, 8192, dtype=np.uint8)
    data = memory[:4096].reshape(4, 1024)[:, :512]  # with a gap of 512 bytes after each block
    wanted = CODEC.encode(data)
    for starts in ((512, 2560), (3584, 4096), (1536, 512)):
        out = rows_at(memory, *starts)
        CODEC.encode(data, out=out)
        assert all((out[i] == wanted[i]).all() for i in range(2))


def test_overlap_among_many_blocks_is_found() -> None:
    codec = Codec(60, 20)
    memory = np.zeros(200 * 512, np.uint8)
    data = memory[: 60 * 512].reshape(60, 512)
    clear = memory[100 * 512 : 120 * 512].reshape(20, 512)
    codec.encode(data, out=clear)
    hidden = list(clear)
    hidden[13] = memory[37 * 512 + 5 : 38 * 512 + 5]
    with pytest.raises(BlockError, match=r"overlaps input block 3[78]"):
        codec.encode(data, out=hidden)
    hidden[13] = clear[2]
    with pytest.raises(BlockError, match="overlap each other"):
        codec.encode(data, out=hidden)
    batch = np.zeros((30, 4, 512), np.uint8)
    out = np.zeros((30, 2, 512), np.uint8)
    CODEC.encode(batch, out=out)
    with pytest.raises(BlockError, match="overlap each other"):
        CODEC.encode(batch, out=np.broadcast_to(out[:1], out.shape).view(Writable))


class Writable(np.ndarray):
    """A broadcast array that claims it may be written."""

    def __array_finalize__(self, _: object) -> None:
        self.flags.writeable = True
