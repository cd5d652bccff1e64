"""Encode, lose m shards, repair, decode: the identity, for every size that a boundary is near."""

import itertools
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
from tests.unit.shard_files import SMALL_FRAME, make_set, random_bytes

BLOCK = SMALL_FRAME - 512


def sizes(k: int, strip: int = 512, block: int = BLOCK) -> list[int]:
    stripe = k * block
    near = [n + d for n in (strip, block, stripe) for d in (-1, 0, 1)]
    return sorted({0, 1, k - 1, k, k + 1, *near, 3 * stripe + 1})


def identity(directory: Path, data: bytes, k: int, m: int, **options: Any) -> None:
    files = make_set(directory, data, k, m, **options)
    assert files.verify().state == "intact"
    # Parities first in one half of the cases, data first in the other.
    lost = range(m) if len(data) % 2 else range(k + m - m, k + m)
    for shard in lost:
        files.remove(shard)
    files.assert_decodes(threads=1)
    report = files.repair(threads=1)
    assert [shard.index for shard in report.repaired] == list(lost)
    assert report.state == "intact"
    files.assert_original()
    files.assert_decodes(threads=1)


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_sizes_at_boundaries(tmp_path: Path, k: int, m: int) -> None:
    for number, size in enumerate(sizes(k)):
        identity(tmp_path / str(number), random_bytes(size), k, m)


@pytest.mark.parametrize(
    ("layout", "w"),
    [("packets", 4), ("packets", 8), ("packets", 16), ("packets", 7), ("words", 4), ("words", 8), ("words", 16)],
)
@pytest.mark.parametrize("matrix", ["auto", "cauchy-good", "vandermonde"])
def test_layouts_widths_families(tmp_path: Path, layout: str, w: int, matrix: str) -> None:
    frame = 512 + 2048
    block = 2048 // (64 * w) * 64 * w if layout == "packets" else 2048
    for number, size in enumerate((0, 1, 64, block, 3 * block - 1, 3 * 3 * block + 1)):
        data = random_bytes(size, w)
        identity(tmp_path / str(number), data, 3, 2, layout=layout, w=w, matrix=matrix, frame=frame)


def test_explicit_matrix_comes_from_the_metadata(tmp_path: Path) -> None:
    matrix = [[3, 5, 7], [11, 13, 17]]
    files = make_set(tmp_path, random_bytes(10_000), 3, 2, matrix=matrix)
    assert files.report.family == "explicit"
    files.remove(0, 1)
    files.assert_decodes()


def test_every_loss_of_m(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(9_000), 3, 3)
    for lost in itertools.combinations(range(6), 3):
        files.remove(*lost)
        files.assert_decodes(threads=1)
        assert {shard.index for shard in files.repair(threads=1).repaired} == set(lost)
        files.assert_original()


def test_m_zero_is_striping_with_checksums(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(5_000), 3, 0)
    files.assert_decodes()
    files.change(1, files.offset(0) + 600)
    assert files.verify().state == "beyond repair"


def test_default_frame_is_64_kib(tmp_path: Path) -> None:
    data = random_bytes(3 * 65_024 * 2 + 5)
    files = make_set(tmp_path, data, 3, 2, frame=65_536)
    assert files.report.frame_length == 65_536
    assert files.report.block_length == 65_024
    assert files.report.stripes == 3
    # metadata frame, two full frames, one short frame with a strip
    assert {len(shard) for shard in files.original.values()} == {4096 + 2 * 65_536 + 512 + 512}
    files.remove(0, 4)
    files.assert_decodes()


def test_small_files_cost_kilobytes(tmp_path: Path) -> None:
    files = make_set(tmp_path, b"x" * 100, 10, 4, frame=65_536)
    assert {len(shard) for shard in files.original.values()} == {4096 + 512 + 512}


