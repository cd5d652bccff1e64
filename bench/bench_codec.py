"""Encode, decode, repair and update blocks in memory, beside ISA-L, zfec, pyeclib, Jerasure and what memory allows.

    python -m bench.bench_codec [--peers] [--quick] [--shapes 4+2,10+4] [--sizes 64KiB,16MiB] [--engine simd]
                                [--rounds 9] [--no-pin] [--out bench/results/codec.json]

Rates are GB (10^9) of data bytes a second, one thread: k blocks for encode, decode and repair, one block for update.
Every case is checked against the data before it is measured. `times` is the median ratio to the current ISA-L, round by
round (`bench.harness` says how). Small blocks are handled many stripes to a call, on both sides.
"""

import argparse
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from bench.harness import PLACES, ROUNDS, Case, Figure, environment, interleave, pin, place
from bench.peers import floors, peers_here
from gfcode.codec import Codec
from gfcode.engine.protocol import Blocks
from gfcode.params import LayoutName

SHAPES = ((4, 2), (6, 3), (8, 3), (10, 4), (12, 4), (16, 4), (20, 4), (17, 3), (50, 20), (100, 30))
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
QUICK = (((4, 2), (10, 4), (20, 4)), (64 << 10, 16 << 20))
LAYOUTS: tuple[LayoutName, ...] = ("packets", "words")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
#: Bytes that a call handles at least, by repeating stripes, and all blocks of a case at most.
AT_LEAST, AT_MOST = 4 << 20, 1 << 30
#: Parities from which the family `fft` is measured too.
WIDE = 8
#: Blocks up to this size lie in a cache, all of a stripe together.
CACHED = 64 << 10

Call = Callable[[], object]


def repeated(blocks: Blocks, times: int) -> Blocks:
    """Return the same stripe several times over."""
    return Blocks(np.tile(blocks.table, (times, 1)), blocks.length, blocks.owners)


def several(call: Call, times: int) -> None:
    """Call again and again."""
    for _ in range(times):
        call()


