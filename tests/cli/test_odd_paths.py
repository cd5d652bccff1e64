"""Paths that are empty, full, or another name of stdout."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import CONTENT, Runner
from tests.cli.test_pipes import shell


@pytest.mark.parametrize(
    "arguments",
    [
        ["encode", ""],
        ["encode", "data.bin", "--out", ""],
        ["encode", "data.bin", "--key", ""],
        ["decode", ""],
        ["decode", "shards", "-o", ""],
        ["verify", ""],
        ["repair", "shards", "--out", ""],
        ["info", ""],
        ["raw", "encode", "", "--preset", "isa-l"],
        ["demo", "--keep", ""],
    ],
)
def test_an_empty_path_is_wrong_usage(shards: Path, source: Path, gfcode: Runner, arguments: list[str]) -> None:
    """An unset variable of a script must not scatter files over the current directory."""
    before = sorted(os.listdir(source.parent))
    done = gfcode(*arguments)
    assert done.code == 2
    assert "an empty path names nothing" in done.error
    assert sorted(os.listdir(source.parent)) == before


def test_stdout_by_another_name_carries_data_only(shards: Path) -> None:
    """Text between the data would be wrong bytes with exit code 0."""
    (shards / "data.bin.001.gfs").unlink()
    done = shell("gfcode decode shards -o /dev/stdout | cmp - data.bin", shards.parent)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no file holds shards 1" in done.stderr
    done = shell("gfcode decode shards -o /dev/stdout --json | cat", shards.parent)
    assert done.returncode == 2
    assert "both want stdout" in done.stderr


def test_a_file_beside_a_terminal_or_null_device_is_reported(shards: Path, gfcode: Runner) -> None:
    assert gfcode("decode", "shards", "-o", "/dev/null", "--json").json["size"] == len(CONTENT)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("gfcode decode shards -o /dev/full", "/dev/full"),
        ("gfcode decode shards -o - > /dev/full", "stdout"),
        ("gfcode verify shards > /dev/full", "stdout"),
        ("gfcode verify shards --json > /dev/full", "stdout"),
        ("gfcode info shards > /dev/full", "stdout"),
    ],
)
def test_errors_of_writing_name_what_was_written(shards: Path, line: str, name: str) -> None:
    done = shell(line, shards.parent)
    assert (done.returncode, done.stderr) == (1, f"gfcode: error: {name}: No space left on device\n")


def test_an_output_that_cannot_be_made_is_named(shards: Path, gfcode: Runner) -> None:
    """By the name that was asked for, not by the hidden one of the time before it is complete."""
    done = gfcode("decode", "shards", "-o", "nowhere/x")
    assert (done.code, done.error) == (1, "nowhere/x: No such file or directory")


def test_info_says_when_the_file_was_changed(shards: Path, source: Path, gfcode: Runner) -> None:
    os.utime(source, ns=(0, 1_700_000_000_123_456_789))
    assert gfcode("encode", source, "--out", "again", "-q").code == 0
    lines = gfcode("info", "again/data.bin.000.gfs").out.splitlines()
    assert "mtime          2023-11-14 22:13:20.123456789 UTC" in lines
