"""Published benchmark tables, run again here: ours, the peers that are installed, and what was published.

    python -m bench.tables [--tables sc21,isal,klauspost,gcrs] [--rounds 7] [--short]
                           [--out bench/results/tables.json]
    python -m bench.tables --print bench/results/tables.json

sc21
    RS(8..10, 2..4), 10 MB of data, encode and decode, of Uezato, "Accelerating XOR-based Erasure Coding using Program
    Optimization Techniques" (SC'21), whose blocks of 1 KB and 2 KB are packets here. GB of data a second.
isal
    ISA-L's erasure_code_perf with its defaults: (10,4), blocks of 32 MiB / 14, decoding 2, 4, 5, 7. GB of all n blocks
    a second, as it counts. (It makes its tables each time, which at this length is in the noise; here they are made.)
klauspost
    The encode benchmarks of klauspost/reedsolomon: KxMxLENGTH. GB of data and parity a second, as it counts.
gcrs
    m = 1..4, w = 4..8 of Liu, Wang, Chu and Leung, "G-CRS" (TPDS 2018), with k = 10 and 10 MB of data on one CPU, where
    theirs are a GPU's; Jerasure's cauchy_good beside. GB of data a second.

One thread, on memory; all take turns (`gfcode.measure.harness`); medians. ISA-L, Jerasure and klauspost/reedsolomon are
measured where they are installed. Published figures (`bench.published`) stand beside, each with its source.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from bench import gcrs, klauspost
from bench.harness import Figure, environment, interleave, place
from bench.isal import package_version
from bench.published import FIGURES, SOURCES, Published, figures
from gfcode.codec import Codec
from gfcode.engine.protocol import Blocks
from gfcode.measure.isal import Isal, load

__all__ = ["Entry", "main", "measure", "render", "table"]

TABLES = ("sc21", "isal", "klauspost", "gcrs")
#: What columns are called in print, where that differs from the results.
_NAMES = {"isal": "ISA-L", "jerasure": "Jerasure"}
#: Bytes of a packet of Jerasure.
_PACKET = 2048
_MIB = 1 << 20
Call = Callable[[], object]


@dataclass(frozen=True)
class Entry:
    """One line of a table.

    Attributes
    ----------
    table, name, operation : str
    k, m : int
    length : int
        Bytes of a block, for `words` and the peers; `packets` takes whole strips of it.
    lost : tuple of int
        Data shards to decode; none for encode.
    packets : tuple of int
        Bytes of packets that are measured.
    counts_parity : bool
        Whether the rate is that of all n blocks, or of the k data blocks.
    w : int
        Bits of a symbol.
    """

    table: str
    name: str
    operation: str
    k: int
    m: int
    length: int
    lost: tuple[int, ...] = ()
    packets: tuple[int, ...] = (64,)
    counts_parity: bool = False
    w: int = 8


def table(name: str) -> Iterator[Entry]:
    """Yield the lines of a table.

    Raises
    ------
    ValueError
        If there is no such table.
    """
    if name == "sc21":
        for k, m in product((8, 9, 10), (2, 3, 4)):
            length = 10_000_000 // k // 64 * 64
            for operation in ("encode", "decode"):
                lost = tuple(range(2, 2 + m)) if operation == "decode" else ()
                yield Entry(name, f"RS({k},{m})", operation, k, m, length, lost, (64, 1024, 2048))
    elif name == "isal":
        length = 32 * _MIB // 14 // 64 * 64
        yield Entry(name, "14x10", "encode", 10, 4, length, counts_parity=True)
        yield Entry(name, "14x10", "decode", 10, 4, length, (2, 4, 5, 7), counts_parity=True)
    elif name == "klauspost":
        for k, m, size in ((10, 4, 1), (10, 4, 16), (17, 3, 1), (50, 20, 1)):
            yield Entry(name, f"{k}x{m}x{size}M", "encode", k, m, size * _MIB, counts_parity=True)
    elif name == "gcrs":
        for m, w in product((1, 2, 3, 4), (4, 5, 6, 7, 8)):
            length = 1_000_000 // (w * _PACKET) * w * _PACKET
            yield Entry(name, f"m={m} w={w}", "encode", 10, m, length, w=w)
    else:
        raise ValueError(f"there is no table {name!r}; choose from {', '.join(TABLES)}")


def measure(entry: Entry, isal: Isal | None, program: str | None, rounds: int) -> dict[str, Figure]:
    """Measure one line: ours by layout and packet, then peers; every result is checked.

    Raises
    ------
    AssertionError
        If a decoded block is not the data, or ISA-L's bytes are not ours.
    """
    k, m = entry.k, entry.m
    made = len(entry.lost) or m
    data, parity, out = place((k, m, made), entry.length, "staggered")
    shards = [*data, *parity]
    left = [index for index in range(k + m) if index not in entry.lost]
    want = list(entry.lost) or list(range(k, k + m))
    calls: dict[str, Call] = {}
    sizes: dict[str, int] = {}
    blocks = k + (made if entry.counts_parity else 0)
    codecs = {"words": Codec(k, m, entry.w, layout="words")} if entry.w in {4, 8} else {}
    codecs |= {f"packets {size}": Codec(k, m, entry.w, packet_bytes=size) for size in entry.packets}
    for name, codec in reversed(codecs.items()):  # words last: its parity is what ISA-L is checked with
        length = entry.length // codec.block_multiple * codec.block_multiple
        codec.encode([block[:length] for block in data], [block[:length] for block in parity])
        plan = codec.plan(left if entry.lost else range(k), want)
        inputs = Blocks.of_buffers([shards[index][:length] for index in plan.sources])
        outputs = Blocks.of_buffers([block[:length] for block in out], writable=True)
        operator = plan.operator

        def call(operator: Any = operator, inputs: Blocks = inputs, outputs: Blocks = outputs) -> None:
            operator(inputs, outputs)

        calls[name], sizes[name] = call, blocks * length
        call()
        _check(name, out, [shards[index] for index in want], length)
        if name == "words" and isal is not None and entry.w == 8 and entry.table != "gcrs":
            sources = [shards[index] for index in plan.sources]
            calls["isal"], sizes["isal"] = isal.product(plan.matrix.values, sources, list(out)), blocks * length
            calls["isal"]()
            _check("isal", out, [shards[index] for index in want], length)
    if entry.table == "gcrs" and (jerasure := gcrs.load()) is not None:
        Codec(k, m, entry.w, matrix="cauchy-good", packet_bytes=_PACKET).encode(data, parity)
        calls["jerasure"] = gcrs.schedule(jerasure, entry.w, _PACKET, list(data), list(out))
        sizes["jerasure"] = k * entry.length
        calls["jerasure"]()
        _check("jerasure", out, list(parity), entry.length)
    with ExitStack() as stack:
        if program is not None and entry.table == "klauspost":
            peer = stack.enter_context(klauspost.Klauspost(program, k, m, entry.length))
            times = max(1, (32 << 20) // (k * entry.length))
            calls["klauspost"], sizes["klauspost"] = peer.encode(times), blocks * entry.length * times
        return interleave(calls, sizes, rounds=rounds)


def _check(name: str, out: Any, right: Sequence[Any], length: int) -> None:
    for block, expected in zip(out, right, strict=True):
        assert (block[:length] == expected[:length]).all(), f"{name} gives wrong bytes"
    out[...] = 0


def main(arguments: Sequence[str]) -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--short", action="store_true", help="three rounds")
    parser.add_argument("--out", default="bench/results/tables.json", help="where the JSON goes")
    parser.add_argument("--print", dest="stored", metavar="JSON", help="only print what is stored there, in Markdown")
    options = parser.parse_args(arguments)
    if options.stored:
        with open(options.stored, encoding="utf-8") as file:
            print("\n".join(render(json.load(file)["cases"])))
        return
    info, isal, cases = environment(), load(), []
    info["isal"] = isal.version if isal else "not installed"
    info["jerasure"] = f"Jerasure, Debian's libjerasure2 {package_version('libjerasure2')}"
    info["klauspost"] = f"klauspost/reedsolomon, Debian's {package_version('golang-github-klauspost-reedsolomon-dev')}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            program: str | None = klauspost.build(folder)
        except OSError as error:
            program, info["no peer klauspost"] = None, str(error)
        for name in options.tables.split(","):
            print(f"\n{name}: GB a second", flush=True)
            for entry in table(name):
                found = measure(entry, isal, program, 3 if options.short else options.rounds)
                cases.append(_case(entry, found))
                _show(entry, found)
    os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"environment": info, "cases": cases}, file)
    print(f"\nwritten to {options.out}")


def _case(entry: Entry, found: dict[str, Figure]) -> dict[str, Any]:
    """Return what goes into the JSON."""
    return {
        "table": entry.table,
        "name": entry.name,
        "operation": entry.operation,
        "k": entry.k,
        "m": entry.m,
        "w": entry.w,
        "length": entry.length,
        "counts": "data and parity" if entry.counts_parity else "data",
        "published": [
            asdict(each) | asdict(SOURCES[each.source]) for each in figures(entry.table, entry.name, entry.operation)
        ],
        "rates": {name: list(figure.rates) for name, figure in found.items()},
        "median": {name: figure.median for name, figure in found.items()},
    }


def _show(entry: Entry, found: dict[str, Figure]) -> None:
    """Print one line."""
    parts = [
        f"{name} {figure.median:.2f} [{min(figure.rates):.2f}-{max(figure.rates):.2f}]"
        for name, figure in found.items()
    ]
    parts += [_told(each) for each in figures(entry.table, entry.name, entry.operation)]
    print(f"{entry.name:10} {entry.operation:7} " + "  ".join(parts), flush=True)


def _told(each: Published) -> str:
    return f"published {each.what} {each.rate:.2f} ({SOURCES[each.source].hardware})"


def render(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield Markdown: a table for each of the published ones, with every figure that was found, or that none was."""
    for name in dict.fromkeys(case["table"] for case in cases):
        members = [case for case in cases if case["table"] == name]
        columns = list(dict.fromkeys(variant for case in members for variant in case["median"]))
        theirs = list(
            dict.fromkeys(
                (each.what, each.source) for (table, _, _), found in FIGURES.items() if table == name for each in found
            )
        )
        yield f"\n{name}\n"
        heads = [_NAMES.get(column, column) for column in columns]
        heads += [f"published: {what}, {SOURCES[source].hardware}" for what, source in theirs]
        yield "| | " + " | ".join(heads) + " |"
        yield "|---|" + "---:|" * (len(columns) + len(theirs))
        for case in members:
            cells = [_measured(case, column) for column in columns]
            known = {(each["what"], each["source"]): each["rate"] for each in case["published"]}
            cells += [f"{known[key]:.4g}" if key in known else "not found" for key in theirs]
            yield f"| {case['name']}, {case['operation']} | " + " | ".join(cells) + " |"


def _measured(case: dict[str, Any], variant: str) -> str:
    rates = case["rates"].get(variant)
    return "" if rates is None else f"{case['median'][variant]:.1f} [{min(rates):.1f}–{max(rates):.1f}]"


if __name__ == "__main__":
    main(sys.argv[1:])
