"""README.md: its commands and code run as they stand, its tables say what the code says."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from gfcode.cli.exits import EXIT_CODES
from gfcode.engine.registry import ENGINES
from tests.docs.fences import ROOT, Block, fences, run_python, run_shell

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[Block]:
    """Return the fenced blocks of a language."""
    return [block for block in fences(README) if block.language == language]


@pytest.fixture
def folder(scratch: Path) -> Path:
    """Make a folder with the file that README's commands begin with."""
    (scratch / "big.tar").write_bytes(os.urandom(3_000_000))
    return scratch


def test_commands(folder: Path, binaries: Path) -> None:
    assert run_shell(blocks("sh"), folder, binaries) >= 10
    content = (folder / "big.tar").read_bytes()
    assert (folder / "restored.tar").read_bytes() == content
    assert len(list(folder.glob("disk?/big.tar.*.gfs"))) == 14


def test_code(folder: Path, binaries: Path) -> None:
    assert sum(block.text.count("gfcode.") for block in blocks("python")) >= 5
    run_python(blocks("python"), folder, binaries)
    assert (folder / "again.tar").read_bytes() == (folder / "big.tar").read_bytes()


def test_make_targets_exist() -> None:
    targets = re.findall(
        r"^    make (\w+)", README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {"demo", "test", "lint", "setup"} <= set(targets)
    done = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_table_of_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", README, re.MULTILINE)
    assert rows == [(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()]


def test_table_of_engines() -> None:
    section = README.partition("\n## Engines\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` ", section, re.MULTILINE)) == set(ENGINES)


def test_map_is_of_the_present_format() -> None:
    """The pasted map has the lines that the command draws: heading, 14 shards, spare, legend, verdict."""
    (picture,) = blocks("text")
    lines = picture.text.splitlines()
    assert re.fullmatch(r"python\.tar: .* MiB, 10 \+ 4 shards, \d+ stripes, powers, w = 8, packets.*", lines[0])
    assert [line.split()[0] for line in lines[1:16]] == [*map(str, range(14)), "spare"]
    assert len({len(line.split()[1]) for line in lines[1:16]}) == 1
    assert lines[16].startswith("█ good  x damaged  ░ missing   a column is ")
    assert lines[17] == "spare: frames that a stripe can still lose, ! beyond repair"
    assert lines[18:] == ["damaged: repairable: run `gfcode repair shards/*`"]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []
