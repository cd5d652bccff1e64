"""Whole trees: many files at once, each its own set; what is current is passed over."""

import fcntl
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gfcode.pipeline import encode as encode_module
from gfcode.pipeline import publication
from gfcode.pipeline.files import is_temporary, temporary_name
from tests.cli.conftest import PROGRAM, Runner
from tests.cli.tree_files import CODE, FILES, contents, encode, lines, shards


def test_each_file_becomes_a_set_below_out(tree: Path, gfcode: Runner) -> None:
    done = encode(gfcode, "in", "--out", "d")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("5 files: 5 encoded, 0 replaced, 0 current, 0 skipped, 0 failed; ")
    assert set(contents(Path("d"))) == shards(*(f"in/{name}" for name in FILES))
    for name, content in FILES.items():
        assert gfcode("decode", *sorted(Path("d/in").glob(f"{name}.0*")), "-o", "back", "--force").code == 0
        assert Path("back").read_bytes() == content


def test_contents_of_the_current_directory_without_what_is_written_there(tree: Path, gfcode: Runner) -> None:
    os.chdir("in")
    for again in range(2):
        done = encode(gfcode, ".", "--out", "shards")
        assert done.code == 0
        assert set(contents(Path("shards"))) == shards(*FILES)
        assert f"5 files: {0 if again else 5} encoded" in done.out
    done = encode(gfcode, ".")
    assert done.code == 0
    assert set(contents(tree)) == set(FILES) | shards(*FILES) | {f"shards/{name}" for name in shards(*FILES)}
    # Shards are skipped, those of the other directory too, which is not in the way now.
    done = encode(gfcode, ".", "--json")
    states = [line["state"] for line in lines(done)[:-1]]
    assert (states.count("current"), states.count("skipped"), len(states)) == (5, 50, 55)


def test_several_sources_and_directories_in_turn(tree: Path, gfcode: Runner) -> None:
    assert encode(gfcode, "in/sub", "in/a", "--out", "x", "--out", "y").code == 0
    assert {name for name in os.listdir("x") if name != "sub"} == {f"a.{index:03}.gfs" for index in (0, 2, 4)}
    assert set(os.listdir("y/sub/deep")) == {f"b.txt.{index:03}.gfs" for index in (1, 3)}


def test_sources_that_would_be_one(tree: Path, gfcode: Runner) -> None:
    done = encode(gfcode, "in/a", "in/sub/a", "--out", "d")
    assert done.code == 2
    assert "in/a and in/sub/a would both be 'a'" in done.error
    assert not Path("d").exists()


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (["*.log"], {"a", "sub/a", "sub/deep/b.txt", "sub/empty"}),
        (["a"], {"sub/deep/b.txt", "sub/empty", "z.log"}),
        (["in/a", "in/sub/d*"], {"sub/a", "sub/empty", "z.log"}),
        (["deep/", "a/"], {"a", "sub/a", "sub/empty", "z.log"}),
        (["sub"], {"a", "z.log"}),
        (["[!in]*"], set()),
    ],
)
def test_exclude(tree: Path, gfcode: Runner, patterns: list[str], left: set[str]) -> None:
    done = encode(gfcode, "in", "--out", "d", *(word for pattern in patterns for word in ("--exclude", pattern)))
    assert done.code == 0
    assert set(contents(Path("d"))) == shards(*(f"in/{name}" for name in left))


def test_what_is_no_file_is_skipped_and_said(tree: Path, gfcode: Runner) -> None:
    (tree / "link").symlink_to("a")
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "fifo")
    (tree / temporary_name("x")).write_text("unfinished")
    done = encode(gfcode, "in", "--out", "d", "--json")
    assert done.code == 0
    skipped = {line["source"]: line["reason"] for line in lines(done)[:-1] if line["state"] == "skipped"}
    assert {name: reason for name, reason in skipped.items() if not is_temporary(os.path.basename(name))} == {
        "in/link": "a symbolic link", "in/loop": "a symbolic link", "in/fifo": "not a regular file",
    }  # fmt: skip
    assert len(skipped) == 4
    assert lines(done)[-1]["summary"]["files"] == {
        "encoded": 5, "replaced": 0, "current": 0, "skipped": 4, "failed": 0,
    }  # fmt: skip
    assert "in/fifo: not encoded: not a regular file" in encode(gfcode, "in", "--out", "d").out


