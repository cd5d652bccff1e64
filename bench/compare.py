"""Compare two results of the same program: what was measured in both, before and after, with ratios and spread.

    python -m bench.compare BEFORE.json AFTER.json [--names packets,words] [--relative isal] [--changed]

Cases are matched by everything that says what was measured. A ratio is that of the medians, with the least and the
greatest that the ranges of both sides allow; a `*` marks ranges that do not meet. With --relative, rates are divided,
round by round, by another variant's of the same case: what slows the whole machine is no change then.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Change", "changes", "main", "series"]

#: What a case holds besides saying what was measured.
_MEASURED = ("rates", "median", "times_isal", "cpu_seconds_per_gb", "cpu", "takes", "bounds", "bound", "published")

Key = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One variant of a case, before and after.

    Attributes
    ----------
    key : tuple of str
        What was measured: the fields of the case, and the variant.
    before, after : tuple of float
        Rates by round.
    """

    key: Key
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Median after over median before."""
        return statistics.median(self.after) / statistics.median(self.before)

    @property
    def bounds(self) -> tuple[float, float]:
        """Slowest round after over fastest before, and the other way round."""
        return min(self.after) / max(self.before), max(self.after) / min(self.before)

    @property
    def clear(self) -> bool:
        """Whether the ranges of rounds do not meet."""
        low, high = self.bounds
        return low > 1 or high < 1


def series(result: Mapping[str, Any], relative: str | None = None) -> dict[Key, tuple[float, ...]]:
    """Return the rates of every variant of every case in a result, by what they are rates of.

    Parameters
    ----------
    result : mapping
        What a program of `bench/`, or `gfcode bench --json`, wrote.
    relative : str, optional
        Divide by the rates of this variant; cases without it are left out.
    """
    found: dict[Key, tuple[float, ...]] = {}
    for group, case in _cases(result):
        what = tuple(f"{name}={value}" for name, value in case.items() if name not in _MEASURED)
        rates = case["rates"] if isinstance(case["rates"], dict) else {"rate": case["rates"]}
        if relative is not None and relative not in rates:
            continue
        for name, values in rates.items():
            mine = tuple(map(float, values))
            if relative is not None:
                mine = tuple(a / b for a, b in zip(mine, rates[relative], strict=True))
            if name != relative:
                found[group, *what, name] = mine
    return found


def _cases(result: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for group, values in result.items():
        if isinstance(values, list):
            yield from ((group, case) for case in values if isinstance(case, dict) and "rates" in case)


def changes(before: Mapping[str, Any], after: Mapping[str, Any], relative: str | None = None) -> list[Change]:
    """Return what was measured in both results, in the order of the first."""
    first, second = series(before, relative), series(after, relative)
    return [Change(key, rates, second[key]) for key, rates in first.items() if key in second]


def show(change: Change) -> str:
    """One line: what, before, after, ratio with its bounds."""
    low, high = change.bounds
    sides = [
        f"{statistics.median(side):.3g} [{min(side):.3g}-{max(side):.3g}]" for side in (change.before, change.after)
    ]
    what = " ".join(part.partition("=")[2] or part for part in change.key[1:])
    mark = "*" if change.clear else " "
    return f"{what:60} {sides[0]:>24} -> {sides[1]:>24}  ×{change.ratio:.2f} [{low:.2f}-{high:.2f}]{mark}".rstrip()


def main(arguments: Sequence[str]) -> int:
    """Read, compare, print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--names", help="only these variants, such as packets,words")
    parser.add_argument("--relative", metavar="NAME", help="divide by this variant's rates, such as isal")
    parser.add_argument("--changed", action="store_true", help="only where the ranges do not meet")
    options = parser.parse_args(arguments)
    results = []
    for path in (options.before, options.after):
        with open(path, encoding="utf-8") as file:
            results.append(json.load(file))
    found = changes(results[0], results[1], options.relative)
    if options.names:
        found = [change for change in found if change.key[-1] in options.names.split(",")]
    if not found:
        print("nothing was measured in both", file=sys.stderr)
        return 1
    environments = [result.get("environment", {}) for result in results]
    for name in dict.fromkeys([*environments[0], *environments[1]]):
        left, right = (environment.get(name, "not told") for environment in environments)
        if left != right:
            print(f"{name}: {left} -> {right}")
    for change in found:
        if change.clear or not options.changed:
            print(show(change))
    middle = statistics.geometric_mean([change.ratio for change in found])
    clear = [change for change in found if change.clear]
    faster = sum(change.ratio > 1 for change in clear)
    print(f"{len(found)} compared: ×{middle:.3f} on the whole; {faster} clearly faster, {len(clear) - faster} slower")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
