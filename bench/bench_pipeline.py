"""Encode, verify, repair and decode files, as whole processes, beside the I/O floor and beside zfec and par2.

    python -m bench.bench_pipeline [--short] [--sizes 1MiB,64MiB,1GiB,4GiB] [--codes 4+2,10+4,17+3] [--rounds 5]
                                   [--files 3000] [--caches warm,cold] [--sync] [--no-peers] [--threads N]
                                   [--directory DIR] [--out FILE.json]

The `gfcode` command is the one beside the interpreter. It is measured as users have it: installed by pip, which
compiles the modules (`python -m venv E && E/bin/pip install . zfec && E/bin/python -m bench.bench_pipeline`); an
editable installation, or PYTHONDONTWRITEBYTECODE, adds a tenth of a second or more to every run.

Every candidate runs next to its own floor, before and after it in turn (`bench.floor`: the same bytes read, the same
number of bytes written to the same number of files, nothing else); a figure is the median of the ratios of such
neighbours, with their range, in wall time and in CPU time (user and system, all threads). Targets are removed before
each run, outside the measurement. zfec and par2 take the candidate's place beside our encode at 10 + 4. With a cold
cache it is dropped before each run, which needs root. --files encodes a tree of so many files of 10,000 bytes.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.harness import environment

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
GFCODE = [str(Path(sys.executable).with_name("gfcode"))]
NOTHING = "/dev/null"


@dataclass
class Run:
    """Wall and CPU seconds, and peak memory in MiB, of one process."""

    wall: float
    cpu: float
    peak: float


@dataclass
class Case:
    """One thing to do, and the floor it is held against."""

    name: str
    floor: list[str]
    command: list[str]
    clean: Callable[[], None]
    pairs: list[tuple[Run, Run]] = field(default_factory=list)


#: What --short measures, in about five minutes.
SHORT = {"sizes": "1MiB,64MiB,1GiB", "codes": "10+4", "rounds": 3, "files": 300}


def parse_size(text: str) -> int:
    """Turn 64MiB into bytes."""
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


def measure(command: Sequence[str], *, cold: bool) -> Run:
    """Run a process to its end."""
    if cold:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(
            f"{' '.join(command[:6])} ... exited {process.returncode}: {complaint.decode(errors='replace')}"
        )
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure_pair(case: Case, *, floor_first: bool, cold: bool) -> tuple[Run, Run]:
    """Run a case and its floor, one right after the other; who goes second finds what the first left behind."""
    runs = []
    for command in (case.floor, case.command) if floor_first else (case.command, case.floor):
        case.clean()
        runs.append(measure(command, cold=cold))
    return (runs[0], runs[1]) if floor_first else (runs[1], runs[0])


def make_source(path: Path, size: int) -> None:
    """Write pseudorandom bytes that are the same in every run."""
    generator = np.random.default_rng(1)
    with path.open("wb") as file:
        for at in range(0, size, 8 << 20):
            file.write(generator.integers(0, 256, min(8 << 20, size - at), dtype=np.uint8).tobytes())


def empty(directory: Path) -> None:
    """Leave a directory with nothing in it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()


def cases_of(work: Path, source: Path, k: int, m: int, options: argparse.Namespace) -> list[Case]:
    """List what is measured for one code: a complete set is made first, for what reads one."""
    n, size = k + m, source.stat().st_size
    made, fresh, floor, output = work / "set", work / "fresh", work / "floor", work / "output"
    for directory in (made, fresh, floor, output):
        empty(directory)
    sync = ["sync"] if options.sync else []
    durable = [] if options.sync else ["--no-sync"]
    threads = ["--threads", str(options.threads)] if options.threads else []
    encode = [*GFCODE, "encode", str(source), "-q", "-k", str(k), "-m", str(m), *threads, *durable]
    subprocess.run([*encode, "--out", str(made)], check=True)
    shards = sorted(map(str, made.iterdir()))
    shard_bytes = os.stat(shards[0]).st_size
    bare = [sys.executable, "-S", "-m", "bench.floor"]
    decode = [*GFCODE, "decode", "-q", *threads, *durable, "-o", str(output / "file")]
    lossy = work / "lossy"
    empty(lossy)
    for shard in shards[m:]:
        os.link(shard, lossy / os.path.basename(shard))
    single = work / "single"
    empty(single)
    for shard in shards[1:]:
        os.link(shard, single / os.path.basename(shard))
    lost = single / os.path.basename(shards[0])

    def clean() -> None:
        empty(fresh)
        empty(floor)
        empty(output)
        lost.unlink(missing_ok=True)

    survivors = shards[m : m + k]
    return [
        Case("encode", [*bare, "encode", str(source), str(floor), str(k), str(n), str(shard_bytes), *sync],
             [*encode, "--out", str(fresh)], clean),
        Case("verify", [*bare, "read", *shards], [*GFCODE, "verify", "-q", *threads, str(made)], clean),
        Case("decode, nothing lost", [*bare, "decode", str(floor / "file"), str(size), *shards[:k], *sync],
             [*decode, str(made)], clean),
        Case(f"decode, {min(k, m)} data shards lost",
             [*bare, "decode", str(floor / "file"), str(size), *survivors, *sync], [*decode, str(lossy)], clean),
        Case("repair of one shard", [*bare, "repair", str(floor / "file"), str(shard_bytes), *shards[1:], *sync],
             [*GFCODE, "repair", "-q", *threads, *durable, str(single)], clean),
    ]  # fmt: skip


def peer_cases(work: Path, source: Path) -> list[Case]:
    """List the encoders of others at 10 + 4 that are installed here; our own encode takes the floor's place."""
    fresh, theirs = work / "fresh", work / "theirs"

    def clean() -> None:
        empty(fresh)
        empty(theirs)

    ours = [*GFCODE, "encode", str(source), "-q", "-k", "10", "-m", "4", "--no-sync", "--out", str(fresh)]
    cases = []
    zfec = shutil.which("zfec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if zfec:
        command = [zfec, "-q", "-k", "10", "-m", "14", "-d", str(theirs), "-p", "file", str(source)]
        cases.append(Case("zfec 10 of 14", ours, command, clean))
    par2 = shutil.which("par2")
    if par2:
        link = work / "par2.input"
        if not link.exists():
            os.link(source, link)
        command = [par2, "create", "-qq", "-b10", "-c4", "-B", str(work), str(theirs / "file.par2"), str(link)]
        cases.append(Case("par2 -b10 -c4", ours, command, clean))
    return cases


def tree_case(work: Path, count: int, options: argparse.Namespace) -> Case:
    """Return the encoding of many small files, each into a set of its own at 10 + 4."""
    files, fresh, floor = work / "tree", work / "fresh", work / "floor"
    empty(files)
    for number in range(count):
        (files / f"{number:05d}").write_bytes(os.urandom(10_000))
    durable = ["--sync" if options.sync else "--no-sync"]
    encode = [*GFCODE, "encode", str(files), "-q", "-k", "10", "-m", "4", *durable, "--out", str(fresh)]

    def clean() -> None:
        empty(fresh)
        empty(floor)

    clean()
    subprocess.run(encode, check=True)
    shard_bytes = os.stat(next((fresh / "tree").iterdir())).st_size
    bare = [sys.executable, "-S", "-m", "bench.floor", "tree", str(files), str(floor), "14", str(shard_bytes)]
    return Case(f"encode of {count} files", [*bare, *(["sync"] if options.sync else [])], encode, clean)


def spread(values: list[float]) -> str:
    """Write a median with its range."""
    return f"{statistics.median(values):6.2f} [{min(values):.2f}-{max(values):.2f}]"


def report(title: str, cases: list[Case]) -> list[dict[str, object]]:
    """Print the ratios of one input, and return them."""
    rows: list[dict[str, object]] = []
    for case in cases:
        walls = [run.wall / floor.wall for floor, run in case.pairs]
        cpus = [run.cpu / floor.cpu for floor, run in case.pairs]
        wall = statistics.median(run.wall for _, run in case.pairs)
        base = statistics.median(floor.wall for floor, _ in case.pairs)
        peak = max(run.peak for _, run in case.pairs)
        print(
            f"{title:18} {case.name:26} floor {base:7.3f} s  candidate {wall:7.3f} s  wall {spread(walls)}  "
            f"cpu {spread(cpus)}  peak {peak:4.0f} MiB",
            flush=True,
        )
        rows.append(
            {
                "input": title, "case": case.name, "wall_ratio": statistics.median(walls), "wall_ratios": walls,
                "cpu_ratio": statistics.median(cpus), "cpu_ratios": cpus, "peak_mib": peak,
                "runs": [[vars(floor), vars(run)] for floor, run in case.pairs],
            }
        )  # fmt: skip
    return rows


def measure_cases(title: str, cases: list[Case], rounds: int, *, cold: bool) -> list[dict[str, object]]:
    """Let all cases take turns, each beside its floor; the first turn warms caches and compiles."""
    for turn in range(rounds + 1):
        for case in cases:
            pair = measure_pair(case, floor_first=turn % 2 == 0, cold=cold)
            if turn:
                case.pairs.append(pair)
    return report(f"{title} {'cold' if cold else 'warm'}", cases)


def main() -> None:
    """Measure everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="less of everything, in about five minutes")
    parser.add_argument("--sizes")
    parser.add_argument("--codes")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--files", type=int, help="how many files of 10,000 bytes the tree has; 0: no tree")
    parser.add_argument("--caches", default="warm", help="warm, cold (needs root), or warm,cold")
    parser.add_argument("--sync", action="store_true", help="flush to the device, on both sides")
    parser.add_argument("--no-peers", action="store_true", help="leave out zfec and par2")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--directory", help="where the files are put; a temporary directory by default")
    parser.add_argument("--out", help="write all runs to this JSON file")
    options = parser.parse_args()
    full = {"sizes": "1MiB,64MiB,1GiB,4GiB", "codes": "4+2,10+4,17+3", "rounds": 5, "files": 3000}
    for name, value in (SHORT if options.short else full).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="gfcode-bench-", dir=options.directory) as name:
        work = Path(name)
        for size_text in options.sizes.split(","):
            source = work / "source"
            make_source(source, parse_size(size_text))
            for code in options.codes.split(","):
                k, m = map(int, code.split("+"))
                for cache in options.caches.split(","):
                    cases = cases_of(work, source, k, m, options)
                    if (k, m) == (10, 4) and cache == "warm" and not (options.no_peers or options.sync):
                        cases += peer_cases(work, source)
                    rows += measure_cases(f"{size_text} {code}", cases, options.rounds, cold=cache == "cold")
        if options.files:
            rows += measure_cases("10+4", [tree_case(work, options.files, options)], options.rounds, cold=False)
    if options.out:
        settings = {key: value for key, value in vars(options).items() if key != "out"}
        result = {"environment": environment(), "settings": settings, "rows": rows}
        Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