class Subject:
    """Our codec and everyone else's on the blocks of one case."""

    def __init__(self, case: Case, engine: str, peers: dict[str, Any]) -> None:
        self.case, self.peers = case, peers
        k, m = case.k, case.m
        self.data, self.parity, self.out = place((k, m, m), case.length, case.where)
        self.times = max(1, AT_LEAST // (k * case.length))
        self.codecs: dict[str, Codec] = {name: Codec(k, m, layout=name, engine=engine) for name in LAYOUTS}
        if m >= WIDE:
            self.codecs["words, fft"] = Codec(k, m, matrix="fft", layout="words", engine=engine)
        self.isals = {name: peers[name] for name in ("isal", "isal-debian") if name in peers}

    def encode(self) -> dict[str, Call]:
        """Make all parity from all data."""
        k, m = self.case.k, self.case.m
        inputs, outputs = Blocks.of_array(self.data), Blocks.of_array(self.parity, writable=True)
        calls: dict[str, Call] = {}
        matrix = self.codecs["words"].parity.values
        for name, codec in self.codecs.items():
            operator = codec.encoder()
            operator(inputs, outputs)
            if name == "words":
                self._check_against_isal(matrix)
            many = repeated(inputs, self.times), repeated(outputs, self.times)
            calls[name] = partial(operator, *many)
        for name, isal in self.isals.items():
            calls[name] = isal.product(matrix, list(self.data), list(self.out), self.times)
        if self.times == 1 or self.case.length >= CACHED:
            calls |= self._others("encode", k, m)
        calls |= floors(list(self.data), list(self.out), self.times)
        return calls

    def decode(self) -> dict[str, Call]:
        """Rebuild the first m data blocks from the rest."""
        return self._rebuild(list(range(self.case.m)), list(range(self.case.m)))

    def repair(self) -> dict[str, Call]:
        """Rebuild one data block from the others and parity 0, which is a plain sum in these codes."""
        calls = self._rebuild([0], [0])
        if "isal" in self.peers and self.times == 1:
            xor = self.peers["isal"].xor([*self.data[1:], self.parity[0]], self.out[0])
            if xor is not None:
                calls["isal xor_gen"] = xor
        return calls

    def repair_general(self) -> dict[str, Call]:
        """Rebuild one data block while parity 0 is lost too."""
        return self._rebuild([0, self.case.k], [0])

    def _rebuild(self, lost: list[int], want: list[int]) -> dict[str, Call]:
        k, m = self.case.k, self.case.m
        shards = [*self.data, *self.parity]
        calls: dict[str, Call] = {}
        for name, codec in self.codecs.items():
            codec.encoder()(Blocks.of_array(self.data), Blocks.of_array(self.parity, writable=True))
            plan = codec.plan([index for index in range(k + m) if index not in lost], want)
            sources = [shards[index] for index in plan.sources]
            outputs = list(self.out[: len(want)])
            inputs, made = Blocks.of_buffers(sources), Blocks.of_buffers(outputs, writable=True)
            plan.operator(inputs, made)
            assert all((block == self.data[index]).all() for block, index in zip(outputs, want, strict=True))
            many = repeated(inputs, self.times), repeated(made, self.times)
            calls[name] = partial(plan.operator, *many)
            if name == "words":
                for peer, isal in self.isals.items():
                    calls[peer] = isal.product(plan.matrix.values, sources, outputs, self.times)
        if len(want) > 1 and (self.times == 1 or self.case.length >= CACHED):
            calls |= self._others("decode", k, m)
        return calls

    def update(self) -> dict[str, Call]:
        """Patch all parity after one data block has changed, as a user calls it."""
        old, new = self.data[0], self.data[1]
        calls: dict[str, Call] = {}
        for name, codec in self.codecs.items():
            calls[name] = partial(codec.update, self.parity, 0, old, new)
        for name, isal in self.isals.items():
            calls[name] = isal.update(self.codecs["words"].parity.values, 0, old, new, list(self.out))
        return calls

    def _others(self, operation: str, k: int, m: int) -> dict[str, Call]:
        """Call peers that take a stripe at a time."""
        data = list(self.data)
        lost = list(range(m))
        calls: dict[str, Call] = {}
        for name in ("zfec", "pyeclib", "jerasure"):
            peer = self.peers.get(name)
            if peer is None or (name == "pyeclib" and k + m > 32):
                continue
            arguments: list[Any] = [k, m, data]
            if name == "jerasure":
                arguments.append(list(self.out))
            if operation == "decode":
                arguments.append(lost)
            one = getattr(peer, operation)(*arguments)
            calls[name] = partial(several, one, self.times)
        return calls

    def _check_against_isal(self, matrix: Any) -> None:
        for isal in self.isals.values():
            isal.product(matrix, list(self.data), list(self.out), 1)()
            assert (self.out == self.parity).all(), "ISA-L and gfcode disagree"


OPERATIONS: dict[str, Callable[[Subject], dict[str, Call]]] = {
    "encode": Subject.encode,
    "decode": Subject.decode,
    "repair": Subject.repair,
    "repair, parity 0 lost": Subject.repair_general,
    "update": Subject.update,
}


def measure(case: Case, engine: str, peers: dict[str, Any], rounds: int) -> dict[str, Figure]:
    """Measure one case."""
    subject = Subject(case, engine, peers)
    calls = OPERATIONS[case.operation](subject)
    blocks = 1 if case.operation == "update" else case.k * subject.times
    return interleave(calls, blocks * case.length, rounds=rounds)


def size_name(length: int) -> str:
    """Name a size in KiB or MiB."""
    return f"{length >> 20} MiB" if length >= 1 << 20 else f"{length >> 10} KiB"


def show(case: Case, figures: dict[str, Figure]) -> None:
    """Print one line: our rates and ratios, then everyone else's rates."""
    isal = figures.get("isal")
    parts = []
    for name, figure in figures.items():
        ratio = f" ×{figure.ratio(isal):.2f}" if isal and name.startswith(LAYOUTS) else ""
        parts.append(f"{name} {figure.median:.1f} [{min(figure.rates):.1f}-{max(figure.rates):.1f}]{ratio}")
    shape = f"({case.k},{case.m})"
    print(f"{shape:9} {size_name(case.length):>7} {case.where:13} {case.operation:22} " + "  ".join(parts), flush=True)


def record(case: Case, figures: dict[str, Figure]) -> dict[str, Any]:
    """Return what goes into the JSON."""
    isal = figures.get("isal")
    return {
        **vars(case),
        "rates": {name: list(figure.rates) for name, figure in figures.items()},
        "median": {name: figure.median for name, figure in figures.items()},
        "times_isal": {
            name: figure.ratio(isal) for name, figure in figures.items() if name.startswith(LAYOUTS) and isal
        },
    }


def by_rows(engine: str, peers: dict[str, Any], rounds: int) -> Iterator[tuple[Case, dict[str, Figure]]]:
    """Encode at k = 10 as m grows from 1 to 10."""
    for m in range(1, 11):
        case = Case("encode", 10, m, 64 << 10, PLACES[0])
        isals = {name: peer for name, peer in peers.items() if name.startswith("isal")}
        yield case, measure(case, engine, isals, rounds)


def by_threads(engine: str, rounds: int) -> list[dict[str, Any]]:
    """Encode (10,4) in several threads at once, each on blocks of its own; rates are those of all together."""
    found = []
    limit = os.cpu_count() or 1
    counts = sorted({1, 2, limit} | {1 << n for n in range(limit.bit_length()) if 1 << n <= limit})
    for length in (64 << 10, 1 << 20):
        for count in (count for count in counts if count <= limit):
            subjects = [Subject(Case("encode", 10, 4, length, PLACES[0]), engine, {}) for _ in range(count)]
            for layout in LAYOUTS:
                calls = [subject.encode()[layout] for subject in subjects]
                rates = []
                for _ in range(rounds):
                    start = time.perf_counter()
                    threads = [threading.Thread(target=several, args=(call, 20)) for call in calls]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
                    total = 20 * count * 10 * length * subjects[0].times
                    rates.append(total / (time.perf_counter() - start) / 1e9)
                middle = sorted(rates)[len(rates) // 2]
                found.append({"layout": layout, "length": length, "threads": count, "rates": rates, "median": middle})
                print(f"(10,4) {size_name(length):>7} {layout:8} {count} threads: {middle:.1f} GB/s", flush=True)
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--peers", action="store_true", help="measure everyone else who is installed, not ISA-L only")
    parser.add_argument("--quick", action="store_true", help="three shapes, two sizes, staggered blocks")
    parser.add_argument("--shapes", help="such as 4+2,10+4")
    parser.add_argument("--sizes", help="such as 64KiB,16MiB")
    parser.add_argument("--engine", default="simd")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-pin", action="store_true", help="let the thread wander between CPUs")
    parser.add_argument("--out", default="bench/results/codec.json", help="where the JSON goes")
    return parser.parse_args(arguments)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases that were asked for and fit into memory."""
    shapes: Sequence[tuple[int, ...]] = QUICK[0] if options.quick else SHAPES
    sizes: Sequence[int] = QUICK[1] if options.quick else SIZES
    if options.shapes:
        shapes = [tuple(map(int, text.split("+"))) for text in options.shapes.split(",")]
    if options.sizes:
        sizes = [int(text[:-3]) * UNITS[text[-3:]] for text in options.sizes.split(",")]
    for (k, m), length, where in itertools.product(shapes, sizes, PLACES[:1] if options.quick else PLACES):
        if (k + 2 * m) * length <= AT_MOST:
            yield from (Case(operation, k, m, length, where) for operation in OPERATIONS)


def main(arguments: Sequence[str]) -> None:
    """Measure, print and store."""
    options = parse(arguments)
    peers, missing = peers_here()
    if not options.peers:
        peers = {name: peer for name, peer in peers.items() if name == "isal"}
    info = environment()
    info |= {f"peer {name}": peer.version for name, peer in peers.items()}
    info |= {f"no peer {name}": reason for name, reason in missing.items()}
    threads = [] if options.quick else by_threads(options.engine, options.rounds)
    info["pinned to CPU"] = "none" if options.no_pin else str(pin())
    for key, value in info.items():
        print(f"{key}: {value}")
    records, rows = [], []
    for case in cases(options):
        figures = measure(case, options.engine, peers, options.rounds)
        show(case, figures)
        records.append(record(case, figures))
    for case, figures in [] if options.quick else by_rows(options.engine, peers, options.rounds):
        show(case, figures)
        rows.append(record(case, figures))
    os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"environment": info, "cases": records, "rows": rows, "threads": threads}, file, indent=1)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
