"""The short ways of the codec: the same bytes as the general one, and the same refusals."""

import tracemalloc
from array import array
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec, arguments, lean
from gfcode.errors import BlockError, ParameterError, UnrecoverableError
from tests.unit.codec_support import BUFFERS, RecordingEngine, address, all_shards, random_data

CODEC = Codec(4, 3)
SHARDS = all_shards(CODEC, random_data(CODEC, 3))

#: Blocks of every kind that has a short way, and some that have none.
KINDS: dict[str, Callable[[Any], Any]] = {
    "arrays": lambda block: block,
    "read-only arrays": lambda block: np.frombuffer(block.tobytes(), np.uint8),
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "memoryview of signed bytes": lambda block: memoryview(block).cast("b"),
    "memoryview of doubles": lambda block: memoryview(block.tobytes()).cast("d"),
    "array.array": lambda block: array("B", block.tobytes()),
    "one row": lambda block: block[None],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_loss_by_every_kind_of_block(kind: str) -> None:
    make = KINDS[kind]
    data = np.stack([SHARDS[i] for i in range(4)])
    for lost in (lost for count in range(4) for lost in combinations(range(7), count)):
        given = {i: make(SHARDS[i]) for i in reversed(range(7)) if i not in lost}
        assert (CODEC.decode(given).reshape(data.shape) == data).all()
        made = CODEC.reconstruct(given, lost)
        assert list(made) == list(lost)
        assert all((made[i].reshape(-1) == SHARDS[i]).all() for i in lost)
    blocks = [make(SHARDS[i]) for i in range(4)]
    assert (CODEC.encode(blocks).reshape(3, -1) == [SHARDS[i] for i in (4, 5, 6)]).all()
    assert (CODEC.encode(tuple(blocks)).reshape(3, -1) == [SHARDS[i] for i in (4, 5, 6)]).all()


@pytest.mark.parametrize(
    "kind", ["bytes", "bytearray", "ndarray", "read-only ndarray", "memoryview", "read-only memoryview"]
)
def test_short_ways_read_in_place(kind: str) -> None:
    make, _ = BUFFERS[kind]
    engine = RecordingEngine()
    codec = Codec(4, 3, engine=engine)
    given = {i: make(SHARDS[i].tobytes()) for i in (1, 2, 3, 6)}
    codec.decode(given)
    codec.reconstruct(given, [0])
    codec.reconstruct(given, [0, 5])
    wanted = [[address(np.frombuffer(given[i], np.uint8)) for i in (1, 2, 3, 6)]]
    assert [inputs for inputs, _ in engine.calls] == [wanted] * 3


@pytest.mark.parametrize("module", [lean, arguments], ids=["short", "general"])
def test_another_thread_may_change_the_dict_meanwhile(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are those of the indices at one moment, whenever the change comes."""
    given: dict[int, Any] = {}

    def meanwhile(name: str) -> None:
        work = getattr(module, name)

        def change(*arguments: Any, **options: Any) -> Any:
            given.setdefault(9, None)  # then take a shard from the front, so that those behind move up
            given.pop(next(iter(given)))
            given.pop(9, None)
            given[7] = SHARDS[0]
            return work(*arguments, **options)

        monkeypatch.setattr(module, name, change)

    for name in ("_addresses", "_rows") if module is lean else ("check_indices", "arrays_of", "array_of"):
        meanwhile(name)
    make: Callable[[bytes], Any] = bytes if module is lean else partial(array, "B")
    data = np.stack([SHARDS[i] for i in range(4)])
    calls: list[Callable[[], bool]] = [
        lambda: bool((CODEC.decode(given) == data).all()),
        lambda: bool((CODEC.reconstruct(given, [2])[2] == SHARDS[2]).all()),
        lambda: bool((CODEC.decode_range(given, 0, data.size) == data.reshape(-1)).all()),
        lambda: CODEC.verify(given).consistent,
    ]
    for call in calls:
        given.clear()
        given.update({i: make(SHARDS[i].tobytes()) for i in (6, 1, 0, 3, 5)})
        assert call()


def test_memoryviews_with_gaps_are_refused() -> None:
    given = {i: memoryview(bytearray(2 * SHARDS[i].size))[::2] for i in (1, 2, 3, 6)}
    with pytest.raises(BlockError, match="shard 1 are not contiguous"):
        CODEC.decode(given)


@pytest.mark.parametrize("released", [1, 3])
def test_memoryviews_that_were_released_are_refused(released: int) -> None:
    given = {i: SHARDS[i].data for i in (1, 2, 3, 6)}
    given[released].release()
    with pytest.raises(BlockError, match=f"shard {released} cannot be used: operation forbidden on released"):
        CODEC.decode(given)
    with pytest.raises(BlockError, match=r"block \d of data cannot be used: operation forbidden on released"):
        CODEC.encode(list(given.values()))


def test_indices_of_results_are_integers() -> None:
    given = {i: SHARDS[i] for i in (1, 2, 3, 6)}
    wants: list[Any] = [[np.uint8(0)], [np.int64(5), np.int64(0)]]
    for want in wants:
        assert {type(shard) for shard in CODEC.reconstruct(given, want)} == {int}


def test_what_is_known_of_objects_in_memory_holds_here() -> None:
    """Without it everything works, at the general way's price."""
    assert lean._QUICK


@pytest.mark.parametrize("quick", [True, False])
def test_the_general_way_does_the_same(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "_QUICK", quick)
    given = {i: bytes(SHARDS[i]) for i in (0, 2, 4, 6)}
    assert (CODEC.reconstruct(given, [1])[1] == SHARDS[1]).all()
    assert (CODEC.decode(given)[3] == SHARDS[3]).all()


@pytest.mark.parametrize(
    ("given", "want", "error"),
    [
        ({True: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4]}, [3], None),
        ({1.0: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4]}, [3], ParameterError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4]}, [3.0], ParameterError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4]}, [3, 3], ParameterError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4]}, [7], ParameterError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4]}, [-1], ParameterError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 7: SHARDS[4]}, [3], ParameterError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2]}, [3], UnrecoverableError),
        ({1: SHARDS[1], 0: SHARDS[0], 2: SHARDS[2], 4: SHARDS[4][:512]}, [3], BlockError),
        ({i: SHARDS[i][:100] for i in (0, 1, 2, 4)}, [3], BlockError),
        ({i: bytes(100) for i in (0, 1, 2, 4)}, [3], BlockError),
        ({i: SHARDS[i].view(np.int8) for i in (0, 1, 2, 4)}, [3], BlockError),
        ({i: np.zeros(2048, np.uint8)[::2] for i in (0, 1, 2, 4)}, [3], BlockError),
        ({i: np.zeros((), np.uint8) for i in (0, 1, 2, 4)}, [3], BlockError),
    ],
)
def test_refusals_do_not_depend_on_what_was_asked_before(given: Any, want: Any, error: Any) -> None:
    right = {i: SHARDS[i] for i in (0, 1, 2, 4)}
    CODEC.reconstruct(right, [3])
    CODEC.decode(right)
    if error is None:
        assert (CODEC.reconstruct(given, want)[3] == SHARDS[3]).all()
        return
    with pytest.raises(error):
        CODEC.reconstruct(given, want)
    if type(want[0]) is int and want == [3]:
        with pytest.raises(error):
            CODEC.decode(given)


