"""Run all campaigns in full and write what they counted into docs/reliability.md.

`python -m tests.reliability.soak` takes about an hour on two cores; `--scale 0.1` makes a tenth of it. Campaigns are
cut into pieces that are begun in turn. `--minutes` ends a run early, with about the same share of each campaign done,
and `--kept FILE` notes every piece that is finished, so that another run goes on from there.
"""

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from tests.reliability.crash import crash_campaign
from tests.reliability.faultlib import why_not
from tests.reliability.faults import fault_campaign
from tests.reliability.hostile import hostile_campaign
from tests.reliability.rot import rot_campaign
from tests.reliability.scenes import SCENES

__all__ = ["BEGIN", "CAMPAIGNS", "END", "Done", "Piece", "pieces_of", "replace_counts", "report", "run_pieces"]

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN = "<!-- counts of the last run: written by make soak -->"
END = "<!-- end of the counts -->"
CAMPAIGNS = ("Rot", "Crashes", "I/O faults", "Hostile shards")
#: Trials at full scale: in all; of each scene and signal, half by call and half by time; of each scene and fault; and
#: in all.
ROT, CRASHES, FAULTS, HOSTILE = 100_000, 300, 60, 4_000
#: Trials of a piece; for crashes and faults of each signal and way, or of each fault.
_MANY, _FEW = {"Rot": 500, "Hostile shards": 250}, 10


@dataclass(frozen=True)
class Piece:
    """A part of a campaign.

    Attributes
    ----------
    campaign : str
    name : str
        Tells it from all other pieces of runs with the same seed.
    trials : int
        How many are asked for; a campaign of faults may have fewer calls.
    place : float
        Where it stands in its campaign, from 0 to 1.
    work : callable
    arguments : tuple
    options : dict
    """

    campaign: str
    name: str
    trials: int
    place: float
    work: Callable[..., Counter[str]]
    arguments: tuple[int | str, ...]
    options: dict[str, int | tuple[str, ...]]


@dataclass(frozen=True)
class Done:
    """What a piece has counted, of which commit and with which seed."""

    name: str
    campaign: str
    trials: int
    commit: str
    seed: int
    counts: dict[str, int]
    seconds: float


