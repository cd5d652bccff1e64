"""I/O faults: a call fails, moves fewer bytes, returns wrong ones, or the input changes under the run."""

import errno
import random
from collections import Counter
from pathlib import Path

from tests.reliability.faultlib import Action, Kind
from tests.reliability.samples import scratch_directory
from tests.reliability.scene import BrokenPromiseError, Scene, Tree, require, temporaries
from tests.reliability.scenes import SCENES
from tests.reliability.server import Fault, Outcome, Server

__all__ = ["FAULTS", "fault_campaign", "fault_trial"]

#: Name, kinds of calls, action, errno.
FAULTS: tuple[tuple[str, Kind, Action, int], ...] = (
    ("ENOSPC", Kind.WRITE | Kind.ALLOC | Kind.CREATE | Kind.LINK | Kind.DIRECTORY, Action.FAIL, errno.ENOSPC),
    ("ENOSPC from then on", Kind.WRITE | Kind.ALLOC, Action.FAIL_FROM, errno.ENOSPC),
    ("EDQUOT", Kind.WRITE | Kind.ALLOC | Kind.CREATE, Action.FAIL, errno.EDQUOT),
    ("EIO", Kind.ALL, Action.FAIL, errno.EIO),
    ("EIO of reads from then on", Kind.READ, Action.FAIL_FROM, errno.EIO),
    ("EIO of flushes", Kind.SYNC, Action.FAIL, errno.EIO),
    ("short read", Kind.READ, Action.SHORT, 0),
    ("short write", Kind.WRITE, Action.SHORT, 0),
    ("directory read-only from then on", Kind.CREATE | Kind.LINK | Kind.RENAME | Kind.UNLINK | Kind.DIRECTORY,
     Action.FAIL_FROM, errno.EROFS),
    ("permission lost from then on", Kind.OPEN | Kind.CREATE | Kind.LINK | Kind.RENAME | Kind.LIST,
     Action.FAIL_FROM, errno.EACCES),
    ("a read returns other bytes once", Kind.READ, Action.GARBLE, 0),
    ("a file that is read shrinks", Kind.ALL, Action.TRUNCATE, 0),
    ("a file that is read grows", Kind.ALL, Action.APPEND, 0),
    ("a file that is read is written to", Kind.ALL, Action.REWRITE, 0),
    ("a file that is read vanishes", Kind.ALL, Action.REMOVE, 0),
)  # fmt: skip
#: Faults after which a run must succeed as if nothing had been.
_HARMLESS = {"short read", "short write"}
#: Faults after which files cannot be removed, or not be renamed back: hidden names then keep what was replaced.
_STUCK = {"directory read-only from then on", "permission lost from then on"}


def fault_trial(
    server: Server, scene: Scene, base: Path, kind: tuple[str, Kind, Action, int], call: int
) -> tuple[str, Outcome]:
    """Disturb one run and check all that must hold.

    Returns
    -------
    result : {"untouched", "done", "refused"}
        "untouched" where the run made fewer calls.
    outcome : Outcome

    Raises
    ------
    BrokenPromiseError
        If something does not hold.
    """
    name, kinds, action, number = kind
    before = scene.set_up(base)
    victim = scene.victim if action >= Action.TRUNCATE else ""
    fault = Fault(str(base), kinds, action, call, number, str(base / victim) if victim else "")
    outcome = server.run(scene.command(base), fault, files=scene.files)
    try:
        return _check(scene, base, name, before, victim, outcome), outcome
    except BrokenPromiseError as error:
        raise BrokenPromiseError(
            f"{scene.name}, {name}, call {call}: {error} (exit {outcome.code}: {outcome.stderr.strip()[-500:]})"
        ) from error


def _check(scene: Scene, base: Path, name: str, before: Tree, victim: str, outcome: Outcome) -> str:
    require(not outcome.hung, "hangs")
    garbled_input = name == "a read returns other bytes once" and scene.writes_what_it_reads
    # Nobody can know that an input was read wrongly.
    tree = scene.check_safe(base, before, changed=victim, any_bytes=garbled_input)
    if not outcome.fired:
        require(outcome.code == scene.code and scene.is_done(base), "failed by itself")
        return "untouched"
    if outcome.code == scene.code:
        # An input that was changed after it had been read, or was read wrongly, is encoded as it was read.
        done = scene.is_done(base) or bool(victim) or garbled_input
        require(done, f"exit code {scene.code}, and the work is not done")
        require(not temporaries(tree), f"exit code {scene.code}, and it left {temporaries(tree)}")
        require(not outcome.stderr or name not in _HARMLESS, "a harmless fault is complained of")
        return "done"
    require(name not in _HARMLESS, "a harmless fault ends the run")
    require(outcome.code in {1, 4}, "an exit code that means something else")
    lines = outcome.stderr.splitlines()
    if not lines:
        said = "beyond repair" in outcome.stdout or "failed" in outcome.stdout
        require(scene.reports_damage and said, "nothing is said of what went wrong")
    require(len(lines) <= 1 or scene.many, "more than one line on stderr")
    for line in lines:
        require(line.startswith("gfcode: error: "), "a line on stderr that is no error")
        require("bug in gfcode" not in line, "an exception that nobody expected")
        require(str(base) in line or outcome.code == 4, "the error names no file")
    require(name in _STUCK or not temporaries(tree), f"left {temporaries(tree)}")
    same = {path: content for path, content in tree.items() if path != victim and path not in temporaries(tree)}
    old = {path: content for path, content in before.items() if path != victim}
    # After the names are given only flushing and removing are left to fail.
    whole = name in _STUCK or scene.is_settled(base, same, old)
    require(same == old or whole, "neither as before nor done")
    return "refused"


def fault_campaign(count: int, seed: int | str, *, names: tuple[str, ...] = tuple(SCENES)) -> Counter[str]:
    """Run `count` trials, at random calls, for each scene and fault; count outcomes."""
    counts: Counter[str] = Counter()
    rng = random.Random(seed)
    with scratch_directory() as base, Server() as server:
        for scene in (SCENES[name] for name in names):
            for kind in FAULTS:
                scene.set_up(base)
                calls = server.run(scene.command(base), Fault(str(base), kind[1]), files=scene.files).calls
                for call in rng.sample(range(1, calls + 1), min(count, calls)):
                    result, _ = fault_trial(server, scene, base, kind, call)
                    counts[result] += 1
                    counts[f"fault: {kind[0]}"] += 1
    return counts