def test_encode_into_overlaps_and_shapes() -> None:
    memory = np.zeros((7, 1024), np.uint8)
    memory[:4] = random_data(CODEC)
    CODEC.encode_into(memory[:4], memory[4:])
    assert (memory[4:] == CODEC.encode(memory[:4])).all()
    before = memory.copy()
    for out in (memory[1:4], memory[3:6], memory[2:5]):
        with pytest.raises(BlockError, match="overlap"):
            CODEC.encode_into(memory[:4], out)
    with pytest.raises(BlockError, match="read-only"):
        CODEC.encode_into(memory[:4], np.frombuffer(bytes(3072), np.uint8).reshape(3, 1024))
    with pytest.raises(BlockError, match="out has blocks of 512 bytes"):
        CODEC.encode_into(memory[:4], np.zeros((3, 512), np.uint8))
    with pytest.raises(BlockError, match="overlap each other"):
        CODEC.encode_into(memory[:4], np.lib.stride_tricks.as_strided(np.zeros(2048, np.uint8), (3, 1024), (512, 1)))
    with pytest.raises(BlockError, match="needs an out"):
        CODEC.encode_into(memory[:4], None)  # type: ignore[arg-type]
    assert (memory == before).all()


def test_update_by_the_short_way_refuses_what_the_general_one_does() -> None:
    memory = np.zeros((9, 1024), np.uint8)
    memory[:4] = random_data(CODEC)
    parity, old, new = memory[4:7], memory[0], memory[1]
    parity[:] = CODEC.encode(memory[:4])
    before = memory.copy()
    wrong: list[tuple[Any, Any, Any, str]] = [
        (memory[3:6], old, memory[3], "overlaps"),
        (memory[3:6], memory[4], new, "overlaps"),
        ([memory[4], memory[5], memory[1]], old, new, "overlaps"),
        ([memory[4], memory[5], memory[5]], old, new, "overlap each other"),
        ([memory[4], memory[5], memory.reshape(-1)[5 * 1024 + 512 :][:1024]], old, new, "overlap each other"),
        ([memory[4], memory[5], bytes(1024)], old, new, "read-only"),
        ([bytes(1024)] * 3, old, new, "read-only"),
        (np.frombuffer(bytes(3072), np.uint8).reshape(3, 1024), old, new, "read-only"),
        (parity, old[:512], new[:512], "must have the same"),
        (parity[:, :512], old, new, "must have the same"),
    ]
    for blocks, first, second, message in wrong:
        with pytest.raises(BlockError, match=message):
            CODEC.update(blocks, 0, first, second)
    assert (memory == before).all()


@pytest.mark.parametrize("kind", ["array", "list", "tuple", "bytearray", "mapping"])
def test_update_of_every_kind_of_parity(kind: str) -> None:
    data = random_data(CODEC, 5)
    wanted = data.copy()
    wanted[2] = data[3]
    for old, new in ((data[2], data[3]), (data[2].tobytes(), data[3].tobytes()), (data[2], data[3].tobytes())):
        made = CODEC.encode(data)
        parity: Any = {
            "array": made,
            "list": list(made),
            "tuple": tuple(made),
            "bytearray": [bytearray(row) for row in made],
            "mapping": dict(enumerate(made, 4)),
        }[kind]
        CODEC.update(parity, 2, old, new)
        rows = list(parity.values()) if kind == "mapping" else list(parity)
        assert [bytes(row) for row in rows] == [bytes(row) for row in CODEC.encode(wanted)]
        CODEC.update(parity, 2, new, new)
        assert [bytes(row) for row in rows] == [bytes(row) for row in CODEC.encode(wanted)]


def test_a_bytearray_cannot_be_resized_under_a_call() -> None:
    """What keeps its memory in place lives as long as the call: a thread that resizes it meanwhile is refused."""
    blocks = [bytearray(512) for _ in range(4)]
    found = lean._addresses(blocks, 512)
    assert found is not None
    with pytest.raises(BufferError):
        blocks[0].append(1)
    del found
    blocks[0].append(1)


def test_reconstruct_into_an_array() -> None:
    given = {i: SHARDS[i] for i in (1, 2, 3, 6)}
    out = np.zeros((2, len(SHARDS[0])), np.uint8)
    made = CODEC.reconstruct(given, [5, 0], out)
    assert list(made) == [5, 0]
    assert (out[0] == SHARDS[5]).all()
    assert (out[1] == SHARDS[0]).all()
    assert all(np.shares_memory(block, out) for block in made.values())
    overlapping = np.zeros((5, len(SHARDS[0])), np.uint8)
    overlapping[:4] = [SHARDS[i] for i in given]
    with pytest.raises(BlockError, match="overlaps"):
        CODEC.reconstruct(dict(zip(given, overlapping, strict=False)), [0, 5], overlapping[3:])


def test_decode_into_an_array_among_the_blocks_in_memory() -> None:
    """Blocks on both sides of the array, in it where they are to be, and in it elsewhere."""
    length = len(SHARDS[0])
    data = np.stack([SHARDS[i] for i in range(4)])
    memory = np.zeros((9, length), np.uint8)
    memory[0], memory[8] = SHARDS[6], SHARDS[4]
    out = memory[2:6]
    assert CODEC.decode({6: memory[0], 1: SHARDS[1], 4: memory[8], 3: SHARDS[3].tobytes()}, out) is out
    assert (out == data).all()
    out[[0, 2]] = 0
    assert CODEC.decode({3: out[3], 6: memory[0], 1: out[1], 4: memory[8]}, out) is out
    assert (out == data).all()
    before = memory.copy()
    for wrong in ({3: out[3], 6: memory[0], 1: out[2], 4: memory[8]}, {3: out[3], 6: memory[0], 1: out[1], 4: out[0]}):
        with pytest.raises(BlockError, match="overlaps"):
            CODEC.decode(wrong, out)
    assert (memory == before).all()


BLOCK = 2 << 20


@pytest.mark.parametrize("kind", ["ndarray", "bytes", "bytearray", "read-only memoryview", "mmap", "unaligned ndarray"])
def test_no_verb_copies_a_block(kind: str) -> None:
    """Each call allocates its results and, for some, scratch of a fixed size; a copied block would be 2 MiB more."""
    make, _ = BUFFERS[kind]
    codec = Codec(4, 3)
    data = random_data(codec, BLOCK // 512)
    shards = {i: make(block.tobytes()) for i, block in all_shards(codec, data).items()}
    inputs = [shards[i] for i in range(4)]
    some = {i: shards[i] for i in (1, 2, 3, 5)}
    parity, whole, one = np.empty((3, BLOCK), np.uint8), np.empty((4, BLOCK), np.uint8), np.empty((1, BLOCK), np.uint8)
    progressive = codec.progressive(BLOCK, out=np.empty((3, BLOCK), np.uint8))
    part = np.empty(1000, np.uint8)
    joined = np.empty(4 * BLOCK, np.uint8)
    single = make(data.tobytes())
    patched = codec.encode(data)
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "encode": (lambda: codec.encode(inputs), 3),
        "encode, out": (lambda: codec.encode(inputs, parity), 0),
        "encode_into": (lambda: codec.encode_into(inputs, parity), 0),
        "decode": (lambda: codec.decode(some), 4),
        "decode, out": (lambda: codec.decode(some, whole), 0),
        "reconstruct": (lambda: codec.reconstruct(some, [0]), 1),
        "reconstruct, out": (lambda: codec.reconstruct(some, [0], one), 0),
        "decode_range": (lambda: codec.decode_range(some, 100, 1000, part), 0),
        "verify": (lambda: codec.verify(shards), 0),
        "update": (lambda: codec.update(patched, 0, inputs[0], inputs[1]), 0),
        "progressive": (lambda: progressive.add(2, inputs[2]), 0),
        "split": (lambda: codec.split(single), 0),
        "join, out": (lambda: codec.join(inputs, 4 * BLOCK, joined), 0),
        "join": (lambda: codec.join(inputs, 4 * BLOCK), 4),
    }
    before = [bytes(block) for block in shards.values()]
    for name, (call, results) in calls.items():
        if name != "progressive":
            call()  # plans, compilation
        tracemalloc.start()
        call()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < (results + 0.9) * BLOCK, name
    assert before == [bytes(block) for block in shards.values()]