def pieces_of(scale: float, seed: int, campaigns: Sequence[str] = CAMPAIGNS) -> list[Piece]:
    """Return all pieces of some campaigns, in the order in which they are begun."""
    pieces: list[Piece] = []
    single: dict[str, tuple[Callable[..., Counter[str]], int]] = {
        "Rot": (rot_campaign, ROT), "Hostile shards": (hostile_campaign, HOSTILE)
    }  # fmt: skip
    for campaign, (work, total) in single.items():
        count = max(1, round(total * scale))
        for first in range(0, count, _MANY[campaign]):
            size = min(_MANY[campaign], count - first)
            name = f"{campaign} {seed} {first}+{size}"
            pieces.append(Piece(campaign, name, size, (first + size / 2) / count, work, (size, seed), {"first": first}))
    for campaign, work, each, ways in (
        ("Crashes", crash_campaign, CRASHES // 2, 6), ("I/O faults", fault_campaign, FAULTS, 15)
    ):  # fmt: skip
        count = max(1, round(each * scale))
        for scene in SCENES:
            for first in range(0, count, _FEW):
                size = min(_FEW, count - first)
                name, place = f"{scene} {seed} {first}+{size}", (first + size / 2) / count
                whole_name = f"{campaign}: {name}"
                pieces.append(Piece(campaign, whole_name, size * ways, place, work, (size, name), {"names": (scene,)}))
    return sorted((piece for piece in pieces if piece.campaign in campaigns), key=lambda piece: piece.place)


def run_pieces(
    pieces: Sequence[Piece], *, known: Collection[str], until: float, tell: Callable[[Piece, Counter[str], float], None]
) -> None:
    """Run pieces that are not known yet, until there is no time to begin one.

    Parameters
    ----------
    pieces : sequence of Piece
    known : collection of str
        Their names.
    until : float
        Reading of `time.monotonic`.
    tell : callable
        Called with each piece that has been run, what it counted, and the seconds it took.
    """
    waiting = [piece for piece in reversed(pieces) if piece.name not in known]
    cores = len(os.sched_getaffinity(0))
    running: dict[Future[tuple[Counter[str], float]], Piece] = {}
    with ProcessPoolExecutor(max_workers=cores) as pool:
        while waiting or running:
            while waiting and len(running) < cores and time.monotonic() < until:
                piece = waiting.pop()
                running[pool.submit(_timed, piece)] = piece
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                piece = running.pop(future)
                tell(piece, *future.result())


def _timed(piece: Piece) -> tuple[Counter[str], float]:
    started = time.monotonic()
    return piece.work(*piece.arguments, **piece.options), time.monotonic() - started


def report(results: Sequence[Done]) -> str:
    """Return a table of what was counted for each commit."""
    by_commit: dict[str, list[Done]] = defaultdict(list)
    for done in results:
        by_commit[done.commit].append(done)
    return "\n\n".join(_table(commit, parts) for commit, parts in by_commit.items())


def _table(commit: str, results: Sequence[Done]) -> str:
    by_campaign: dict[str, list[Done]] = defaultdict(list)
    for done in results:
        by_campaign[done.campaign].append(done)
    rows = [
        _ROWS[campaign](_sum(by_campaign[campaign]), _share(by_campaign[campaign], campaign))
        for campaign in CAMPAIGNS if by_campaign[campaign]
    ]  # fmt: skip
    seeds = " and ".join(str(seed) for seed in sorted({done.seed for done in results}))
    head = (
        f"gfcode {version('gfcode')}{f' ({commit})' if commit else ''}, Python {platform.python_version()}, "
        f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, seed {seeds}, {sum(done.seconds for done in results):.0f} s of work:"
    )
    return "\n".join([head, "", "| campaign | share of the full run | trials | outcomes |", "|---|---|---|---|", *rows])


def _sum(parts: Sequence[Done]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part.counts)
    return total


def _share(parts: Sequence[Done], campaign: str) -> str:
    full = sum(piece.trials for piece in pieces_of(1, 0, (campaign,)))
    return f"{sum(part.trials for part in parts) / full:.0%}"


def _without(counts: Counter[str], word: str) -> Counter[str]:
    return Counter({key: count for key, count in counts.items() if word not in key})


def _rot_row(counts: Counter[str], share: str) -> str:
    counts = _without(counts, "damage: ")
    lost = counts["beyond repair"] + counts["no set to be told"]
    return (
        f"| Rot | {share} | {sum(counts.values()):,} damaged sets | {counts['intact']:,} found intact, "
        f"{counts['repaired']:,} repaired byte for byte, {lost:,} lost and reported so, "
        f"{counts['the other set']:,} with more of another set, {counts['refused to guess']:,} refused for want of "
        f"a choice between two sets, or as frames lie in files that belie them; **0 wrong bytes with success** |"
    )


def _crash_row(counts: Counter[str], share: str) -> str:
    by_scene: Counter[str] = Counter()
    for key, count in counts.items():
        if ", by " in key:
            by_scene[key.partition(", SIG")[0]] += count
    scenes = ", ".join(f"{scene} ({by_scene[scene]:,})" for scene in SCENES if by_scene[scene])
    return (
        f"| Crashes | {share} | {sum(by_scene.values()):,} runs ended by SIGKILL, SIGTERM or SIGINT, half at a system "
        f"call, half at a moment: {scenes} | {counts['undone']:,} left all as before, {counts['half done']:,} were "
        f"repeated to the end, {counts['done']:,} had done their work, {counts['survived']:,} were faster; "
        f"0 sets lost |"
    )


def _fault_row(counts: Counter[str], share: str) -> str:
    kinds = [key for key in counts if key.startswith("fault: ")]
    return (
        f"| I/O faults | {share} | {sum(counts[key] for key in kinds):,} runs of {len(SCENES)} kinds with one of "
        f"{len(kinds)} faults at a random call | {counts['refused']:,} failed with one line for each set and left "
        f"nothing, {counts['done']:,} did their work; 0 claimed what is not so |"
    )


def _hostile_row(counts: Counter[str], share: str) -> str:
    said = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    return (
        f"| Hostile shards | {share} | {sum(counts.values()):,} sets, five commands each, in bounded memory | "
        f"verify: {said}; 0 other exceptions, 0 files written elsewhere |"
    )


_ROWS: dict[str, Callable[[Counter[str], str], str]] = {
    "Rot": _rot_row, "Crashes": _crash_row, "I/O faults": _fault_row, "Hostile shards": _hostile_row,
}  # fmt: skip


def replace_counts(page: str, counts: str) -> str:
    """Return the page with other counts between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{counts}\n\n{END}{after}"


def _main() -> None:
    parser = argparse.ArgumentParser(description="Run all reliability campaigns and rewrite the counts in the docs.")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full run")
    parser.add_argument("--seed", type=int, default=20261, help="another seed makes other trials")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no piece after this time")
    parser.add_argument("--kept", type=Path, help="file of finished pieces: they are not run again, and noted there")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="run this campaign; the page needs all")
    parser.add_argument("--dry-run", action="store_true", help="print the counts only")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    # The last commit that changed what is tried.
    command = ["git", "log", "-1", "--format=%h", "--", "gfcode", "cli", "kernels"]
    commit = subprocess.run(command, capture_output=True, text=True, cwd=PAGE.parents[1], check=False).stdout.strip()
    campaigns = [campaign for campaign in CAMPAIGNS if not why_not() or campaign not in {"Crashes", "I/O faults"}]
    if why_not():
        print(f"no crashes and no faults: {why_not()}", file=sys.stderr)
    results: list[Done] = []
    if options.kept is not None and options.kept.exists():
        with options.kept.open() as file:
            results = [Done(**json.loads(line)) for line in file]

    def tell(piece: Piece, counted: Counter[str], seconds: float) -> None:
        done = Done(piece.name, piece.campaign, piece.trials, commit, options.seed, dict(counted), seconds)
        print(f"{done.name}: {seconds:.0f} s", file=sys.stderr, flush=True)
        results.append(done)
        if options.kept is not None:
            with options.kept.open("a") as file:
                file.write(json.dumps(asdict(done)) + "\n")

    pieces = pieces_of(options.scale, options.seed, options.only or campaigns)
    run_pieces(pieces, known={done.name for done in results}, until=until, tell=tell)
    counts = report(results)
    print(counts)
    if not options.dry_run:
        PAGE.write_text(replace_counts(PAGE.read_text(), counts))


if __name__ == "__main__":
    _main()
