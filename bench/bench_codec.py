"""Encode, decode, repair and update blocks in memory, beside ISA-L, zfec, pyeclib, Jerasure and what memory allows.

    python -m bench.bench_codec [--peers] [--short | --quick] [--shapes 4+2,10+4] [--sizes 64KiB,16MiB]
                                [--places staggered] [--only encode,decode,rows,threads] [--isa native,avx2]
                                [--engine simd] [--rounds 9] [--no-pin] [--estimate] [--add]
                                [--out bench/results/codec.json]

Rates are GB (10^9) of data bytes a second, one thread: k blocks for encode, decode and repair, one block for update.
Every case is checked against the data before it is measured. `times` is the median ratio to the current ISA-L, round by
round (`bench.harness` says how). Small blocks are handled many stripes to a call, on both sides.

With --isa, ISA-L's own functions for an instruction set are called, and our engine is held to the same instructions:
sse, avx2, avx512, avx2-gfni, avx512-gfni; native leaves the choice to both. A large run can be cut in parts: --only,
--shapes, --sizes and --places say what to measure, --add puts it into a result that is there already, and --estimate
says about how long it takes.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bench.codec_cases import LAYOUTS, OPERATIONS, PATIENCE, Subject, engine_at, target_at
from bench.codec_report import record, show, size_name, table
from bench.harness import PLACES, ROUNDS, Case, environment, interleave, pin
from bench.isal import ISAS
from bench.peers import peers_here
from gfcode.codec import Codec
from gfcode.engine.protocol import Engine

SHAPES = ((4, 2), (6, 3), (8, 3), (10, 4), (12, 4), (16, 4), (20, 4), (17, 3), (50, 20), (100, 30))
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
QUICK = (((4, 2), (10, 4), (20, 4)), (64 << 10, 16 << 20))
SHORT_SIZES = (64 << 10, 16 << 20)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
#: Bytes that all blocks of a case take at most: 8 MiB a block for (50,20), 4 MiB for (100,30).
AT_MOST = 1 << 30
#: Calls of more seconds run once in a turn.
LONG = 0.02
EXTRAS = ("rows", "threads")

Record = dict[str, Any]


class Run:
    """One instruction set: our engine, the peers, and the cases that are measured with them.

    Parameters
    ----------
    isa : str
        A key of `bench.isal.ISAS`.
    options : Namespace
        The command line.
    """

    def __init__(self, isa: str, options: argparse.Namespace) -> None:
        self.isa, self.rounds = isa, options.rounds
        self.target = target_at(isa)
        self.engine: Engine = engine_at(options.engine, isa)
        self.peers, self.missing = peers_here(isa)
        if not options.peers:
            self.peers = {name: peer for name, peer in self.peers.items() if name == "isal"}

    def about(self) -> dict[str, str]:
        """Name everyone's version."""
        versions = {f"{self.isa}: peer {name}": peer.version for name, peer in self.peers.items()}
        return versions | {f"{self.isa}: no peer {name}": reason for name, reason in self.missing.items()}

    def measure(self, case: Case, operations: Sequence[str], peers: dict[str, Any] | None = None) -> Iterator[Record]:
        """Measure the operations on one set of blocks."""
        subject = Subject(case, self.engine, self.peers if peers is None else peers, self.target)
        for operation in operations:
            made = OPERATIONS[operation](subject)
            figures = interleave(made.calls, made.sizes, rounds=self.rounds, long=LONG)
            mine = Case(operation, case.k, case.m, case.length, case.where)
            show(self.isa, mine, figures)
            yield record(self.isa, mine, figures, made.left_out)

    def by_rows(self) -> Iterator[Record]:
        """Encode at k = 10 as m grows from 1 to 10."""
        isals = {name: peer for name, peer in self.peers.items() if name.startswith("isal")}
        for m in range(1, 11):
            yield from self.measure(Case("encode", 10, m, 64 << 10, PLACES[0]), ["encode"], isals)


