"""Write what was measured into the pages: tables and findings between marks, from the results that are kept.

    python -m bench.pages [--check]

A page says `<!-- begin NAME -->` and `<!-- end NAME -->`; what stands between is made here from `bench/results`. With
--check nothing is written, and the exit code is 1 where a page is not what the results say.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import roofline, roofline_gpu, tables
from bench.codec_report import against_isal
from bench.experiment_findings import findings
from bench.methods import METHODS
from bench.published import FIGURES, SOURCES

__all__ = ["PAGES", "main", "sections", "write"]

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/benchmark.md", "docs/experiment.md")
_BETWEEN = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def machine(environment: Mapping[str, str]) -> str:
    """Say in a sentence what measured."""
    parts = [f"{environment.get('model', environment.get('cpu', 'a CPU'))}, {environment['cpus']} CPUs"]
    parts += [f"load {environment['load']} when it began"] if "load" in environment else []
    parts += [f"Python {environment['python']}", f"llvmlite {environment['llvmlite']}", f"numba {environment['numba']}"]
    parts += [f"commit {environment['commit']}"] if "commit" in environment else []
    parts += [environment[name] for name in ("isal", "jerasure", "klauspost") if name in environment]
    return f"{'; '.join(parts)}.\n"


def cpu_table(cases: Sequence[Mapping[str, Any]], sweep: str, operation: str) -> Iterator[str]:
    """Yield CPU seconds a GB by method and what varies."""
    members = [case for case in cases if (case["sweep"], case["operation"]) == (sweep, operation)]
    heads = [f"{round(case['bytes'] / 1e6)} MB" if sweep == "size" else f"{sweep} = {case[sweep]}" for case in members]
    yield f"| {operation} | " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * len(members)
    for method in METHODS:
        found = [case["cpu_seconds_per_gb"].get(method.name) for case in members]
        yield f"| {method.name} | " + " | ".join("" if value is None else f"{value:.3f}" for value in found) + " |"


def published_table(cases: Sequence[dict[str, Any]], name: str) -> Iterator[str]:
    """Yield one published table, run again, and the sources of what stands beside."""
    yield from list(tables.render([case for case in cases if case["table"] == name]))[1:]
    yield ""
    used = dict.fromkeys(each.source for key, found in FIGURES.items() if key[0] == name for each in found)
    for source in used:
        told = SOURCES[source]
        yield f"* [{told.title}]({told.address}): {told.hardware}."


def readme_table(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of README, of (10,4), from what `gfcode bench --json` wrote."""
    environment = result["environment"]
    yield f"{environment['model']}; {environment['isal']}.\n"
    yield "| code, blocks | operation | `packets` | `words` | ISA-L |"
    yield "|---|---|---:|---:|---:|"
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for case in (case for case in result["cases"] if (case["k"], case["m"]) == (10, 4)):
        size = case["length"]
        length = f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"
        cells = lines.setdefault((f"({case['k']},{case['m']}), {length}", case["operation"]), {})
        for name, rates in case["rates"].items():
            cell = f"{case['median'][name]:.1f} [{min(rates):.1f}–{max(rates):.1f}]"
            cells["ISA-L" if name == "isal" else case["layout"]] = cell
    for (code, operation), cells in lines.items():
        cell = " | ".join(cells.get(name, "") for name in ("packets", "words", "ISA-L"))
        yield f"| {code} | {operation} | {cell} |"


def sections(results: Path) -> dict[str, str]:
    """Return the text of every section, by name.

    Raises
    ------
    OSError
        If a result is missing.
    """
    experiment, table, roof, readme, codec = (
        json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("experiment", "tables", "roofline", "readme", "codec")
    )
    found: dict[str, Iterator[str] | list[str]] = {
        "experiment-machine": [machine(experiment["environment"])],
        "experiment-findings": findings(experiment["cases"]),
        "tables-machine": [machine(table["environment"])],
        "readme": readme_table(readme),
        "codec-machine": [machine(codec["environment"])],
        "codec-native": against_isal(codec["cases"], "native", "staggered"),
        "codec-stride": against_isal(codec["cases"], "native", "power of two"),
        "codec-avx2": against_isal(codec["cases"], "avx2", "staggered"),
        "roofline-machine": [machine(roof["environment"])],
        "roofline-cpu": roofline.table(roof["cases"]),
        "roofline-gpu": roofline_gpu.table(roof["gpu"]),
    }
    for sweep in ("m", "k", "w", "size"):
        for operation in ("encode", "decode"):
            found[f"experiment-{sweep}-{operation}"] = cpu_table(experiment["cases"], sweep, operation)
    for name in tables.TABLES:
        found[f"tables-{name}"] = published_table(table["cases"], name)
    return {name: "\n".join(lines).strip("\n") + "\n" for name, lines in found.items()}


def write(page: str, made: Mapping[str, str]) -> str:
    """Return a page with its sections renewed.

    Raises
    ------
    KeyError
        If it has a section that nothing makes.
    """
    return _BETWEEN.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", page)


def main(arguments: Sequence[str]) -> int:
    """Write the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say which pages would change")
    options = parser.parse_args(arguments)
    made, wrong = sections(ROOT / "bench/results"), 0
    for name in PAGES:
        path = ROOT / name
        page = path.read_text(encoding="utf-8")
        if (renewed := write(page, made)) == page:
            continue
        wrong = 1
        if not options.check:
            path.write_text(renewed, encoding="utf-8")
        print(f"{name}: {'is not what the results say' if options.check else 'written'}")
    return wrong if options.check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
