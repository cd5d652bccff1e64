"""Whole trees in one archive."""

import os
import socket
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gfcode.pipeline import archive
from gfcode.pipeline.probe import open_regular
from tests.cli.conftest import Runner
from tests.cli.tree_files import FILES, contents, encode, shards


def test_archive(tree: Path, gfcode: Runner) -> None:
    (tree / "link").symlink_to("a")
    os.link(tree / "a", tree / "twin")
    (tree / "hollow").mkdir()
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind("in/socket")
        done = encode(gfcode, "in", "--archive", "--name", "in.tar", "--out", "d", "--exclude", "*.log", "--json")
    assert done.code == 0
    assert (done.json["name"], set(os.listdir("d"))) == ("in.tar", shards("in.tar"))
    assert gfcode("decode", "d", "-o", "in.tar").code == 0
    with tarfile.open("in.tar") as tar:
        tar.extractall("back", filter="data")
    assert contents(Path("back/in")) == {
        **{name: content for name, content in FILES.items() if name != "z.log"}, "link": FILES["a"], "twin": FILES["a"],
    }  # fmt: skip
    assert os.readlink("back/in/link") == "a"
    assert Path("back/in/twin").stat().st_ino == Path("back/in/a").stat().st_ino
    assert Path("back/in/hollow").is_dir()


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize(
    ("change", "message"), [(lambda path: os.truncate(path, 10), "became shorter"), (grow, "changed")]
)
def test_archive_of_a_file_that_changes_is_none(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], message: str
) -> None:
    real: Any = tarfile.TarFile.addfile

    def addfile(self: Any, info: Any, file: Any = None) -> None:
        if info.name == "in/sub/deep/b.txt":
            change(tree / "sub/deep/b.txt")
        real(self, info, file)

    monkeypatch.setattr(tarfile.TarFile, "addfile", addfile)
    done = encode(gfcode, "in", "--archive", "--name", "in.tar", "--out", "d")
    assert done.code == 1
    assert f"b.txt {message} while it was read; encode again" in done.error
    assert not Path("d").exists()


def test_archive_of_a_file_that_becomes_a_fifo_is_none(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: str) -> int:
        if path == "in/a":
            (tree / "a").unlink()
            os.mkfifo(tree / "a")
        return open_regular(path)

    monkeypatch.setattr(archive, "open_regular", opened)
    done = encode(gfcode, "in", "--archive", "--name", "in.tar", "--out", "d")
    assert (done.code, done.error) == (1, "in/a is no regular file any more; encode again")
    assert not Path("d").exists()


def test_archive_of_a_file_that_cannot_be_read_names_it(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def addfile(self: Any, info: Any, file: Any = None) -> None:
        if info.name == "in/z.log":
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(tarfile.TarFile, "addfile", addfile)
    done = encode(gfcode, "in", "--archive", "--name", "in.tar", "--out", "d")
    assert (done.code, done.error) == (1, "in/z.log: Input/output error")


def test_archive_is_replaced_when_asked(tree: Path, gfcode: Runner) -> None:
    arguments = ("in", "--archive", "--name", "in.tar", "--out", "d")
    assert encode(gfcode, *arguments).code == 0
    before = contents(Path("d"))
    done = encode(gfcode, *arguments)
    assert (done.code, done.error) == (1, "d/in.tar.000.gfs exists; force replaces the set")
    assert contents(Path("d")) == before
    assert encode(gfcode, *arguments, "--exclude", "in/sub", "--force").code == 0
    assert gfcode("decode", "d", "-o", "in.tar").code == 0
    with tarfile.open("in.tar") as tar:
        assert [info.name for info in tar if info.isfile()] == ["in/a", "in/z.log"]


def test_archive_without_one_of_its_files_is_none(tree: Path, gfcode: Runner) -> None:
    before = set(threading.enumerate())
    done = encode(gfcode, "in", "nowhere", "--archive", "--name", "in.tar", "--out", "d")
    assert (done.code, done.error) == (1, "nowhere: No such file or directory")
    assert set(threading.enumerate()) <= before
    assert not Path("d").exists()
