"""`gfcode scrub`: passes over many sets, in runs that go on where the last one ended."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from gfcode.cli.scrub import byte_rate, duration
from gfcode.pipeline.shardset import ShardSet
from tests.cli.conftest import PROGRAM, Outcome, Runner, corrupt
from tests.cli.tree_files import CODE, contents, encode

Scrub = Callable[..., Outcome]


@pytest.fixture
def scrub(tree: Path, gfcode: Runner) -> Scrub:
    assert encode(gfcode, "in", "--out", "d").code == 0
    return lambda *arguments: gfcode("scrub", "d", "--state", "state", "--json", *arguments)


def test_a_pass_over_intact_sets(scrub: Scrub, gfcode: Runner) -> None:
    before = contents(Path("d"))
    done = scrub()
    assert (done.code, done.err) == (0, "")
    report = done.json
    assert (report["state"], report["complete"], report["sets"], report["checked"]) == ("intact", True, 5, 5)
    assert report["bytes_read"] == report["last_pass"]["bytes_read"] == sum(map(len, before.values())) - 25 * 4096
    assert (report["problems"], report["exit_code"], report["last_pass"]["sets"]) == ([], 0, 5)
    assert contents(Path("d")) == before
    text = gfcode("scrub", "d", "--state", "state").out
    assert text.startswith("5 sets checked, pass finished; ")
    assert text.endswith(": intact\n")
    assert gfcode("scrub", "d", "--state", "state", "-q").out == ""


def test_runs_go_on_where_the_last_one_ended(scrub: Scrub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has no time does one set; five of them are a pass, and the sixth begins the next."""
    runs = [scrub("--max-time", "0.000001s").json for _ in range(6)]
    assert [run["checked"] for run in runs] == [1] * 6
    assert [run["complete"] for run in runs] == [False] * 4 + [True, False]
    assert [run["sets_done"] for run in runs] == [1, 2, 3, 4, 5, 1]
    assert runs[5]["last_pass"] == runs[4]["last_pass"] is not None
    assert sum(run["bytes_read"] for run in runs[:5]) == runs[4]["last_pass"]["bytes_read"]