def test_one_file_that_fails_does_not_stop_the_others(tree: Path, gfcode: Runner) -> None:
    (tree / ("n" * 250)).write_text("too long a name")
    done = encode(gfcode, "in", "nowhere", "--out", "d", "--json")
    assert done.code == 1
    errors = [line for line in lines(done)[:-1] if line["state"] == "failed"]
    assert {os.path.basename(line["source"]) for line in errors} == {"n" * 250, "nowhere"}
    assert len(done.err.splitlines()) == 2
    assert f"names of {250 + 8} bytes; give a shorter name" in done.err
    assert "nowhere: No such file or directory" in done.err
    assert (lines(done)[-1]["exit_code"], lines(done)[-1]["summary"]["files"]["encoded"]) == (1, 5)
    assert set(contents(Path("d"))) == shards(*(f"in/{name}" for name in FILES))


def test_encoding_again_passes_over_what_is_current(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in", "--out", "d")
    before = {path: path.stat().st_ino for path in Path("d").rglob("*.gfs")}
    os.utime(tree / "sub/deep/b.txt")  # another time, but the same content
    done = encode(gfcode, "in", "--out", "d")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("5 files: 0 encoded, 0 replaced, 5 current")
    assert {path: path.stat().st_ino for path in Path("d").rglob("*.gfs")} == before


@pytest.mark.parametrize("content", [b"b" * 5000, b"a" * 4999, b"a" * 4999 + b"!", b"a" * 5001])
def test_what_changed_is_encoded_when_asked(tree: Path, gfcode: Runner, content: bytes) -> None:
    encode(gfcode, "in", "--out", "d")
    before = contents(Path("d"))
    (tree / "a").write_bytes(content)
    done = encode(gfcode, "in", "--out", "d")
    assert done.code == 1
    assert done.error == "in/a: it has changed since it was encoded; --update encodes it anew"
    assert contents(Path("d")) == before
    done = encode(gfcode, "in", "--out", "d", "--update")
    assert done.code == 0
    assert "1 replaced, 4 current" in done.out.splitlines()[-1]
    assert gfcode("decode", *sorted(Path("d/in").glob("a.0*")), "-o", "back").code == 0
    assert Path("back").read_bytes() == content
    assert {name for name, old in before.items() if contents(Path("d"))[name] != old} == shards("in/a")


def test_update_of_a_single_file(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in/a", "--out", "d")
    assert "1 current" in encode(gfcode, "in/a", "--out", "d", "--update").out
    (tree / "a").write_bytes(b"new")
    assert "1 replaced" in encode(gfcode, "in/a", "--out", "d", "--update").out
    assert encode(gfcode, "in/a", "--out", "d").code == 1


def test_other_parameters_are_a_change(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in", "--out", "d")
    done = gfcode("encode", "in", "-k", "2", "-m", "1", "--out", "d")
    assert done.code == 1
    assert len(done.err.splitlines()) == 5
    assert "its set in d/in has other parameters; --update encodes it anew" in done.err
    assert gfcode("encode", "in", "-k", "2", "-m", "1", "--out", "d", "--update").code == 0
    assert set(contents(Path("d"))) == shards(*(f"in/{name}" for name in FILES), n=3)


def test_what_is_no_shard_is_not_overwritten(tree: Path, gfcode: Runner) -> None:
    Path("d/in").mkdir(parents=True)
    Path("d/in/a.003.gfs").write_text("precious")
    done = encode(gfcode, "in", "--out", "d")
    assert done.code == 1
    assert "d/in/a.003.gfs is there, and is no shard that can be read" in done.error
    assert Path("d/in/a.003.gfs").read_text() == "precious"


@pytest.mark.parametrize("loss", ["gone", "short"])
def test_incomplete_set_is_completed(tree: Path, gfcode: Runner, loss: str) -> None:
    encode(gfcode, "in", "--out", "d")
    if loss == "gone":
        Path("d/in/a.004.gfs").unlink()
    else:
        os.truncate("d/in/a.004.gfs", 5000)
    done = encode(gfcode, "in", "--out", "d")
    assert done.code == 0
    assert "(again: its set was incomplete)" in done.out
    assert "intact" in gfcode("verify", "d").out.splitlines()[0]
    assert gfcode("verify", "d").code == 0


def test_shards_of_two_sets_under_one_name(tree: Path, gfcode: Runner) -> None:
    """What an update leaves that was killed in the middle: the first shard says that the set is current."""
    encode(gfcode, "in", "--out", "d")
    (tree / "a").write_bytes(b"b" * 5000)
    encode(gfcode, "in", "--out", "e")
    os.replace("e/in/a.000.gfs", "d/in/a.000.gfs")
    before = contents(Path("d"))
    done = encode(gfcode, "in", "--out", "d")
    assert done.error == "in/a: shards of 2 sets in d/in have its name; --update encodes it anew"
    assert contents(Path("d")) == before
    assert "1 replaced, 4 current" in encode(gfcode, "in", "--out", "d", "--update").out
    assert gfcode("verify", "d").code == 0


def test_empty_shards_are_lost_ones(tree: Path, gfcode: Runner) -> None:
    """What a loss of power leaves of a run that flushed nothing."""
    encode(gfcode, "in", "--out", "d")
    for path in Path("d/in").glob("a.*"):
        os.truncate(path, 0)
    assert "(again: its set was incomplete)" in encode(gfcode, "in", "--out", "d").out
    assert gfcode("verify", "d").code == 0


def test_files_of_interrupted_runs_beside_a_current_set(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in", "--out", "d")
    left = Path("d/in") / temporary_name("a.001.gfs")
    left.write_bytes(Path("d/in/a.001.gfs").read_bytes())
    with left.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # a run is at work on it
        assert "5 current" in encode(gfcode, "in", "--out", "d").out
    assert left.exists()
    done = encode(gfcode, "in", "--out", "d")
    assert "(again: an interrupted run has left files beside its set)" in done.out
    assert not left.exists()
    assert "5 current" in encode(gfcode, "in", "--out", "d").out


def test_a_shard_that_cannot_be_read_is_not_replaced_unasked(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in", "--out", "d")
    Path("d/in/a.003.gfs").write_text("precious")
    done = encode(gfcode, "in", "--out", "d")
    assert "d/in/a.003.gfs is there, and is no shard that can be read; --update" in done.error
    assert Path("d/in/a.003.gfs").read_text() == "precious"
    assert encode(gfcode, "in", "--out", "d", "--update").code == 0


def test_key_from_a_pipe_is_read_once(tree: Path) -> None:
    """A second reading of what the shell's <(...) gives has nothing, or waits for ever."""
    key = os.urandom(32)
    for again in range(2):
        os.utime(tree / "a", ns=(again, again))  # so that contents are compared
        reading, writing = os.pipe()
        os.write(writing, key)
        os.close(writing)
        program = [*PROGRAM, "encode", *CODE, "in", "--out", "d", "--key", f"/dev/fd/{reading}"]
        done = subprocess.run(program, pass_fds=[reading], capture_output=True, text=True, timeout=60, check=False)
        os.close(reading)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"5 files: {0 if again else 5} encoded, 0 replaced, {5 if again else 0} current" in done.stdout


def test_another_checksum_is_a_change(tree: Path, gfcode: Runner) -> None:
    encode(gfcode, "in/a", "--out", "d")
    done = encode(gfcode, "in/a", "in/z.log", "--hash", "blake3", "--out", "d")
    assert "in/a: its set in d has other parameters; --update encodes it anew" in done.error
    assert encode(gfcode, "in/a", "--hash", "blake3", "--out", "d", "--update").code == 0
    assert gfcode("verify", *Path("d").glob("a.*"), "--json").json["state"] == "intact"


def test_a_file_that_becomes_a_fifo_holds_up_nothing(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = encode_module.write_set

    def write_set(files: Any, source: Any, *arguments: Any, **options: Any) -> Any:
        if source == "in/a":
            (tree / "a").unlink()
            os.mkfifo(tree / "a")
        return real(files, source, *arguments, **options)

    monkeypatch.setattr("gfcode.pipeline.tree_encode.write_set", write_set)
    done = encode(gfcode, "in", "--out", "d")
    assert done.error == "in/a: in/a is no regular file any more; encode it again"
    assert set(contents(Path("d"))) == shards(*(f"in/{name}" for name in FILES if name != "a"))


def test_names_taken_meanwhile_cost_one_set_only(tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    real = publication._flush

    def flush(*arguments: Any, **options: Any) -> None:
        Path("d/in/sub/a.001.gfs").write_text("another's")
        real(*arguments, **options)

    monkeypatch.setattr(publication, "_flush", flush)
    done = encode(gfcode, "in", "--out", "d")
    assert done.code == 1
    assert "in/sub/a: " in done.error
    assert "a.001.gfs exists" in done.error
    wanted = shards(*(f"in/{name}" for name in FILES if name != "sub/a")) | {"in/sub/a.001.gfs"}
    assert set(contents(Path("d"))) == wanted


@pytest.mark.parametrize("call", [0, 1])
def test_failing_flush_leaves_no_names(tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Neither the flush of the contents nor that of the names may fail and leave a set that looks whole."""
    real, count = publication._sync_file_systems, iter(range(10))

    def sync(files: Any) -> bool:
        if next(count) == call:
            raise OSError(5, "Input/output error")
        return real(files)

    monkeypatch.setattr(publication, "_sync_file_systems", sync)
    done = encode(gfcode, "in", "--out", "d")
    assert done.code == 1
    assert "Input/output error" in done.error
    assert contents(Path()) == {f"in/{name}": content for name, content in FILES.items()}
    assert not Path("d").exists()


def test_without_syncfs_files_are_flushed_one_by_one(
    tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="5.7.19-generic"))
    flushed: set[int] = set()
    real = os.fsync

    def fsync(fd: int) -> None:
        flushed.add(os.fstat(fd).st_ino)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    assert encode(gfcode, "in", "--out", "d").code == 0
    assert {path.stat().st_ino for path in Path("d").rglob("*.gfs")} <= flushed
    assert {Path(name).stat().st_ino for name in ("d/in", "d/in/sub", "d/in/sub/deep")} <= flushed


def test_many_small_files_are_published_in_groups(tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(200):
        (tree / f"f{index}").write_bytes(os.urandom(1000))
    syncs: list[int] = []
    real = publication._sync_file_systems

    def sync(files: Any) -> bool:
        syncs.append(len(files))
        return real(files)

    monkeypatch.setattr(publication, "_sync_file_systems", sync)
    done = encode(gfcode, "in", "--out", "d")
    assert done.code == 0
    assert syncs == [320, 320, 320, 320, 320, 320, 65, 65]
    assert gfcode("verify", "d", "-q").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["in", "--archive"], "an archive has no name"),
        (["in", "--archive", "--name", "x", "--update"], "an archive is made anew, with --force to replace one"),
        (["in", "--name", "x"], "--name goes with one file"),
        (["in", "-"], "- is stdin"),
        (["-", "--archive", "--name", "x"], "stdin cannot be put into an archive"),
        (["-", "--update", "--name", "x"], "--name goes with one file"),
        (["-", "--update"], "not with stdin"),
        (["in", "--exclude", ""], "an empty pattern excludes nothing"),
        (["in", "--archive", "--name", "x", "--exclude", ""], "an empty pattern excludes nothing"),
        ([], "Missing argument"),
    ],
)
def test_options_that_do_not_go_together(tree: Path, gfcode: Runner, arguments: list[str], words: str) -> None:
    done = encode(gfcode, *arguments, "--out", "d")
    assert (done.code, Path("d").exists()) == (2, False)
    assert words in done.error


def test_interrupted_tree_leaves_nothing(tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = encode_module.write_set, iter(range(10))

    def write_set(*arguments: Any, **options: Any) -> Any:
        if next(count) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr("gfcode.pipeline.tree_encode.write_set", write_set)
    assert encode(gfcode, "in", "--out", "d").code == 130
    assert not Path("d").exists()
