"""How `bench.bench_codec` shows what it has measured: a line for each case, a table of ratios, records for the JSON."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from bench.codec_cases import LAYOUTS
from bench.harness import Case, Figure

__all__ = ["against_isal", "record", "show", "size_name", "table"]

#: What the table has columns for: operation, and who is divided by whom.
_COLUMNS = (
    ("encode", "packets", "isal"),
    ("decode", "packets", "isal"),
    ("encode", "packets, searched, prepared", "isal"),
    ("decode", "packets, prepared", "isal"),
    ("encode", "words", "isal"),
    ("decode", "words", "isal"),
    ("encode", "words, fft", "isal"),
    ("decode", "words, fft", "isal"),
    ("repair", "packets", "isal"),
    ("repair", "words", "isal"),
    ("repair", "words", "isal xor_gen"),
    ("repair, parity 0 lost", "packets", "isal"),
    ("repair, parity 0 lost", "packets, prepared", "isal"),
    ("repair, parity 0 lost", "words", "isal"),
    ("update", "packets", "isal"),
    ("update", "words", "isal"),
    ("encode", "packets", "floor: read"),
    ("encode", "words", "floor: read"),
)

#: What stands on the page, and above it.
_ON_PAGE = {
    "encode, packets": ("encode", "packets"),
    "decode, packets": ("decode", "packets"),
    "encode, words": ("encode", "words"),
    "decode, words": ("decode", "words"),
    "encode, fft": ("encode", "words, fft"),
    "decode, fft": ("decode", "words, fft"),
    "repair, packets": ("repair", "packets"),
    "repair, words": ("repair", "words"),
    "update, packets": ("update", "packets"),
}


def size_name(length: int) -> str:
    """Name a size in KiB or MiB."""
    return f"{length >> 20} MiB" if length >= 1 << 20 else f"{length >> 10} KiB"


def show(isa: str, case: Case, figures: dict[str, Figure]) -> None:
    """Print one line: our rates and ratios, then everyone else's rates."""
    isal = figures.get("isal")
    parts = []
    for name, figure in figures.items():
        ratio = f" ×{figure.ratio(isal):.2f}" if isal and name.startswith(LAYOUTS) else ""
        parts.append(f"{name} {figure.median:.1f} [{min(figure.rates):.1f}-{max(figure.rates):.1f}]{ratio}")
    what = f"{isa:8} {f'({case.k},{case.m})':9} {size_name(case.length):>7} {case.where:13} {case.operation:22} "
    print(what + "  ".join(parts), flush=True)


def record(isa: str, case: Case, figures: dict[str, Figure], left_out: dict[str, str]) -> dict[str, Any]:
    """Return what goes into the JSON."""
    isal = figures.get("isal")
    found: dict[str, Any] = {
        "isa": isa,
        **vars(case),
        "rates": {name: list(figure.rates) for name, figure in figures.items()},
        "median": {name: figure.median for name, figure in figures.items()},
        "times_isal": {
            name: figure.ratio(isal) for name, figure in figures.items() if name.startswith(LAYOUTS) and isal
        },
    }
    if left_out:
        found["left_out"] = left_out
    return found


def ratios(record_: dict[str, Any], name: str, base: str) -> list[float]:
    """Divide the rates of one variant by another's, round by round; empty where either was not measured."""
    rates = record_["rates"]
    if name not in rates or base not in rates:
        return []
    return [mine / theirs for mine, theirs in zip(rates[name], rates[base], strict=True)]


def _cell(record_: dict[str, Any], name: str, base: str) -> str:
    """Write the ratio of two variants, median [least-greatest]; nothing where either was not measured."""
    found = ratios(record_, name, base)
    return f"{statistics.median(found):.2f} [{min(found):.2f}–{max(found):.2f}]" if found else ""


def against_isal(records: Sequence[dict[str, Any]], isa: str, where: str) -> Iterator[str]:
    """Yield a table of Markdown: ratios to ISA-L's rates, a line for each code and length."""
    yield "| | " + " | ".join(_ON_PAGE) + " |"
    yield "|---|" + "---:|" * len(_ON_PAGE)
    mine = [record_ for record_ in records if (record_["isa"], record_["where"]) == (isa, where)]
    for k, m, length in sorted({(record_["k"], record_["m"], record_["length"]) for record_ in mine}):
        same = {"k": k, "m": m, "length": length}
        found = {record_["operation"]: record_ for record_ in mine if same.items() <= record_.items()}
        cells = [_cell(found[what], name, "isal") if what in found else "" for what, name in _ON_PAGE.values()]
        yield f"| ({k},{m}), {size_name(length)} | " + " | ".join(cells) + " |"


def table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield lines of Markdown: for each instruction set, place and length, ratios by code, median [least-greatest]."""
    groups = dict.fromkeys((record_["isa"], record_["where"], record_["length"]) for record_ in records)
    for isa, where, length in groups:
        same = {"isa": isa, "where": where, "length": length}
        mine = [record_ for record_ in records if same.items() <= record_.items()]
        rows: dict[tuple[int, int], dict[int, str]] = {}
        for record_ in mine:
            for index, (operation, name, base) in enumerate(_COLUMNS):
                if operation == record_["operation"] and (text := _cell(record_, name, base)):
                    rows.setdefault((record_["k"], record_["m"]), {})[index] = text
        used = sorted({index for cells in rows.values() for index in cells})
        heads = [f"{operation}: {name} / {base}" for operation, name, base in (_COLUMNS[index] for index in used)]
        yield f"\n{isa}, {where}, blocks of {size_name(length)}\n"
        yield "| | " + " | ".join(heads) + " |"
        yield "|---|" + "---:|" * len(used)
        for (k, m), cells in rows.items():
            yield f"| ({k},{m}) | " + " | ".join(cells.get(index, "") for index in used) + " |"