def test_large_set_is_read_in_several_runs(tree: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 batches each run does one; damage in the first two keeps its set among the problems to the end."""
    Path("big").write_bytes(os.urandom(3 * 3584 * 128 * 4 - 999))
    assert encode(gfcode, "big", "--out", "d").code == 0
    corrupt(Path("d/big.001.gfs"), 4096 + 4096 * 130 + 700)
    runs = [gfcode("scrub", "d", "--state", "state", "--json", "--max-time", "0.000001s").json for _ in range(4)]
    assert [run["checked"] for run in runs] == [0, 0, 0, 1]
    assert [run["complete"] for run in runs] == [False, False, False, True]
    assert [run["state"] for run in runs] == ["intact", "repairable", "repairable", "repairable"]
    size = sum(path.stat().st_size for path in Path("d").iterdir())
    assert sum(run["bytes_read"] for run in runs) == size - 5 * 4096
    assert gfcode("repair", "d", "-q").code == 0
    assert [
        gfcode("scrub", "d", "--state", "state", "--json", "--max-time", "0.000001s").json["state"] for _ in range(4)
    ] == ["repairable"] * 3 + ["intact"]


def test_problems_last_until_their_next_turn(scrub: Scrub, gfcode: Runner) -> None:
    corrupt(Path("d/in/sub/a.002.gfs"), 4700)
    for index in (0, 1, 2):
        Path(f"d/in/z.log.{index:03}.gfs").unlink()
    done = scrub()
    assert done.code == 4
    problems = {problem["name"]: problem for problem in done.json["problems"]}
    assert {name: problem["state"] for name, problem in problems.items()} == {
        "a": "repairable", "z.log": "beyond repair",
    }  # fmt: skip
    assert problems["a"]["path"] == "d/in/sub/a.000.gfs"
    assert "1 of 5 shards of 'a' can be repaired" in problems["a"]["summary"]
    lines = gfcode("scrub", "d", "--state", "state").out.splitlines()
    assert any(
        line.startswith("d/in/sub/a.000.gfs: repairable: 1 of 5 shards of 'a' can be repaired: 2") for line in lines
    )
    assert gfcode("repair", "d", "-q").code == 4
    for path in Path("d/in").glob("z.log.*"):
        path.unlink()
    done = scrub()
    assert (done.code, done.json["problems"], done.json["sets"]) == (0, [], 4)


def test_a_set_that_is_lost_beside_a_sound_one(shards: Path, gfcode: Runner) -> None:
    """In one directory, where verify would take the lost one's shards for strays."""
    Path("other").write_text("x")
    encode(gfcode, "other", "--out", str(shards))
    for index in range(3):
        (shards / f"other.{index:03}.gfs").unlink()
    done = gfcode("scrub", shards, "--state", "state", "--json")
    assert (done.code, done.json["sets"]) == (4, 2)
    for index in (3, 4):
        corrupt(shards / f"other.{index:03}.gfs", 600)
    done = gfcode("scrub", shards, "--state", "state", "--json")
    assert done.code == 4
    assert [problem["set_id"] for problem in done.json["problems"]] == [None]


def test_keys_and_deep_checks(tree: Path, gfcode: Runner) -> None:
    Path("key").write_bytes(os.urandom(32))
    encode(gfcode, "in", "--out", "d", "--key", "key")
    assert gfcode("scrub", "d", "--state", "s", "--key", "key", "--deep", "--json").json["state"] == "intact"
    done = gfcode("scrub", "d", "--state", "s", "--json")
    assert (done.code, done.json["state"], len(done.json["problems"])) == (1, "failed", 5)
    assert "the shard is keyed" in done.json["problems"][0]["summary"]


def test_two_at_once(scrub: Scrub) -> None:
    with FileLock("state.lock"):
        done = scrub()
    assert done.code == 1
    assert "another scrub is at work with state" in done.json["error"]
    assert scrub().code == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', '{"version": 9, "problems": {}}', "\x00"])
def test_what_is_no_state_is_not_replaced(scrub: Scrub, content: str) -> None:
    Path("state").write_text(content)
    done = scrub()
    assert done.code == 2
    assert "remove it to begin anew" in done.json["error"]
    assert Path("state").read_text() == content


def test_state_of_another_directory(scrub: Scrub, gfcode: Runner) -> None:
    scrub()
    done = gfcode("scrub", "d/in", "--state", "state")
    assert done.code == 2
    assert "is the state of" in done.error


def test_state_has_a_place_of_its_own(
    scrub: Scrub, gfcode: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    first = gfcode("scrub", "d", "--json").json["state_file"]
    assert Path(first).is_relative_to(tmp_path / "states")
    assert gfcode("scrub", "./d/../d", "--json").json["state_file"] == first
    assert gfcode("scrub", "d/in", "--json").json["state_file"] != first
    assert json.loads(Path(first).read_text())["last"]["sets"] == 5
    assert [path.suffix for path in Path(first).parent.iterdir() if path.suffix == ".tmp"] == []


def test_rate(scrub: Scrub, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only sleeping moves: the time asked for is that of all bytes at the rate."""
    now, slept = [100.0], [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        slept[0] += seconds

    monkeypatch.setattr("gfcode.pipeline.scrub.time.monotonic", lambda: now[0])
    monkeypatch.setattr("gfcode.pipeline.scrub.time.sleep", sleep)
    report = scrub("--rate", "10kB/s").json
    assert slept[0] == pytest.approx(report["bytes_read"] / 10_000)
    now[0], slept[0] = 0.0, 0.0
    report = scrub("--rate", "10kB/s", "--max-time", "1s").json
    assert not report["complete"]
    assert 1 <= slept[0] < 20


def test_interrupt_keeps_what_was_done(tree: Path, gfcode: Runner) -> None:
    assert encode(gfcode, "in", "--out", "d").code == 0
    arguments = ["scrub", "d", "--state", "state", "--rate", "20KiB/s"]
    running = subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not Path("state.lock").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (130, "gfcode: error: interrupted\n")
    assert gfcode("scrub", "d", "--state", "state", "--json").json["complete"]


def test_failing_to_save_leaves_the_old_state(scrub: Scrub, monkeypatch: pytest.MonkeyPatch) -> None:
    scrub()
    before = Path("state").read_bytes()

    def refuse(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert scrub().json["error"] == "state: No space left on device"
    assert Path("state").read_bytes() == before
    assert sorted(name for name in os.listdir() if name.startswith("state")) == ["state", "state.lock"]


def test_places_that_cannot_be_read_are_named(scrub: Scrub, monkeypatch: pytest.MonkeyPatch) -> None:
    scrub()
    real = os.listdir

    def listdir(path: Any = ".") -> Any:
        if path == "d":
            raise OSError(5, "Input/output error", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert scrub().json["error"] == "no shard in d (d: Input/output error)"
    monkeypatch.setattr(os, "listdir", real)

    def load(file: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(json, "load", load)
    assert scrub().json["error"] == "state: Input/output error"


def test_what_a_killed_run_left_of_its_state_is_removed(scrub: Scrub) -> None:
    for name in ("state.0123456789abcdef.tmp", "state.tmp", "other.0123456789abcdef.tmp"):
        Path(name).write_text("{")
    scrub()
    assert sorted(name for name in os.listdir() if name.endswith(".tmp")) == ["other.0123456789abcdef.tmp", "state.tmp"]


def test_set_that_cannot_be_read_does_not_hold_up_the_others(scrub: Scrub, monkeypatch: pytest.MonkeyPatch) -> None:

    def failing(found: Any) -> Any:
        if found.metadata.name == "z.log":
            raise OSError(5, "Input/output error")
        return ShardSet(found)

    monkeypatch.setattr("gfcode.pipeline.scrub.ShardSet", failing)
    done = scrub()
    assert (done.code, done.json["state"], done.json["checked"], done.json["complete"]) == (1, "failed", 5, True)
    assert [problem["summary"] for problem in done.json["problems"]] == ["Input/output error"]


@pytest.mark.parametrize("way", ["replaced", "removed", "one shard lost", "moved aside"])
def test_sets_that_change_before_their_turn(
    scrub: Scrub, gfcode: Runner, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A run over many sets takes long: what others do to them meanwhile is no damage."""
    turns: list[str] = []

    def opened(found: Any) -> Any:
        if not turns:  # all others are looked for already
            for path in (path for path in Path("d").rglob("*.gfs") if path.name[:-8] != found.metadata.name):
                match way:
                    case "removed":
                        path.unlink()
                    case "one shard lost" if path.name.endswith(".001.gfs"):
                        path.unlink()
                    case "moved aside":
                        path.rename(path.with_name(f"{path.name}.old"))
            if way == "replaced":
                for path in Path("in").rglob("*"):
                    if path.is_file() and path.name != found.metadata.name:
                        path.write_bytes(b"new" * 2000)
                assert gfcode("encode", "in", *CODE, "--out", "d", "--update", "-q").code == 0
        turns.append(found.metadata.name)
        return ShardSet(found)

    monkeypatch.setattr("gfcode.pipeline.scrub.ShardSet", opened)
    report = scrub().json
    lost = way == "one shard lost"
    assert (report["complete"], report["state"]) == (True, "repairable" if lost else "intact")
    names = {problem["name"] for problem in report["problems"]}
    assert names == ({"a", "b.txt", "empty", "z.log"} - {turns[0]} if lost else set())
    monkeypatch.setattr("gfcode.pipeline.scrub.ShardSet", ShardSet)
    left = 1 + (turns[0] == "a")  # two sets have this name
    assert scrub().json["sets"] == (left if way == "removed" else 5)


def test_rates_and_times() -> None:
    assert [byte_rate(text) for text in ("50MiB/s", "1k", "10 kB/s")] == [50 << 20, 1024, 10_000]
    assert [duration(text) for text in ("90", "90s", "1.5m", "2h", "1d")] == [90, 90, 90, 7200, 86400]


@pytest.mark.parametrize(
    "arguments", [["--rate", "fast"], ["--rate", "0"], ["--max-time", "soon"], ["--max-time", "0"]]
)
def test_rates_and_times_that_are_none(scrub: Scrub, arguments: list[str]) -> None:
    assert scrub(*arguments).code == 2


def test_places_without_sets(tree: Path, gfcode: Runner) -> None:
    assert gfcode("scrub", "in", "--state", "s").code == 1
    assert gfcode("scrub", "nowhere", "--state", "s").code == 2
