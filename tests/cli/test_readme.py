"""README.md: its commands and code run as they stand, its tables say what the code says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gfcode.cli.exits import EXIT_CODES
from gfcode.engine.registry import ENGINES
from tests.cli.test_pipes import SHELL_NAME

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with the file that README's commands begin with."""
    (tmp_path / "big.tar").write_bytes(os.urandom(3_000_000))
    return tmp_path


def test_commands(folder: Path) -> None:
    """Every line is run by bash, and exits with what its comment says, or 0."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) >= 10
    script = "set -o pipefail\n" + SHELL_NAME
    for line in lines:
        expected = re.search(r"# exit code (\d+)$", line)
        code = int(expected[1]) if expected else 0
        script += f'{line}\ncode=$?; [ $code -eq {code} ] || {{ echo "exit code $code:" {line!r} >&2; exit 1; }}\n'
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content = (folder / "big.tar").read_bytes()
    assert (folder / "restored.tar").read_bytes() == content
    assert len(list(folder.glob("disk?/big.tar.*.gfs"))) == 14


def test_code(folder: Path) -> None:
    """All blocks of Python make one program."""
    program = "\n".join(blocks("python"))
    assert program.count("gfcode.") >= 5
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "again.tar").read_bytes() == (folder / "big.tar").read_bytes()


def test_make_targets_exist() -> None:
    targets = re.findall(r"^    make (\w+)", README + (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
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
    lines = picture.splitlines()
    assert re.fullmatch(r"python\.tar: .* MiB, 10 \+ 4 shards, \d+ stripes, powers, w = 8, packets.*", lines[0])
    assert [line.split()[0] for line in lines[1:16]] == [*map(str, range(14)), "spare"]
    assert len({len(line.split()[1]) for line in lines[1:16]}) == 1
    assert lines[16].startswith("█ good  x damaged  ░ missing   a column is ")
    assert lines[17] == "spare: frames that a stripe can still lose, ! beyond repair"
    assert lines[18:] == ["damaged: repairable: run `gfcode repair shards/*`"]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README + (ROOT / "CONTRIBUTING.md").read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []
