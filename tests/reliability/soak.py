"""Run all campaigns in full and write what they counted into docs/reliability.md.

`python -m tests.reliability.soak` takes about an hour on two cores; `--scale 0.1` makes a tenth of it.
"""

import argparse
import datetime as dt
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from tests.reliability.crash import crash_campaign
from tests.reliability.faultlib import why_not
from tests.reliability.faults import fault_campaign
from tests.reliability.hostile import hostile_campaign
from tests.reliability.rot import rot_campaign
from tests.reliability.scenes import SCENES

__all__ = ["BEGIN", "END", "replace_counts", "report"]

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN = "<!-- counts of the last run: written by make soak -->"
END = "<!-- end of the counts -->"
#: Trials at full scale: of each scene and signal by call, and as many by time; of each scene and fault; in all; in all.
CRASHES, FAULTS, ROT, HOSTILE = 300, 60, 100_000, 4_000
_PIECE = 500


def _share(counts: Counter[str], prefix: str) -> Counter[str]:
    return Counter({key: count for key, count in counts.items() if not key.startswith(prefix)})


def _sum(parts: list[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def _rot(pool: ProcessPoolExecutor, count: int, seed: int) -> Counter[str]:
    starts = range(0, count, _PIECE)
    jobs = [pool.submit(rot_campaign, min(_PIECE, count - first), seed, first=first) for first in starts]
    return _sum([job.result() for job in jobs])


def _hostile(pool: ProcessPoolExecutor, count: int, seed: int) -> Counter[str]:
    starts = range(0, count, _PIECE)
    jobs = [pool.submit(hostile_campaign, min(_PIECE, count - first), seed, first=first) for first in starts]
    return _sum([job.result() for job in jobs])


def _disturbed(pool: ProcessPoolExecutor, crashes: int, faults: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    first = [pool.submit(crash_campaign, crashes, seed, names=(name,)) for name in SCENES]
    second = [pool.submit(fault_campaign, faults, seed, names=(name,)) for name in SCENES]
    return _sum([job.result() for job in first]), _sum([job.result() for job in second])


def report(scale: float, seed: int) -> str:
    """Run the campaigns and return the table of what they counted."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=PAGE.parent, check=False
    ).stdout.strip()
    started = time.monotonic()
    crashes, faults = (max(1, round(count * scale)) for count in (CRASHES, FAULTS))
    rot, hostile = (max(1, round(count * scale)) for count in (ROT, HOSTILE))
    rows = []
    with ProcessPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        counts = _share(_rot(pool, rot, seed), "damage: ")
        lost = counts["beyond repair"] + counts["no set to be told"]
        rows.append(
            f"| Rot | {sum(counts.values()):,} damaged sets | {counts['intact']:,} found intact, "
            f"{counts['repaired']:,} repaired byte for byte, {lost:,} lost and reported so, "
            f"{counts['the other set']:,} with more of another set, {counts['refused to guess']:,} refused for want of "
            f"a choice between two sets, or as frames lie in files that belie them; **0 wrong bytes with success** |"
        )
        print(rows[-1], flush=True)
        if why_not():
            print(f"no crashes and no faults: {why_not()}", file=sys.stderr)
        else:
            ended, disturbed = _disturbed(pool, crashes, faults, seed)
            rows.append(
                f"| Crashes | {sum(count for key, count in ended.items() if ', by ' in key):,} runs of encode, encode "
                f"--force, repair and decode ended by SIGKILL, SIGTERM or SIGINT, half at a system call, half at a "
                f"moment | {ended['undone']:,} left all as before, {ended['half done']:,} were repeated to the end, "
                f"{ended['done']:,} had done their work, {ended['survived']:,} were faster; 0 sets lost |"
            )
            rows.append(
                f"| I/O faults | {sum(count for key, count in disturbed.items() if key.startswith('fault: ')):,} runs "
                f"with one of {sum(key.startswith('fault: ') for key in disturbed)} faults at a random call | "
                f"{disturbed['refused']:,} failed with one line and left nothing, {disturbed['done']:,} did their "
                f"work; 0 claimed what is not so |"
            )
        counts = _hostile(pool, hostile, seed)
        rows.append(
            f"| Hostile shards | {sum(counts.values()):,} sets, five commands each, in bounded memory | verify: "
            + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
            + "; 0 other exceptions, 0 files written elsewhere |"
        )
    head = (
        f"gfcode {version('gfcode')}{f' ({commit})' if commit else ''}, Python {platform.python_version()}, "
        f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, seed {seed}, {scale:.3g} of the full run, "
        f"{time.monotonic() - started:.0f} s:"
    )
    return "\n".join([head, "", "| campaign | trials | outcomes |", "|---|---|---|", *rows])


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
    parser.add_argument("--dry-run", action="store_true", help="print the counts only")
    options = parser.parse_args()
    counts = report(options.scale, options.seed)
    print(counts)
    if not options.dry_run:
        PAGE.write_text(replace_counts(PAGE.read_text(), counts))


if __name__ == "__main__":
    _main()
