"""Verify and repair at any depth, and sets among others."""

import os
from pathlib import Path
from typing import Any

import pytest

from gfcode.pipeline import candidates, grouping
from gfcode.pipeline.probe import open_regular
from tests.cli.conftest import Runner, corrupt
from tests.cli.tree_files import CODE, contents, encode, lines


def test_verify_and_repair_at_any_depth(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in", "--out", "d")
    original = contents(Path("d"))
    (Path("d/in/notes.txt")).write_text("no shard")
    Path("d/in/a.001.gfs").unlink()
    corrupt(Path("d/in/sub/a.002.gfs"), 4700)
    done = gfcode("verify", "d")
    assert (done.code, done.err) == (3, "")
    assert done.out.splitlines()[:-1] == [
        "d/in/a: 1 of 5 shards of 'a' can be repaired: 1",
        "d/in/sub/a: 1 of 5 shards of 'a' can be repaired: 2",
        "d/in/sub/deep/b.txt: intact",
        "d/in/sub/empty: intact",
        "d/in/z.log: intact",
    ]
    assert done.out.splitlines()[-1].startswith("5 sets: 3 intact, 2 repairable, 0 beyond repair, 0 failed; ")
    done = gfcode("verify", "d", "--json")
    assert [line["state"] for line in lines(done)[:-1]] == ["repairable", "repairable", "intact", "intact", "intact"]
    summary = lines(done)[-1]
    assert (summary["exit_code"], summary["summary"]["sets"], summary["summary"]["repairable"]) == (3, 5, 2)
    done = gfcode("repair", "d")
    assert done.code == 0
    assert done.out.splitlines()[0] == "d/in/a: 1 of 5 shards of 'a' can be repaired: 1; repaired 1 shard"
    assert contents(Path("d")) == {**original, "in/notes.txt": b"no shard"}
    assert gfcode("verify", "d").code == 0
    assert gfcode("verify", "d", "-q").out == ""


def test_a_lost_set_among_others(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in", "--out", "d")
    for index in (0, 1, 2):
        Path(f"d/in/a.{index:03}.gfs").unlink()
    for path in Path("d/in/sub").glob("a.*"):
        corrupt(path, 600)
    corrupt(Path("d/in/z.log.000.gfs"), 600)
    done = gfcode("repair", "d")
    assert done.code == 4
    assert done.out.splitlines()[0].startswith("d/in/a: 1 of 1 stripes of 'a' are beyond repair")
    assert done.error.startswith("d/in/sub/a: d/in/sub/a.000.gfs: 5 shards of a set without a sound metadata frame")
    assert done.out.splitlines()[-1].startswith("5 sets: 3 intact, 0 repairable, 2 beyond repair, 0 failed; ")
    done = gfcode("verify", "d", "--json")
    assert done.code == 4
    summary = lines(done)[-1]["summary"]
    assert (summary["intact"], summary["beyond repair"]) == (3, 2)


def test_a_wiped_directory_gets_its_shards_back(tree: Path, gfcode: Runner) -> None:
    outs = [word for name in "xyzuv" for word in ("--out", name)]
    encode(gfcode, "in", *outs)
    original = contents(Path())
    for path in sorted(Path("z").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert gfcode("verify", *"xyzuv").code == 3
    assert gfcode("repair", *"xyzuv").code == 0
    assert contents(Path()) == original


def test_repaired_shards_elsewhere_stand_as_their_sets_do(tree: Path, gfcode: Runner) -> None:
    """Two sets of one name must not meet there."""
    encode(gfcode, "in", "--out", "d")
    original = contents(Path("d"))
    Path("d/in/a.001.gfs").unlink()
    Path("d/in/sub/a.001.gfs").unlink()
    corrupt(Path("d/in/sub/deep/b.txt.002.gfs"), 4700)
    before = contents(Path("d"))
    names = ("in/a.001.gfs", "in/sub/a.001.gfs", "in/sub/deep/b.txt.002.gfs")
    for _ in range(2):
        assert gfcode("repair", "d", "--out", "fixed").code == 0
        assert contents(Path("fixed")) == {name: original[name] for name in names}
    assert contents(Path("d")) == before
    assert gfcode("repair", "d/in/sub/deep", "--out", "one").code == 0
    assert set(contents(Path("one"))) == {"b.txt.002.gfs"}
    assert gfcode("repair", *map(str, Path("d/in/sub/deep").iterdir()), "--out", "two").code == 0
    assert set(contents(Path("two"))) == {"b.txt.002.gfs"}


def test_one_set_far_down_is_shown_as_one(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in/sub/deep", "--out", "d")
    done = gfcode("verify", "d")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "intact"
    assert gfcode("verify", "d", "--json").json["name"] == "b.txt"


@pytest.mark.parametrize("among", ["others", "none"])
def test_a_directory_that_cannot_be_listed_is_a_failure(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch, among: str
) -> None:
    """Nobody knows which sets are in it: nothing that goes through all of them may call the tree intact."""
    encode(gfcode, "in", "--out", "d")
    if among == "none":
        for path in (*Path("d/in").glob("*.gfs"), *Path("d/in/sub").glob("*.gfs")):
            path.unlink()
    real = os.listdir

    def listdir(path: Any = ".") -> Any:
        if str(path).endswith("deep"):
            raise OSError(5, "Input/output error", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    for command in ("verify", "repair"):
        done = gfcode(command, "d")
        assert done.code == 1
        assert done.error == "d/in/sub/deep: the directory cannot be listed: Input/output error"
    done = gfcode("scrub", "d", "--state", "state", "--json")
    assert (done.code, done.json["state"]) == (1, "failed")
    assert [problem["path"] for problem in done.json["problems"]] == ["d/in/sub/deep"]
    monkeypatch.setattr(os, "listdir", real)
    done = gfcode("scrub", "d", "--state", "state", "--json")
    assert (done.code, done.json["state"], done.json["problems"]) == (0, "intact", [])


@pytest.mark.parametrize("flat", [False, True])
def test_a_set_of_which_no_file_can_be_read_is_a_failure(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch, flat: bool
) -> None:
    """Beside others that are intact; one shard that cannot be read is a lost one of its set."""
    if flat:
        encode(gfcode, "in/a", "in/z.log", "--out", "d")
        place, bad, count = "d", "d/z.log", 2
    else:
        encode(gfcode, "in", "--out", "d")
        place, bad, count = "d", "d/in/sub/a", 5

    def opened(path: str) -> int:
        if path.startswith(f"{bad}."):
            raise OSError(5, "Input/output error", path)
        return open_regular(path)

    monkeypatch.setattr(candidates, "open_regular", opened)
    for command in ("verify", "repair"):
        done = gfcode(command, place)
        assert (done.code, done.error) == (1, f"{bad}: 5 shards cannot be read: {bad}.000.gfs: Input/output error")
        assert f"{count} sets: {count - 1} intact, 0 repairable, 0 beyond repair, 1 failed" in done.out
    done = gfcode("scrub", place, "--state", "state", "--json")
    assert (done.code, done.json["state"], len(done.json["problems"])) == (1, "failed", 1)
    bad += ".001"
    done = gfcode("verify", place)
    assert (done.code, done.err) == (3, "")


def test_a_set_over_two_places_with_one_that_cannot_be_read(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gfcode("encode", "in", "-k", "2", "-m", "2", "--out", "x", "--out", "y").code == 0

    def opened(path: str) -> int:
        if path.startswith("y/"):
            raise OSError(5, "Input/output error", path)
        return open_regular(path)

    monkeypatch.setattr(candidates, "open_regular", opened)
    done = gfcode("verify", "x", "y")
    assert (done.code, done.err) == (3, "")
    assert "5 sets: 0 intact, 5 repairable, 0 beyond repair, 0 failed" in done.out


def test_a_directory_that_is_named_may_be_gone(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in/a", "--out", "x", "--out", "y")
    assert gfcode("verify", "x", "y", "nowhere").code == 0
    assert "not used: nowhere: No such file or directory" in gfcode("verify", "x", "y", "nowhere").out


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_sets_that_change_before_their_turn(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """One is removed, one replaced, one repaired by another run, while the first is at work."""
    encode(gfcode, "in", "--out", "d")
    Path("d/in/sub/deep/b.txt.001.gfs").unlink()
    real = grouping._is_there
    done: list[Any] = []

    def is_there(file: Any) -> bool:
        if not done:
            done.append(file)
            for path in Path("d/in/sub").glob("a.*"):
                path.unlink()
            (tree / "z.log").write_bytes(b"new")
            assert gfcode("encode", "in/z.log", *CODE, "--out", "d/in", "--force", "-q").code == 0
            assert gfcode("repair", "d/in/sub/deep", "-q").code == 0
            Path("d/in/sub/deep/b.txt.002.gfs").rename("d/in/sub/deep/moved")
        return real(file)

    monkeypatch.setattr(grouping, "_is_there", is_there)
    done_last = gfcode(command, "d")
    assert done_last.code == 1
    gone = "the set was removed or replaced since it was found; run again"
    assert done_last.err.splitlines() == [f"gfcode: error: d/in/sub/a: {gone}", f"gfcode: error: d/in/z.log: {gone}"]
    assert done_last.out.splitlines()[:3] == ["d/in/a: intact", "d/in/sub/deep/b.txt: intact", "d/in/sub/empty: intact"]


def test_one_of_many_sets_by_its_id(tree: Path, gfcode: Runner) -> None:
    reports = lines(encode(gfcode, "in", "--out", "d", "--json"))[:-1]
    done = gfcode("verify", "d", "--set", reports[2]["set_id"], "--json")
    assert (done.code, done.json["name"]) == (0, reports[2]["name"])
    assert "no set has an id that begins with '000" in gfcode("verify", "d", "--set", "0" * 32).error
    assert gfcode("verify", "d", "--set", "xyz").code == 2
    done = gfcode("decode", "d/in", "-o", "back")
    assert done.code == 1
    assert "choose one by its id" in done.error


def test_tree_of_keyed_sets(tree: Path, gfcode: Runner) -> None:
    Path("key").write_bytes(os.urandom(32))
    assert encode(gfcode, "in", "--out", "d", "--key", "key").code == 0
    assert "5 current" in encode(gfcode, "in", "--out", "d", "--key", "key").out
    os.utime(tree / "a")
    assert "5 current" in encode(gfcode, "in", "--out", "d", "--key", "key").out
    assert gfcode("verify", "d", "--key", "key").code == 0
    done = gfcode("verify", "d")
    assert done.code == 1
    assert len(done.err.splitlines()) == 5
    assert "the shard is keyed" in done.err
    assert encode(gfcode, "in", "--out", "d").code == 1
    encode(gfcode, "in/a", "--out", "d/in/sub/plain")
    done = gfcode("verify", "d", "--key", "key")
    assert done.code == 1
    assert "the shard is not keyed" in done.error
