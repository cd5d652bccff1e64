"""Ways to run the command: inside this process for speed, or as a process of its own where that is the point."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

#: The command as a process: what the `gfcode` script does, whatever PATH says.
PROGRAM = (sys.executable, "-c", "from gfcode.cli.main import run; run()")


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object that stdout holds."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line on stderr, an error message."""
        (line,) = self.err.splitlines()
        assert line.startswith("gfcode: error: ")
        return line.removeprefix("gfcode: error: ")


Runner = Callable[..., Outcome]

#: Enough for seven stripes of 4 + 2 frames of 4 KiB, the last of them short.
CONTENT = os.urandom(100_001)


@pytest.fixture
def gfcode(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run the command inside this process."""
    from gfcode.cli.main import main

    monkeypatch.delenv("GFCODE_ENGINE", raising=False)
    monkeypatch.delenv("GFCODE_DEBUG", raising=False)

    def runner(*arguments: str | Path) -> Outcome:
        capfd.readouterr()
        code = main([os.fspath(argument) for argument in arguments])
        sys.stdout.flush()
        return Outcome(code, *capfd.readouterr())

    return runner


@pytest.fixture
def process() -> Runner:
    """Run the command as a process of its own."""

    def runner(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Outcome:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GFCODE_")}
        done = subprocess.run(
            [*PROGRAM, *arguments], cwd=cwd, env=kept | environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout, done.stderr)

    return runner


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a file in the current directory, which is the test's own."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data.bin"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def shards(source: Path, gfcode: Runner) -> Path:
    """Make a folder with the 4 + 2 shards of the file."""
    assert gfcode("encode", source, "-k", "4", "-m", "2", "--frame", "4KiB", "--out", "shards", "-q").code == 0
    return source.parent / "shards"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a tree of files below `in`, in the current directory, which is the test's own."""
    from tests.cli.tree_files import make_tree

    monkeypatch.chdir(tmp_path)
    return make_tree(tmp_path)


def shard_path(folder: Path, index: int) -> Path:
    """Return the path of a shard of the file."""
    return folder / f"data.bin.{index:03}.gfs"


def corrupt(path: Path, *offsets: int) -> None:
    """Change the bytes at some offsets of a file."""
    content = bytearray(path.read_bytes())
    for offset in offsets:
        content[offset] ^= 0x55
    path.write_bytes(content)
