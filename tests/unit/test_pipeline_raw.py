"""Raw shards: which file is which, lengths of striped shards, and locating wrong bytes."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfcode import Codec
from gfcode.codec.locate import Locator
from gfcode.codec.preset_codec import PresetCodec
from gfcode.codec.presets import PRESETS
from gfcode.errors import ParameterError, ShardSetError, TargetExistsError
from gfcode.pipeline.raw import raw_encode, raw_repair, raw_verify
from gfcode.pipeline.raw_names import assign_shards, missing_targets
from gfcode.pipeline.raw_report import merged
from gfcode.pipeline.raw_shards import lengths_by_size, lengths_of_all
from tests.peers.base import Bytes, filled


def numbered(*numbers: int) -> list[str]:
    return [f"d/shard.{number}" for number in numbers]


def test_names_win_over_the_shell_s_order() -> None:
    paths = sorted(numbered(*(i for i in range(14) if i not in {3, 7})))
    assert paths[2] == "d/shard.10"
    found = assign_shards(paths, 14, (7, 3))
    assert found.rule == "name"
    assert found.missing == (3, 7)
    assert all(path == f"d/shard.{index}" for index, path in found.shards.items())
    assert missing_targets(found, None) == {3: "d/shard.3", 7: "d/shard.7"}
    assert missing_targets(found, "e") == {3: "e/shard.3", 7: "e/shard.7"}


def test_names_tell_what_is_missing() -> None:
    assert assign_shards(numbered(0, 1, 3, 4), 6, None).missing == (2, 5)
    assert assign_shards(numbered(0, 1, 2), 3, None).missing == ()


def test_names_may_leave_out_more_than_is_to_be_made() -> None:
    found = assign_shards(numbered(0, 1, 3, 4), 6, (2,))
    assert found.missing == (2,)
    assert sorted(found.shards) == [0, 1, 3, 4]


def test_padded_numbers_stay_padded() -> None:
    found = assign_shards(["x-000.bin", "x-002.bin"], 3, None)
    assert missing_targets(found, None) == {1: "x-001.bin"}


def test_order_where_names_have_no_numbers() -> None:
    found = assign_shards(["a", "b", "c", "d"], 6, (1, 4))
    assert found.rule == "order"
    assert found.shards == {0: "a", 2: "b", 3: "c", 5: "d"}
    with pytest.raises(ParameterError, match="--to"):
        missing_targets(found, None)


def test_order_where_numbers_are_no_indices() -> None:
    """Numbers from 1, numbers all the same, numbers of another kind."""
    assert assign_shards(numbered(1, 2, 3, 4), 4, ()).shards[0] == "d/shard.1"
    assert assign_shards(["f.00_04", "f.01_04", "f.02_04"], 4, (3,)).rule == "order"
    assert assign_shards(["blk_1001", "blk_1002"], 3, (1,)).shards == {0: "blk_1001", 2: "blk_1002"}


def test_insisting_on_order() -> None:
    assert assign_shards(numbered(2, 1, 0), 3, (), "order").shards[0] == "d/shard.2"


@pytest.mark.parametrize(
    ("paths", "n", "missing", "message"),
    [
        (["a", "b"], 4, (1,), "2 files are given for 3 shards"),
        (["a", "b"], 4, None, "a has no number"),
        (numbered(1, 2, 3), 4, None, "may count from 1"),
        (numbered(0, 1, 2), 4, (2,), r"shard\.2 is given, and shard 2 is said to be missing"),
        (numbered(0, 1), 3, (3,), "no shard 3"),
        (numbered(0, 1), 3, (-1,), "no shard -1"),
        (numbered(0, 1), 4, (2, 2), "listed twice"),
        (["a.1", "b.1"], 4, None, "both have number 1"),
    ],
)
def test_contradictions(paths: list[str], n: int, missing: tuple[int, ...] | None, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        assign_shards(paths, n, missing)


def test_insisting_on_names_that_do_not_tell() -> None:
    with pytest.raises(ParameterError, match="number 9, and indices are 0 to 2"):
        assign_shards(numbered(0, 9), 3, (1,), "name")


def test_dropping_files_of_missing_shards() -> None:
    assert sorted(assign_shards(numbered(0, 1, 2, 3), 4, (2,), drop=True).shards) == [0, 1, 3]
    # Not where the numbers are no indices.
    assert assign_shards(["a.7", "b.7", "c.7"], 4, (3,), drop=True).rule == "order"


def test_names_of_several_kinds_or_folders() -> None:
    with pytest.raises(ParameterError, match="differ in more than their number"):
        missing_targets(assign_shards(["a.0", "b.1"], 3, None), None)
    spread = assign_shards(["x/a.0", "y/a.1"], 3, None)
    with pytest.raises(ParameterError, match="2 directories"):
        missing_targets(spread, None)
    assert missing_targets(spread, "z") == {2: "z/a.2"}


def test_lengths_by_size() -> None:
    assert lengths_by_size(0, 3, 2, 10, 1) == [0] * 5
    assert lengths_by_size(1, 3, 2, 10, 1) == [1, 0, 0, 1, 1]
    assert lengths_by_size(30, 3, 1, 10, 1) == [10] * 4
    assert lengths_by_size(45, 3, 1, 10, 1) == [20, 15, 10, 20]
    assert lengths_by_size(33, 3, 1, 10, 2) == [13, 10, 10, 14]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_lengths_of_lost_shards_are_found_or_asked_for(data: st.DataObject) -> None:
    """From the lengths of any survivors: the right ones, or a question, or the file filled up to whole cells."""
    k, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    multiple = data.draw(st.sampled_from([1, 2]))
    unit = 4 * data.draw(st.integers(1, 3))
    size = data.draw(st.integers(1, 3 * k * unit))
    true = lengths_by_size(size, k, m, unit, multiple)
    lost = data.draw(st.sets(st.integers(0, k + m - 1), max_size=m))
    given_lengths = {index: length for index, length in enumerate(true) if index not in lost}
    names = {index: f"s.{index}" for index in given_lengths}
    assert lengths_of_all(given_lengths, names, k, m, multiple, unit, size) == (true, True)
    try:
        found, certain = lengths_of_all(given_lengths, names, k, m, multiple, unit, None)
    except ParameterError:
        assert lost & set(range(0 if multiple > 1 else 1, k))
        return
    if certain:
        assert found == true
    else:
        assert found == [max(given_lengths.values())] * (k + m)


def test_lengths_that_fit_nothing() -> None:
    names = dict(enumerate("abcde"))
    with pytest.raises(ShardSetError, match=r"b has 99 bytes, others 100; .*--unit"):
        lengths_of_all({0: 100, 1: 99}, names, 2, 1, 1, None, None)
    with pytest.raises(ShardSetError, match="no whole number of strips of 64"):
        lengths_of_all({0: 100, 1: 100}, names, 2, 1, 64, None, None)
    with pytest.raises(ShardSetError, match="not those of any file"):
        lengths_of_all({0: 10, 1: 20, 2: 20}, names, 2, 1, 1, 10, None)
    with pytest.raises(ShardSetError, match="shard 1 of a file of 15 bytes has 5"):
        lengths_of_all({0: 10, 1: 10, 2: 10}, names, 2, 1, 1, 10, 15)
    with pytest.raises(ParameterError, match="--unit"):
        lengths_of_all({0: 10, 1: 10}, names, 2, 1, 1, None, 15)
    with pytest.raises(ParameterError, match="cells of 12 bytes"):
        lengths_of_all({}, {}, 2, 1, 8, 12, None)
    with pytest.raises(ParameterError, match="give its size with --size"):
        lengths_of_all({0: 20, 1: 20, 3: 10, 4: 20}, names, 4, 1, 1, 10, None)


def striped(content: bytes, k: int, unit: int) -> list[bytes]:
    """Deal out a file by definition: cell c goes to shard c mod k."""
    cells = [content[start : start + unit] for start in range(0, len(content), unit)]
    return [b"".join(cells[j::k]) for j in range(k)]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 255, 256, 257, 4095, 4096, 20_000])
@pytest.mark.parametrize("unit", [16, 64, 1 << 20])
def test_striped_encode_by_definition(tmp_path: Path, size: int, unit: int) -> None:
    """HDFS's layout: parity of a short cell is as if it were filled up with zeros."""
    codec = Codec.preset("hdfs-rs", 4, 2)
    content = filled(1, max(size, 1)).tobytes()[:size]
    source = tmp_path / "f"
    source.write_bytes(content)
    report = raw_encode(str(source), codec, out=str(tmp_path / "o"), unit=unit, short=True)
    shards = [Path(path).read_bytes() for path in report.paths]
    assert shards[:4] == striped(content, 4, unit)
    longest = max(map(len, shards))
    data = np.frombuffer(b"".join(shard.ljust(longest, b"\0") for shard in shards[:4]), np.uint8).reshape(4, -1)
    assert b"".join(shards[4:]) == codec.encode(data).tobytes()
    padded = raw_encode(str(source), codec, out=str(tmp_path / "p"), unit=unit)
    whole = -(-size // (4 * unit)) * unit
    assert [Path(path).read_bytes() for path in padded.paths[:4]] == [s.ljust(whole, b"\0") for s in shards[:4]]


@pytest.mark.parametrize("size", [0, 1, 5, 400, 401, 12_345])
@pytest.mark.parametrize(("name", "options"), [("klauspost", {}), ("jerasure-liberation", {"w": 3, "packet_bytes": 8})])
def test_contiguous_encode_and_every_repair(tmp_path: Path, size: int, name: str, options: dict[str, Any]) -> None:
    codec = Codec.preset(name, 3, 2, **options)
    source = tmp_path / "f"
    source.write_bytes(filled(1, max(size, 1)).tobytes()[:size])
    report = raw_encode(str(source), codec, out=str(tmp_path))
    shards = [Path(path).read_bytes() for path in report.paths]
    assert len(set(map(len, shards))) == 1
    assert len(shards[0]) % codec.block_multiple == 0
    assert b"".join(shards[:3])[:size] == source.read_bytes()
    assert not any(b"".join(shards[:3])[size:])
    for lost in ((0, 1), (1, 4), (3, 4), (2,)):
        kept = {i: path for i, path in enumerate(report.paths) if i not in lost}
        made = {i: str(tmp_path / "new" / f"{i}") for i in lost}
        done = raw_repair(kept, made, codec, force=True)
        assert all(Path(path).read_bytes() == shards[i] for i, path in made.items())
        assert len(done.read) <= 3
        assert len(done.read) + len(done.checked) == 5 - len(lost)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_encodes_and_repairs_files(tmp_path: Path, name: str) -> None:
    m = {"hdfs-xor": 1}.get(name, 2)
    codec = Codec.preset(name, 4, m)
    source = tmp_path / "f"
    source.write_bytes(filled(1, 30_001).tobytes())
    report = raw_encode(str(source), codec, out=str(tmp_path))
    shards = [Path(path).read_bytes() for path in report.paths]
    lost = (0, 3)[:m]
    kept = {i: path for i, path in enumerate(report.paths) if i not in lost}
    raw_repair(kept, {i: report.paths[i] for i in lost}, codec, force=True)
    assert [Path(path).read_bytes() for path in report.paths] == shards
    assert raw_verify(dict(enumerate(report.paths)), codec).state == "consistent"


@pytest.mark.parametrize("size", [70, 129, 200, 255, 256, 300])
def test_repair_of_short_cells(tmp_path: Path, size: int) -> None:
    """Every loss of two: as encoded, with the file's size or without wherever that is enough."""
    codec = Codec.preset("hdfs-rs", 4, 2)
    source = tmp_path / "f"
    source.write_bytes(filled(1, size).tobytes())
    paths = raw_encode(str(source), codec, out=str(tmp_path), unit=32, short=True).paths
    shards = [Path(path).read_bytes() for path in paths]
    asked = 0
    for first in range(6):
        for second in range(first + 1, 6):
            kept = {i: path for i, path in enumerate(paths) if i not in {first, second}}
            made = {i: str(tmp_path / f"new.{i}") for i in (first, second)}
            raw_repair(kept, made, codec, unit=32, size=size, force=True)
            assert all(Path(path).read_bytes() == shards[i] for i, path in made.items())
            try:
                done = raw_repair(kept, made, codec, unit=32, force=True)
            except ParameterError:
                asked += 1
                continue
            if not any("--size" in note for note in done.notes):
                assert all(Path(path).read_bytes() == shards[i] for i, path in made.items())
    assert asked < 15


def located(codec: PresetCodec, rows: Bytes, given: tuple[int, ...] | None = None) -> dict[int, list[int]]:
    finding = Locator(codec, given or tuple(range(codec.n))).find(rows)
    assert not finding.unexplained
    return {shard: offsets.tolist() for shard, offsets in finding.wrong.items()}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_wrong_bytes_are_located(data: st.DataObject) -> None:
    """Up to two wrong shards at any one place, of (5, 4): exactly the bytes that were changed."""
    codec = Codec.preset("isa-l-cauchy", 5, 4)
    rows = np.concatenate([(block := filled(5, 1500)), codec.encode(block)])
    offsets = data.draw(st.sets(st.integers(0, 1499), max_size=12))
    changed: dict[int, list[int]] = {}
    for offset in sorted(offsets):
        for shard in data.draw(st.sets(st.integers(0, 8), min_size=1, max_size=2)):
            rows[shard, offset] ^= data.draw(st.integers(1, 255))
            changed.setdefault(shard, []).append(offset)
    assert located(codec, rows) == changed


def test_wrong_bytes_of_bit_codes_are_located() -> None:
    codec = Codec.preset("jerasure-liberation", 5, 2, w=5, packet_bytes=8)
    rows = np.concatenate([(block := filled(5, 40 * 30)), codec.encode(block)])
    rows[2, [7, 100]] ^= 1
    rows[6, 900] ^= 0x80
    assert located(codec, rows) == {2: [7, 100], 6: [900]}


def test_one_spare_shard_cannot_locate() -> None:
    codec = Codec.preset("zfec", 4, 2)
    rows = np.concatenate([(block := filled(4, 100)), codec.encode(block)])
    rows[1, 50] ^= 1
    finding = Locator(codec, (0, 1, 2, 3, 4)).find(np.ascontiguousarray(rows[:5]))
    assert not finding.wrong
    assert finding.unexplained == [(50, 50)]


def written(tmp_path: Path, codec: Codec, length: int) -> tuple[list[str], Bytes]:
    rows = np.concatenate([(block := filled(codec.k, length)), codec.encode(block)])
    paths = [str(tmp_path / f"s.{index}") for index in range(codec.n)]
    for path, row in zip(paths, rows, strict=True):
        Path(path).write_bytes(row.tobytes())
    return paths, rows


def test_verify_across_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gfcode.pipeline.raw_shards._WINDOW", 6 * 1000)
    codec = Codec.preset("klauspost", 4, 2)
    paths, rows = written(tmp_path, codec, 10_500)
    shards = dict(enumerate(paths))
    assert raw_verify(shards, codec).state == "consistent"
    for shard, offset in ((1, 999), (1, 1000), (4, 5000), (0, 10_499)):
        rows[shard, offset] ^= 3
    for path, row in zip(paths, rows, strict=True):
        Path(path).write_bytes(row.tobytes())
    calls: list[tuple[int, int | None]] = []
    report = raw_verify(shards, codec, threads=2, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (6 * 10_500, 6 * 10_500)
    # Three shards are wrong, each at another place: all are told, but two parities cannot bring back three.
    assert report.state == "beyond repair"
    assert [(w.index, w.wrong_bytes, w.ranges) for w in report.wrong] == [
        (0, 1, [(10_499, 10_499)]), (1, 2, [(999, 1000)]), (4, 1, [(5000, 5000)]),
    ]  # fmt: skip
    assert not report.unexplained


def test_repair_refuses_shards_that_disagree(tmp_path: Path) -> None:
    codec = Codec.preset("klauspost", 4, 2)
    paths, _ = written(tmp_path, codec, 3000)
    kept = dict(enumerate(paths))
    kept[1], kept[2] = kept[2], kept[1]
    target = kept.pop(0)
    with pytest.raises(ShardSetError, match="do not belong together: they disagree at byte 0"):
        raw_repair(kept, {0: target + ".new"}, codec)
    assert sorted(os.listdir(tmp_path)) == [f"s.{i}" for i in range(6)]
    unchecked = raw_repair(kept, {0: target + ".new"}, codec, check=False)
    assert unchecked.checked == ()


def test_same_file_twice_and_other_kinds(tmp_path: Path) -> None:
    codec = Codec.preset("klauspost", 2, 2)
    paths, _ = written(tmp_path, codec, 100)
    os.link(paths[0], tmp_path / "t")
    with pytest.raises(ShardSetError, match="are the same file"):
        raw_verify({0: paths[0], 1: str(tmp_path / "t"), 2: paths[2]}, codec)
    with pytest.raises(ShardSetError, match="no regular file"):
        raw_verify({0: paths[0], 1: str(tmp_path), 2: paths[2]}, codec)
    with pytest.raises(FileNotFoundError):
        raw_verify({0: paths[0], 1: str(tmp_path / "none"), 2: paths[2]}, codec)
    with pytest.raises(ShardSetError, match="leave none to compare"):
        raw_verify({0: paths[0], 1: paths[1]}, codec)


def test_encode_never_replaces_its_input(tmp_path: Path) -> None:
    source = tmp_path / "a.0"
    source.write_bytes(b"x" * 100)
    codec = Codec.preset("klauspost", 2, 1)
    with pytest.raises(ParameterError, match="is an input and would be replaced"):
        raw_encode(str(source), codec, out=str(tmp_path), name="a", force=True)
    with pytest.raises(ParameterError, match="no regular file"):
        raw_encode(str(tmp_path), codec)
    with pytest.raises(ParameterError, match="--unit"):
        raw_encode(str(source), codec, short=True)


def test_repair_never_replaces_its_inputs(tmp_path: Path) -> None:
    codec = Codec.preset("klauspost", 2, 2)
    paths, _ = written(tmp_path, codec, 100)
    kept = {0: paths[0], 1: paths[1], 2: paths[2]}
    with pytest.raises(ParameterError, match="is an input"):
        raw_repair(kept, {3: paths[0]}, codec, force=True)
    with pytest.raises(ParameterError, match="to one file"):
        raw_repair({0: paths[0], 1: paths[1]}, {2: "new", 3: "./new"}, codec)
    with pytest.raises(TargetExistsError, match="--force"):
        raw_repair(kept, {3: paths[3]}, codec)
    with pytest.raises(ParameterError, match="shard 2 is given and said to be missing"):
        raw_repair(kept, {2: "new"}, codec)
    assert sorted(os.listdir(tmp_path)) == [f"s.{i}" for i in range(4)]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [([], []), ([(5, 6), (0, 2), (3, 4)], [(0, 6)]), ([(0, 9), (2, 3), (11, 12)], [(0, 9), (11, 12)])],
)
def test_merged(ranges: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert merged(ranges) == expected
