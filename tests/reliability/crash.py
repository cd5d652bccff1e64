"""Crashes: runs that a signal ends at a random system call or a random moment."""

import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

from tests.reliability.faultlib import Action, Kind
from tests.reliability.samples import scratch_directory
from tests.reliability.scene import BrokenPromiseError, Scene, Tree, require, temporaries
from tests.reliability.scenes import SCENES
from tests.reliability.server import OUTSIDE, Fault, Outcome, Server

__all__ = ["SIGNALS", "crash_campaign", "crash_trial"]

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: Seconds in which an interrupted command must be gone.
PATIENCE = 2.0
#: Draws of a moment until one lies within the run.
_TRIES = 6
#: Scenes in which a set of one file, or of an archive, is new.
_ONE_NEW = {"encode", "encode --archive"}
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def crash_trial(
    server: Server, scene: Scene, number: signal.Signals, base: Path, fault: Fault, after: float | None = None
) -> str:
    """End one run by a signal, at a call or after some seconds, and check all that must hold.

    Returns
    -------
    str
        "survived" where the run was over before the signal came, or else whether it had done its work ("done") or
        not ("undone"), or something between ("half done").

    Raises
    ------
    BrokenPromiseError
        If something does not hold.
    """
    before = scene.set_up(base)
    outcome = server.run(scene.command(base), fault, after=after, number=number, files=scene.files)
    where = f"{scene.name}, {number.name} " + (f"at {after:.4f} s" if after else f"{fault.action.name} {fault.call}")
    try:
        return _check(server, scene, number, base, outcome, before)
    except BrokenPromiseError as error:
        raise BrokenPromiseError(f"{where}: {error} (exit {outcome.code}: {outcome.stderr.strip()})") from error


def _check(server: Server, scene: Scene, number: signal.Signals, base: Path, outcome: Outcome, before: Tree) -> str:
    require(not outcome.hung, "hangs")
    tree = scene.check_safe(base, before)
    done = scene.is_done(base)
    if outcome.code == scene.code:
        require(done, f"exit code {scene.code}, and the work is not done")
        return "survived"
    require(outcome.fired, "failed by itself")
    if outcome.code in {OUTSIDE, -signal.SIGTERM}:
        # The signal came before the command handled any, or when it did no more.
        require(done or tree == before, "a run outside the command's own handling of signals is half done")
        return "done" if done else "undone"
    if number == signal.SIGKILL:
        require(outcome.code == -number, "another end")
    else:
        require(outcome.code == _CODES[number], f"not exit code {_CODES[number]}")
        require(outcome.late < PATIENCE, f"took {outcome.late:.1f} s to end")
        require(len(outcome.stderr.splitlines()) <= 1, "more than one line on stderr")
        require(not temporaries(tree), f"left {temporaries(tree)}")
        require(scene.is_settled(base, tree, before), "neither as before nor done")
    _run_again(server, scene, base)
    return "done" if done else "undone" if tree == before else "half done"


def _run_again(server: Server, scene: Scene, base: Path) -> None:
    """Run the same command once more; it must finish the work."""
    quiet = Fault(str(base))
    command = scene.command(base)
    again = server.run(command, quiet, files=scene.files)
    if again.code == 1 and scene.name in _ONE_NEW and re.search(r"exists; force replaces", again.stderr):
        again = server.run([*command, "--force"], quiet)  # some shards had their names: the message says what to do
    require(again.code == scene.code, f"the rerun fails: {again.stderr.strip()}")
    require(scene.is_done(base), "the rerun does not finish the work")


def _measure(server: Server, scene: Scene, base: Path) -> tuple[int, float]:
    """Return the calls that an undisturbed run makes, and the seconds it takes when all caches are warm."""
    seconds = []
    for _ in range(4):
        scene.set_up(base)
        started = time.monotonic()
        calls = server.run(scene.command(base), Fault(str(base)), files=scene.files).calls
        seconds.append(time.monotonic() - started)
    return calls, min(seconds)


def crash_campaign(count: int, seed: int | str, *, names: tuple[str, ...] = tuple(SCENES)) -> Counter[str]:
    """Run `count` trials for each scene and signal by system call, and as many by time; count outcomes.

    A moment at which the run is over already is drawn again.
    """
    counts: Counter[str] = Counter()
    rng = random.Random(seed)
    with scratch_directory() as base, Server() as server:
        for scene in (SCENES[name] for name in names):
            calls, seconds = _measure(server, scene, base)
            for number in SIGNALS:
                for _ in range(count):
                    action = rng.choice((Action.SIGNAL_BEFORE, Action.SIGNAL_AFTER))
                    fault = Fault(str(base), Kind.ALL, action, rng.randint(1, calls), number)
                    counts[crash_trial(server, scene, number, base, fault)] += 1
                    counts[f"{scene.name}, {number.name}, by call"] += 1
                    for _ in range(_TRIES):
                        after = rng.uniform(0.001, seconds)
                        outcome = crash_trial(server, scene, number, base, Fault(str(base)), after)
                        if outcome != "survived":
                            break
                    counts[outcome] += 1
                    counts[f"{scene.name}, {number.name}, by time"] += 1
    return counts
