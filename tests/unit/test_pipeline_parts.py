"""The parts below the pipeline: temporary names, publication, workers, turns, batches, reports."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.errors import ParameterError, TargetExistsError
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.files import is_temporary, publish, read_at, temporary_name, write_at
from gfcode.pipeline.frame import XXH3
from gfcode.pipeline.layout import Geometry
from gfcode.pipeline.metadata import describe
from gfcode.pipeline.publication import Temporaries
from gfcode.pipeline.report import FrameStatus, ranges
from gfcode.pipeline.workers import Counter, Meter, StoppedError, Turns, run_workers, usable_threads
from tests.unit.shard_files import make_set, random_bytes


@pytest.mark.parametrize("name", ["file.000.gfs", "x", "é" * 120, os.fsdecode(b"\xff" * 255)])
def test_temporary_names(name: str) -> None:
    made = {temporary_name(name) for _ in range(5)}
    assert len(made) == 5
    for one in made:
        assert is_temporary(one)
        assert len(os.fsencode(one)) <= 255
        assert one.startswith("." + name[:50])


@pytest.mark.parametrize(
    "name", ["file.tmp", ".tmp", ".x.tmp", ".x.0123456789abcdeg.tmp", "x.0123456789abcdef.tmp", ""]
)
def test_other_names_are_not_temporary(name: str) -> None:
    assert not is_temporary(name)


def test_publish(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    new.write_text("new")
    with pytest.raises(TargetExistsError, match="old exists"):
        publish(str(new), str(old), replace=False)
    assert (old.read_text(), new.read_text()) == ("old", "new")
    publish(str(new), str(old), replace=True)
    assert old.read_text() == "new"
    publish(str(old), str(new), replace=False)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_temporaries_are_removed_with_whatever_they_hold(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), Temporaries() as files:  # noqa: PT012
        for name in ("a", "b"):
            file = files.create(str(tmp_path / name), 0o600)
            file.reserve(10_000)
            write_at(file.fd, [memoryview(b"x"), memoryview(b"yz")], 3)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_reads_and_writes_of_many_buffers(tmp_path: Path) -> None:
    path = tmp_path / "f"
    data = random_bytes(5000)
    pieces = [memoryview(data)[at : at + 2] for at in range(0, 5000, 2)]  # more than one system call takes
    with path.open("w+b") as file:
        write_at(file.fileno(), pieces, 7)
        back = [memoryview(bytearray(3)) for _ in range(1700)]
        assert read_at(file.fileno(), back, 7) == 5000
        assert b"".join(back)[:5000] == data
        assert read_at(file.fileno(), back, 10_000) == 0
        assert read_at(file.fileno(), [], 0) == 0


def test_first_exception_of_any_worker_is_raised() -> None:
    started, running = threading.Barrier(3), set(threading.enumerate())

    def work(stop: threading.Event) -> None:
        started.wait()
        if threading.current_thread().name == "gfcode-2":
            raise ValueError("from worker 2")
        stop.wait(30)
        raise StoppedError("a consequence")

    with pytest.raises(ValueError, match="from worker 2"):
        run_workers(3, work)
    assert set(threading.enumerate()) <= running


def test_interrupt_of_the_calling_thread_stops_the_workers() -> None:
    running = set(threading.enumerate())

    def work(stop: threading.Event) -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        assert stop.wait(30)

    with pytest.raises(KeyboardInterrupt):
        run_workers(3, work)
    assert set(threading.enumerate()) <= running


def test_counter_gives_each_number_once() -> None:
    counter, seen = Counter(1000), []

    def work(stop: threading.Event) -> None:
        while (number := counter.take()) is not None:
            seen.append(number)

    run_workers(4, work)
    assert sorted(seen) == list(range(1000))


def test_turns_keep_the_order() -> None:
    turns, counter, seen = Turns(), Counter(50), []

    def work(stop: threading.Event) -> None:
        while (number := counter.take()) is not None:
            time.sleep(0.0001 * (number % 3))
            turns.wait(number, stop)
            seen.append(number)
            turns.done()

    run_workers(4, work)
    assert seen == list(range(50))


def test_turns_end_when_the_run_has_failed() -> None:
    turns, counter = Turns(), Counter(8)

    def work(stop: threading.Event) -> None:
        while (number := counter.take()) is not None:
            if number == 0:
                time.sleep(0.05)
                raise OSError(32, "Broken pipe")
            turns.wait(number, stop)

    with pytest.raises(OSError, match="Broken pipe"):
        run_workers(4, work)


def test_meter_and_threads() -> None:
    seen: list[tuple[int, int | None]] = []
    meter = Meter(lambda done, total: seen.append((done, total)), 10)
    meter.add(4)
    meter.extend(5)
    meter.add(11)
    assert seen == [(4, 10), (15, 15)]
    Meter(None, None).add(5)
    assert usable_threads(3, 2) == 2
    assert usable_threads(3, None) == 3
    assert usable_threads(None, 100) >= 1
    with pytest.raises(ParameterError, match="at least 1, not -1"):
        usable_threads(-1, 5)


@pytest.mark.parametrize(("n", "frame", "stripes", "expected"), [
    (14, 65_536, None, 8), (14, 65_536, 3, 3), (14, 1024, None, 256), (375, 65_536, None, 1), (14, 2**22, 9, 1),
    (64, 65_536, None, 4),
])  # fmt: skip
def test_batches_are_bounded(n: int, frame: int, stripes: int | None, expected: int) -> None:
    assert batch_stripes(Geometry(1, 64, frame - 512, 4096), n, stripes) == expected


def test_blocks_of_a_batch_are_aligned_and_staggered() -> None:
    metadata = describe(
        Codec(10, 4), set_id=bytes(16), name="x", size=None, mode=None, mtime_ns=None, block_length=65_024,
        checksum=XXH3, tool="t",
    )  # fmt: skip
    batch = Batch(metadata, 8)
    assert batch.table.shape == (8, 14)
    assert not (batch.table % 64).any()
    # The 14 blocks of a stripe start in different sets of a cache with 64 sets of 64-byte lines.
    assert len(set((batch.table[0] // 64 % 64).tolist())) == 14
    assert batch.rows[3].nbytes == 8 * 65_536


def test_ranges() -> None:
    assert ranges(np.array([], np.int64)) == []
    assert ranges(np.array([5], np.int64)) == [(5, 5)]
    assert ranges(np.array([0, 1, 2, 7, 9, 10], np.int64)) == [(0, 2), (7, 7), (9, 10)]


def test_reports_are_plain_json(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(9_000))
    files.change(1, files.offset(1) + 600)
    files.change(1, files.offset(2) + 600)
    os.truncate(files.paths[3], files.offset(1))
    verified = files.verify()
    _, decoded = files.decode()
    repaired = files.repair()
    reports: list[Any] = [files.report, verified, decoded, repaired, *verified.shards]
    for report in reports:
        assert json.loads(json.dumps(report.to_json())) is not None
    assert verified.to_json()["damage"] == {"1": [[1, 2, "checksum"]], "3": [[1, 2, "missing"]]}
    assert verified.to_json()["shards"][3]["missing"] == 2
    assert verified.damage.shape == (5, 3)
    assert FrameStatus(int(verified.damage[1, 2])) is FrameStatus.CHECKSUM
    assert repaired.to_json()["repaired"][0]["rebuilt_stripes"] == 2
    assert files.verify().summary() == "all 5 shards of 'file' are intact"
