"""A fixed share of the crash campaign, and every call at which something could be left behind."""

import signal
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", ["encode --force", "encode --update", "repair --out", "scrub"])
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
