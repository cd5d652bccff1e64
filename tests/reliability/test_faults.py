"""A fixed share of the campaign of I/O faults, pinned cases at every call, and a file system that is really full."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gfcode.cli.main import main
from tests.reliability.faultlib import why_not
from tests.reliability.faults import FAULTS, fault_campaign, fault_trial
from tests.reliability.samples import scratch_directory
from tests.reliability.scenes import SCENES
from tests.reliability.server import Fault, Server

needs_library = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is a fault library")


@needs_library
def test_random_calls() -> None:
    counts = fault_campaign(1, seed=1)
    assert counts["untouched"] == 0
    assert counts["refused"] + counts["done"] == len(FAULTS) * len(SCENES)
    assert min(counts["refused"], counts["done"]) > 10


@needs_library
@pytest.mark.parametrize(
    ("scene", "name", "results"),
    [
        # The errors name the file; nothing is left behind.
        ("encode", "ENOSPC", {"refused"}),
        ("encode", "EIO of flushes", {"refused"}),
        # Old shards that cannot be read might stay beside the new ones.
        ("encode --force", "EIO of reads from then on", {"refused"}),
        # Names are taken back where files cannot be renamed.
        ("encode --force", "permission lost from then on", {"refused"}),
        ("decode", "a read returns other bytes once", {"done"}),
    ],
)
def test_every_call(scene: str, name: str, results: set[str]) -> None:
    kind = next(fault for fault in FAULTS if fault[0] == name)
    with scratch_directory() as base, Server() as server:
        SCENES[scene].set_up(base)
        calls = server.run(SCENES[scene].command(base), Fault(str(base), kind[1])).calls
        step = -(-calls // 40)
        assert {
            fault_trial(server, SCENES[scene], base, kind, call)[0] for call in range(1, calls + 1, step)
        } == results


@contextlib.contextmanager
def tiny_file_system(directory: Path, size: int) -> Iterator[None]:
    """Mount an empty file system of `size` bytes in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", 0, f"size={size}".encode()):
        pytest.skip(f"no file system can be mounted: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        assert libc.umount(os.fsencode(directory)) == 0


def test_a_full_file_system(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    small = tmp_path / "small"
    small.mkdir()
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3_000_000))
    elsewhere = tmp_path / "elsewhere"
    assert main(["encode", str(source), "-k", "3", "-m", "2", "--out", str(elsewhere), "--quiet"]) == 0
    with tiny_file_system(small, 4 << 20):
        assert main(["encode", str(source), "-k", "3", "-m", "2", "--out", str(small / "s")]) == 1
        assert capfd.readouterr().err == f"gfcode: error: {small}/s/source.004.gfs: No space left on device\n"
        assert os.listdir(small) == []
        (small / "filler").write_bytes(bytes(2 << 20))
        assert main(["decode", str(elsewhere), "-o", str(small / "out")]) == 1
        assert capfd.readouterr().err == f"gfcode: error: {small}/out: No space left on device\n"
        assert os.listdir(small) == ["filler"]
        (small / "filler").unlink()
        # What was there stays when its successor does not fit.
        assert main(["encode", str(source), "-k", "3", "-m", "0", "--out", str(small), "--quiet"]) == 0
        before = {path.name: path.read_bytes() for path in small.iterdir()}
        assert main(["encode", str(source), "-k", "2", "-m", "1", "--out", str(small), "--force"]) == 1
        assert capfd.readouterr().err == f"gfcode: error: {small}/source.000.gfs: No space left on device\n"
        assert {path.name: path.read_bytes() for path in small.iterdir()} == before
        for lost in ("source.000.gfs", "source.001.gfs"):
            (elsewhere / lost).unlink()
        assert main(["repair", str(elsewhere), "--out", str(small / "fixed")]) == 1
        assert capfd.readouterr().err.endswith("No space left on device\n")
        assert {path.name: path.read_bytes() for path in small.iterdir()} == before
