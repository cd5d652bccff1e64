"""`gfcode demo`, at a tenth of its size."""

import hashlib
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gfcode.pipeline.outcomes import DecodeReport, RepairReport
from tests.cli.conftest import Runner


def test_demo_leaves_nothing_behind(tmp_path: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = gfcode("demo", "--size", "20MiB")
    assert (done.code, done.err) == (0, "")
    assert os.listdir(tmp_path) == []
    lines = done.out.splitlines()
    assert sum(line.endswith("no file") for line in lines) == 2
    assert any("truncate -s" in line for line in lines)
    assert "damaged: repairable: run `gfcode repair shards/*`" in lines
    assert "intact" in lines
    assert lines[-1].startswith("identical: python.tar and decoded.tar have SHA-256 ")
    for step in ("encode", "verify", "repair", "decode"):
        assert any(line.startswith(f"$ gfcode {step} ") for line in lines)
        assert any(line.split()[:1] == [step] and line.endswith("/s") for line in lines)


def test_demo_keeps_everything_where_asked(tmp_path: Path, gfcode: Runner) -> None:
    kept = tmp_path / "kept"
    done = gfcode("demo", "--size", "1MiB", "--keep", kept, "--json")
    assert done.code == 0
    report = done.json
    assert report["identical"] is True
    assert report["size"] >= 1 << 20
    assert [step["name"] for step in report["steps"]] == [
        "archive", "hash", "encode", "verify", "repair", "verify", "decode", "hash",
    ]  # fmt: skip
    assert sorted(os.listdir(kept)) == ["decoded.tar", "python.tar", "shards"]
    assert sorted(os.listdir(kept / "shards")) == [f"{index:02}" for index in range(14)]
    for name in ("python.tar", "decoded.tar"):
        assert hashlib.sha256((kept / name).read_bytes()).hexdigest() == report["sha256"]
    with tarfile.open(kept / "python.tar") as archive:
        assert len(archive.getnames()) > 3
    again = gfcode("demo", "--size", "1MiB", "--keep", kept)
    assert again.code == 1
    assert again.error == f"{kept}: File exists"


def test_demo_fails_where_a_decoder_changes_a_byte(
    tmp_path: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gfcode.pipeline import decode_file

    def careless(paths: list[str], output: str, **options: Any) -> DecodeReport:
        report = decode_file(paths, output, **options)
        with open(output, "r+b") as file:
            file.seek(12345)
            file.write(b"\xff\xfe")
        return report

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("gfcode.decode_file", careless)
    done = gfcode("demo", "--size", "1MiB", "-q")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"decoded.tar has SHA-256 [0-9a-f]{64} where it should have [0-9a-f]{64}", done.error)
    assert os.listdir(tmp_path) == []


def test_demo_fails_where_a_repair_does_nothing(
    tmp_path: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gfcode.pipeline import verify_set

    def idle(paths: list[str], **_: Any) -> RepairReport:
        return RepairReport(verify_set(paths), (), 0, 0.1)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("gfcode.repair_set", idle)
    done = gfcode("demo", "--size", "1MiB", "--json")
    assert done.code == 1
    assert "python.tar.002.gfs" in done.json["error"]
    assert os.listdir(tmp_path) == []


def test_demo_asks_for_room(tmp_path: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = gfcode("demo", "--size", "1000000TiB")
    assert done.code == 1
    assert "--keep DIR" in done.error
    assert os.listdir(tmp_path) == []