def by_threads(engine: Engine, rounds: int) -> Iterator[Record]:
    """Encode (10,4) in 1 .. all threads: each on blocks of its own, whose rates are added; and one call split."""
    limit = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = sorted({1, limit} | {1 << n for n in range(limit.bit_length()) if 1 << n <= limit})
    for length, layout in itertools.product((64 << 10, 1 << 20, 16 << 20), LAYOUTS):
        case = Case("encode", 10, 4, length, PLACES[0])
        subjects = [Subject(case, engine, {}, target_at("native")) for _ in range(limit)]
        calls = [subject.encode().calls[layout] for subject in subjects]
        size = subjects[0].times * subjects[0].stripe
        repeats = max(1, round(0.05 * 10e9 / size))
        rates: dict[tuple[str, int], list[float]] = {}
        blocks = subjects[0].batch()
        split = {count: Codec(10, 4, layout=layout, engine=engine, threads=count).encoder() for count in counts}
        for _ in range(rounds):
            for count in counts:
                took = _together(calls[:count], repeats)
                rates.setdefault(("calls", count), []).append(count * repeats * size / took / 1e9)
                took = _together([partial(split[count], *blocks)], repeats)
                rates.setdefault(("one call", count), []).append(repeats * size / took / 1e9)
        for (what, count), mine in sorted(rates.items()):
            middle = statistics.median(mine)
            yield {"what": what, "layout": layout, "length": length, "threads": count, "rates": mine, "median": middle}
            print(
                f"(10,4) {size_name(length):>7} {layout:8} {what:8} {count} threads: {middle:.1f} GB/s "
                f"[{min(mine):.1f}-{max(mine):.1f}]",
                flush=True,
            )


def _together(calls: Sequence[Any], repeats: int) -> float:
    """Seconds that threads take which begin together and call each its own function again and again."""
    barrier = threading.Barrier(len(calls) + 1)

    def work(call: Any) -> None:
        barrier.wait()
        for _ in range(repeats):
            call()

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def cases(options: argparse.Namespace) -> list[Case]:
    """Return the shapes, lengths and places that were asked for; lengths are halved until all blocks fit `AT_MOST`."""
    shapes: Sequence[tuple[int, ...]] = QUICK[0] if options.quick else SHAPES
    sizes: Sequence[int] = QUICK[1] if options.quick else SHORT_SIZES if options.short else SIZES
    if options.shapes:
        shapes = [tuple(map(int, text.split("+"))) for text in options.shapes.split(",")]
    if options.sizes:
        sizes = [int(text[:-3]) * UNITS[text[-3:]] for text in options.sizes.split(",")]
    places: Sequence[str] = PLACES[:1] if options.quick or options.short else PLACES
    if options.places:
        places = tuple(place for place in PLACES if place in options.places.split(","))
    found = []
    for (k, m), asked, where in itertools.product(shapes, sizes, places):
        length = asked
        while (k + 3 * m) * length > AT_MOST:
            length //= 2
        found.append(Case("", k, m, length, where))
    return list(dict.fromkeys(found))


def seconds(case: Case, operations: int, peers: int, rounds: int) -> float:
    """Estimate how long a case takes, from rates on one machine."""
    stripe = case.k * case.length
    data = max(stripe, 4 << 20)
    call = data / (15e9 if stripe > 1 << 24 else 40e9) * (1 + case.m / 5)
    turn = call if call > LONG else 3 * max(call, 0.0015)
    slow = 0.0 if peers <= 2 or stripe * case.m > PATIENCE else 2.0 * max(stripe * case.m / 3e9, 0.0045)
    # Blocks are filled once; each operation has kernels to compile and bytes to check.
    return stripe / 3e8 + operations * (0.5 + rounds * ((3 + peers) * turn + slow))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--peers", action="store_true", help="measure everyone else who is installed, not ISA-L only")
    parser.add_argument("--quick", action="store_true", help="three shapes, two sizes, staggered blocks")
    parser.add_argument("--short", action="store_true", help="all shapes, two sizes, staggered blocks")
    parser.add_argument("--shapes", help="such as 4+2,10+4")
    parser.add_argument("--sizes", help="such as 64KiB,16MiB")
    parser.add_argument("--places", help=f"of {', '.join(PLACES)}")
    parser.add_argument("--only", help=f"of {', '.join(OPERATIONS)} (repair stands for both), {', '.join(EXTRAS)}")
    parser.add_argument("--isa", default="native", help=f"instruction sets: {', '.join(ISAS)}")
    parser.add_argument("--engine", default="simd")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-pin", action="store_true", help="let the thread wander between CPUs")
    parser.add_argument("--estimate", action="store_true", help="only say about how long it takes")
    parser.add_argument("--add", action="store_true", help="keep what the result has of other cases")
    parser.add_argument("--out", default="bench/results/codec.json", help="where the JSON goes")
    options = parser.parse_args(arguments)
    options.isa = options.isa.split(",")
    for isa in options.isa:
        if isa not in ISAS:
            parser.error(f"there is no instruction set {isa!r}; choose of {', '.join(ISAS)}")
    known = (*OPERATIONS, *EXTRAS)
    # Without --only, a quick or short run leaves the extras out.
    every = tuple(OPERATIONS) if options.quick or options.short else known
    asked: list[str] = options.only.split(",") if options.only else list(every)
    for name in asked:
        if name not in known:
            parser.error(f"there is nothing called {name!r} to measure; choose of {', '.join(known)}")
    asked += [name for name in OPERATIONS if "repair" in asked and name.startswith("repair")]
    options.operations = [name for name in OPERATIONS if name in asked]
    options.extras = [name for name in EXTRAS if name in asked]
    return options


def key(record_: Record) -> tuple[Any, ...]:
    """Tell records of different cases apart."""
    names = ("isa", "operation", "k", "m", "length", "where", "layout", "what", "threads")
    return tuple(record_.get(name) for name in names)


def store(path: str, found: dict[str, Any], *, add: bool) -> dict[str, Any]:
    """Write the JSON; return what is in it."""
    if add and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        for group in ("cases", "rows", "threads"):
            mine = {key(record_) for record_ in found[group]}
            kept = [record_ for record_ in before.get(group, []) if key(record_) not in mine]
            found[group] = [*kept, *found[group]]
        found["environment"] = {**before.get("environment", {}), **found["environment"]}
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    return found


def main(arguments: Sequence[str]) -> None:
    """Measure, print and store."""
    options = parse(arguments)
    runs = [Run(isa, options) for isa in options.isa]
    asked = cases(options)
    operations = len(options.operations)
    total = sum(seconds(case, operations, len(run.peers), options.rounds) for run in runs for case in asked)
    total += (5 * len(runs) * ("rows" in options.extras) + 40 * ("threads" in options.extras)) * options.rounds / 9
    print(f"about {total / 60:.0f} minutes" if total > 90 else f"about {total:.0f} seconds", flush=True)
    if options.estimate:
        return
    info = environment()
    for run in runs:
        info |= run.about()
    found: dict[str, Any] = {"environment": info, "cases": [], "rows": [], "threads": []}
    begin = time.monotonic()
    if "threads" in options.extras:
        found["threads"] = list(by_threads(engine_at(options.engine, "native"), options.rounds))
    info["pinned to CPU"] = "none" if options.no_pin else str(pin())
    for name, value in info.items():
        print(f"{name}: {value}")
    # All instruction sets of a case close together in time.
    for case in asked if options.operations else []:
        for run in runs:
            found["cases"] += run.measure(case, options.operations)
    if "rows" in options.extras:
        for run in runs:
            found["rows"] += run.by_rows()
    found = store(options.out, found, add=options.add)
    print("\n".join(table(found["cases"])))
    print(f"written to {options.out} after {(time.monotonic() - begin) / 60:.1f} minutes")


if __name__ == "__main__":
    main(sys.argv[1:])