def test_data_shards_are_the_data(tmp_path: Path) -> None:
    data = random_bytes(3 * BLOCK + 700)
    files = make_set(tmp_path, data, 3, 2)
    blocks = [shard[4096 + 512 : 4096 + 512 + BLOCK] for shard in list(files.original.values())[:3]]
    assert b"".join(blocks) == data[: 3 * BLOCK]
    tail = [shard[4096 + SMALL_FRAME + 512 :] for shard in list(files.original.values())[:3]]
    assert b"".join(tail) == data[3 * BLOCK :] + bytes(3 * 512 - 700)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_give_the_same_bytes(tmp_path: Path, threads: int) -> None:
    # Several batches: each holds at most 256 frames of a shard.
    data = random_bytes(2 * 512 * 700 + 13)
    files = make_set(tmp_path, data, 2, 2, frame=1024, threads=threads)
    reference = make_set(tmp_path / "one", data, 2, 2, frame=1024, threads=1)
    for path, other in zip(files.paths, reference.paths, strict=True):
        # All but headers and metadata, which hold the set id.
        assert path.stat().st_size == other.stat().st_size
        for stripe in range(700):
            at = files.offset(stripe) + 512
            assert files.original[str(path)][at : at + 512] == reference.original[str(other)][at : at + 512]
    files.remove(0)
    files.change(1, files.offset(300) + 700)
    files.assert_decodes(threads=threads)
    assert files.repair(threads=threads).state == "intact"
    files.assert_original()


def test_mode_and_mtime_come_back(tmp_path: Path) -> None:
    source = tmp_path / "script"
    source.write_bytes(b"#!/bin/sh\n")
    source.chmod(0o750)
    os.utime(source, ns=(1, 1_234_567_890_123_456_789))
    report = encode_file(source, k=2, m=1, out=tmp_path / "s", durable=False)
    result = decode_file(tmp_path / "s", tmp_path / "back", durable=False)
    status = (tmp_path / "back").stat()
    assert status.st_mode & 0o7777 == 0o750
    assert status.st_mtime_ns == 1_234_567_890_123_456_789
    assert result.path == str(tmp_path / "back")
    # Shards are as private as their source.
    assert {Path(path).stat().st_mode & 0o007 for path in report.paths} == {0}


def test_decode_to_the_suggested_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = make_set(tmp_path, b"hello", name="greeting.txt")
    monkeypatch.chdir(tmp_path)
    assert decode_file("shards", durable=False).path == "greeting.txt"
    assert (tmp_path / "greeting.txt").read_bytes() == b"hello"
    assert files.report.name == "greeting.txt"


def test_shards_round_robin_over_directories(tmp_path: Path) -> None:
    directories = [tmp_path / name for name in ("a", "b", "deep/er/c")]
    files = make_set(tmp_path, random_bytes(5_000), 5, 3, out=directories)
    assert [path.parent for path in files.paths] == [directories[index % 3] for index in range(8)]
    files.assert_decodes(paths=directories)


def test_names_that_are_not_utf8_or_hold_newlines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate((os.fsdecode(b"caf\xe9\n\xff"), "-rf", "héé\u202e", " ", "a.000.gfs")):
        files = make_set(tmp_path / str(number), b"abc", name=name)
        os.makedirs(tmp_path / str(number) / "out")
        monkeypatch.chdir(tmp_path / str(number) / "out")
        assert decode_file(files.directory, durable=False).path == name
        assert (tmp_path / str(number) / "out" / name).read_bytes() == b"abc"


def test_durable_writes(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(5_000), durable=True)
    files.remove(1)
    repair_set(files.directory)
    files.assert_original()
    decode_file(files.directory, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == files.data


def test_progress_counts_all_bytes_and_never_falls(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    lock = threading.Lock()

    def progress(done: int, total: int | None) -> None:
        assert lock.acquire(blocking=False), "calls overlap"
        seen.append((done, total))
        lock.release()

    data = random_bytes(2 * 512 * 600)
    files = make_set(tmp_path, data, 2, 2, frame=1024, progress=progress, threads=2)
    assert seen[-1] == (len(data), len(data))
    for run in (
        lambda: verify_set(files.directory, progress=progress),
        lambda: decode_file(files.directory, tmp_path / "o", progress=progress, durable=False),
        lambda: repair_set(files.directory, progress=progress, durable=False),
    ):
        seen.clear()
        files.change(0, files.offset(3) + 600)
        run()
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        done, total = seen[-1]
        assert total is not None
        assert 0 < done <= total
