"""Names of files as file systems allow them: they come through encoding, JSON, repair and decoding unchanged."""

import json
import os
import shutil
import unicodedata
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, Runner
from tests.cli.tree_files import encode

COMPOSED = unicodedata.normalize("NFC", "é.txt")
DECOMPOSED = unicodedata.normalize("NFD", "é.txt")
NAMES = {
    "composed": COMPOSED,
    "decomposed": DECOMPOSED,
    "newline": "two\nlines",
    "control": "\x1b[31mred\x07\x7f",
    "right to left": "abc\u202egpj.exe",
    "dash": "-k",
    "long option": "--json",
    "just a dash": "--",
    "spaces": "  a b  ",
    "quotes": 'it\'s "here" $(id) `id` \\ *?[x]',
    "not UTF-8": os.fsdecode(b"caf\xe9\xff"),
    "half a character": os.fsdecode(b"\xe2\x82"),
    "outside the plane": "𝔤𝔣 👩‍👩‍👧",
    "as a shard": "x.000.gfs",
    "hidden": ".bashrc",
    "as a temporary": ".x.0123456789abcdef.tm",
    "longest": "n" * (255 - len(".000.gfs")),
    "longest in UTF-8": "é" * 123 + "x",
}


def wiped(directory: Path, *indices: int) -> dict[str, bytes]:
    """Remove shards; return what all shards were."""
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    for name in before:
        if name.endswith(tuple(f".{index:03}.gfs" for index in indices)):
            (directory / name).unlink()
    return before


def says_nothing_raw(done: Outcome) -> bool:
    """Whether a terminal could take nothing in the output for a command or another line."""
    return all(line.isprintable() for line in (done.out + done.err).split("\n"))


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_name_comes_back(gfcode: Runner, name: str) -> None:
    Path("in").mkdir()
    path = Path("in") / name
    path.write_bytes(os.urandom(10_000))
    content = path.read_bytes()
    done = encode(gfcode, "--out", "d", "--", str(path))
    assert (done.code, says_nothing_raw(done)) == (0, True)
    assert sorted(os.listdir("d")) == [f"{name}.{index:03}.gfs" for index in range(5)]
    before = wiped(Path("d"), 0, 4)
    report = gfcode("verify", "d", "--json")
    assert report.out.isascii()
    assert (report.json["state"], report.json["name"]) == ("repairable", name)
    assert report.json["shards"][1]["path"] == f"d/{name}.001.gfs"
    for command in ("verify", "info"):
        assert says_nothing_raw(gfcode(command, "d"))
    done = gfcode("repair", "d")
    assert (done.code, says_nothing_raw(done)) == (0, True)
    assert {path.name: path.read_bytes() for path in Path("d").iterdir()} == before
    done = gfcode("decode", "d")
    assert (done.code, says_nothing_raw(done)) == (0, True)
    assert Path(name).read_bytes() == content


def test_all_names_in_one_tree(gfcode: Runner) -> None:
    for directory in ("in", "in/-q", os.fsdecode(b"in/\xff\n")):
        Path(directory).mkdir()
        for number, name in enumerate(NAMES.values()):
            (Path(directory) / name).write_bytes(bytes([number]) * 1000)
    done = encode(gfcode, "in", "--out", "d", "--json")
    assert (done.code, done.out.isascii()) == (0, True)
    sources = {json.loads(line)["source"] for line in done.out.splitlines()[:-1]}
    assert sources == {
        f"{directory}/{name}" for directory in ("in", "in/-q", os.fsdecode(b"in/\xff\n")) for name in NAMES.values()
    }
    assert says_nothing_raw(encode(gfcode, "in", "--out", "d"))
    for path in Path("d").rglob("*.001.gfs"):
        path.unlink()
    done = gfcode("repair", "d")
    assert (done.code, says_nothing_raw(done)) == (0, True)
    assert done.out.splitlines()[-1].startswith(f"{3 * len(NAMES)} sets: {3 * len(NAMES)} intact")
    assert f"{3 * len(NAMES)} current" in encode(gfcode, "in", "--out", "d").out
    done = gfcode("scrub", "d", "--state", "state", "--json")
    assert (done.code, done.json["checked"]) == (0, 3 * len(NAMES))


def test_names_that_differ_in_case_or_form_only(gfcode: Runner) -> None:
    names = ("a", "A", COMPOSED, DECOMPOSED)
    Path("in").mkdir()
    for name in names:
        Path("in", name).write_text(name)
    if len(os.listdir("in")) < len(names):
        pytest.skip("this file system takes them for one name")
    assert encode(gfcode, "in", "--out", "d").code == 0
    assert len(os.listdir("d/in")) == 20
    for name in names:
        shards = [str(path) for path in Path("d/in").iterdir() if path.name.startswith(f"{name}.0")]
        assert gfcode("decode", *shards, "-o", "back", "--force").code == 0
        assert Path("back").read_text() == name


@pytest.mark.parametrize("name", ["n" * 248, "n" * 255, "é" * 127])
def test_names_too_long_for_a_suffix_are_refused(gfcode: Runner, name: str) -> None:
    Path(name).write_text("x")
    length = len(os.fsencode(name)) + len(".000.gfs")
    done = encode(gfcode, name, "--out", "d")
    assert done.code == 2
    assert f"would have names of {length} bytes; give a shorter name" in done.error
    assert not Path("d").exists()
    assert encode(gfcode, name, "--name", "short", "--out", "d").code == 0
    # Elsewhere than where its name is too long, the file comes back as any other.
    shutil.rmtree("d")
    assert encode(gfcode, ".", "--out", "d").code == 1


def test_state_of_a_directory_with_such_a_name(gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = os.fsdecode(b"\xff-\n")
    Path("f").write_text("x")
    encode(gfcode, "f", "--out", directory)
    os.unlink(os.path.join(directory, "f.001.gfs"))
    for _ in range(2):
        done = gfcode("scrub", directory, "--state", "state", "--json")
        assert (done.code, done.json["directory"]) == (3, directory)
