"""A fixed share of the crash campaign, and every call at which something could be left behind."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

import pytest

from gfcode.errors import ParameterError
from gfcode.pipeline import encode_file
from gfcode.pipeline.archive import TarStream
from tests.reliability.crash import crash_campaign, crash_trial
from tests.reliability.faultlib import Action, Kind, why_not
from tests.reliability.samples import scratch_directory
from tests.reliability.scenes import SCENES
from tests.reliability.server import Fault, Server

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is a fault library")
#: Calls that make, name and remove files and directories.
NAMES = Kind.CREATE | Kind.RENAME | Kind.LINK | Kind.UNLINK | Kind.DIRECTORY | Kind.LIST


def test_random_moments() -> None:
    counts = crash_campaign(1, seed=1)
    assert sum(counts[outcome] for outcome in ("survived", "done", "undone", "half done")) == 2 * 3 * len(SCENES)
    assert counts["undone"] > counts["survived"]


@pytest.mark.parametrize("name", ["encode", "encode --force", "decode"])
def test_interrupt_at_every_change_of_names(name: str) -> None:
    scene = SCENES[name]
    with scratch_directory() as base, Server() as server:
        scene.set_up(base)
        calls = server.run(scene.command(base), Fault(str(base), NAMES)).calls
        assert calls >= 3
        outcomes = [
            crash_trial(server, scene, signal.SIGINT, base, Fault(str(base), NAMES, Action.SIGNAL_AFTER, call, 2))
            for call in range(1, calls + 1)
        ]
    assert {"undone"} <= set(outcomes) <= {"undone", "done"}


@pytest.mark.parametrize("name", ["encode --force", "encode --update", "repair", "repair --out", "scrub"])
def test_kill_at_every_change_of_names(name: str) -> None:
    scene = SCENES[name]
    with scratch_directory() as base, Server() as server:
        scene.set_up(base)
        calls = server.run(scene.command(base), Fault(str(base), NAMES)).calls
        outcomes = {
            crash_trial(server, scene, signal.SIGKILL, base, Fault(str(base), NAMES, Action.SIGNAL_AFTER, call, 9))
            for call in range(1, calls + 1)
        }
    assert {"half done", "done"} <= outcomes | ({"half done"} if name == "scrub" else set())


def test_what_the_checks_would_miss(tmp_path: Path) -> None:
    """The checks see a lost set, a cut shard under a final name, and a changed input."""
    scene = SCENES["encode --force"]
    before = scene.set_up(tmp_path)
    assert scene.check_safe(tmp_path, before) == before
    shard = tmp_path / "s" / "file.000.gfs"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    with pytest.raises(AssertionError, match="is not whole"):
        scene.check_safe(tmp_path, before)
    shard.write_bytes(whole)
    for number in range(4):
        (tmp_path / "s" / f"file.00{number}.gfs").unlink()
    with pytest.raises(AssertionError, match="what was recoverable is not"):
        scene.check_safe(tmp_path, before)
    (tmp_path / "in" / "file").write_bytes(b"")
    with pytest.raises(AssertionError, match="the input in/file was changed"):
        scene.check_safe(tmp_path, before)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("encode --update of several", lambda base: (base / "in/d/e").write_bytes(b""), "the input in/d/e was changed"),
        ("encode --update of several", lambda base: _copy(base / "s/b.000.gfs", base / "s/d/e.000.gfs"), "is current"),
        ("encode --update of several", lambda base: _remove(base / "s", "b."), "what was recoverable is not"),
        ("encode of a tree", lambda base: _cut(base / "in/d", base / "s/in/d.000.gfs"), "is not whole"),
        ("repair --out", lambda base: _cut(base / "s/file.002.gfs", base / "o/file.001.gfs"), "is not whole"),
        ("repair --out", lambda base: _cut(base / "s/file.002.gfs", base / "s/file.002.gfs"), "neither as before nor"),
        ("repair of several", lambda base: _remove(base / "s/b/c", "file.002"), "file.002.gfs is gone"),
        ("scrub", lambda base: _remove(base / "state", "s.json"), "the state is gone"),
        ("scrub", lambda base: _cut(base / "s/a/file.000.gfs", base / "s/a/file.000.gfs"), "was changed"),
    ],
)
def test_what_the_checks_of_other_scenes_would_miss(
    tmp_path: Path, name: str, change: Callable[[Path], object], message: str
) -> None:
    scene = SCENES[name]
    before = scene.set_up(tmp_path)
    scene.check_safe(tmp_path, before)
    assert not scene.is_done(tmp_path)
    assert scene.is_settled(tmp_path, before, before)
    change(tmp_path)
    with pytest.raises(AssertionError, match=message):
        scene.check_safe(tmp_path, before)


def _copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


def _cut(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes()[:-1])


def _remove(directory: Path, start: str) -> None:
    for path in directory.iterdir():
        if path.name.startswith(start):
            path.unlink()


def test_the_states_that_a_scrub_may_not_leave(tmp_path: Path) -> None:
    scene = SCENES["scrub"]
    before = scene.set_up(tmp_path)
    path = tmp_path / "state" / "s.json"
    values = json.loads(path.read_bytes())
    path.write_text(json.dumps(values | {"last": {"sets": 1}}))
    with pytest.raises(AssertionError, match="says of a pass that it is finished"):
        scene.check_safe(tmp_path, before)
    path.write_text(json.dumps(values)[:-9])
    with pytest.raises(ParameterError):
        scene.check_safe(tmp_path, before)


def test_an_archive_that_lacks_a_file_is_not_done(tmp_path: Path) -> None:
    scene = SCENES["encode --archive"]
    scene.set_up(tmp_path)
    for whole in (False, True):
        with TarStream([tmp_path / "in"], exclude=() if whole else ("c",)) as archive:
            stream = cast("IO[bytes]", archive)
            encode_file(stream, k=3, m=2, frame=1024, name="in.tar", out=tmp_path / "s", durable=False, force=True)
        assert scene.is_done(tmp_path) is whole
