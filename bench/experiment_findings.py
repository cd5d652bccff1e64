"""What the classic experiment finds: each expectation, confirmed or refuted by what was measured, with the figures."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["findings"]

_TABLES, _ORIGINAL, _GOOD = "Vandermonde, tables", "Cauchy, bit matrix", "good Cauchy, bit matrix"
_COMPRESSED, _FUSED = "good Cauchy, compressed", "good Cauchy, fused, scheduled"
_SEARCHED = "searched matrix, fused, scheduled"
_POWERS, _WORDS = "powers, simd engine", "Vandermonde, simd engine"


class _Measured:
    """CPU seconds a GB, at k = 10 and w = 8, by method, operation and m."""

    def __init__(self, cases: Sequence[Mapping[str, Any]]) -> None:
        self._found = {(case["operation"], case["m"]): case for case in cases if case["sweep"] == "m"}

    def cpu(self, name: str, m: int, operation: str = "encode") -> float:
        return float(self._found[operation, m]["cpu_seconds_per_gb"][name])

    def rate(self, name: str, m: int) -> float:
        return float(self._found["encode", m]["median"][name])


def _word(truth: bool) -> str:
    return "confirmed" if truth else "refuted"


def findings(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the findings as a list in Markdown.

    Parameters
    ----------
    cases : sequence of mappings
        What `bench.experiment` stores; the sweep over m from 1 to 8 is needed.
    """
    at = _Measured(cases)
    lines = []
    grown = {name: at.cpu(name, 8) - at.cpu(name, 2) for name in (_TABLES, _ORIGINAL, _GOOD, _FUSED, _POWERS)}
    factors = {name: at.cpu(name, 8) / at.cpu(name, 2) for name in grown}
    told = ", ".join(f"{name} from {at.cpu(name, 2):.3f} to {at.cpu(name, 8):.3f}" for name in grown)
    in_seconds, in_proportion = (_word(max(by, key=by.__getitem__) == _TABLES) for by in (grown, factors))
    lines.append(
        f"* **Vandermonde by tables falls fastest: {in_seconds} in seconds, {in_proportion} in proportion.** Seconds a "
        f"GB to encode, from m = 2 to 8: {told}. As factors: {', '.join(f'{each:.1f}' for each in factors.values())}."
    )
    behind = [m for m in range(1, 9) if at.cpu(_ORIGINAL, m) >= at.cpu(_TABLES, m)]
    ahead = [m for m in range(1, 9) if m not in behind]
    lines.append(
        f"* **Cauchy is ahead: {_word(set(range(2, 9)) <= set(ahead))} for m ≥ 2**, {at.cpu(_TABLES, 4):.3f} s to "
        f"{at.cpu(_ORIGINAL, 4):.3f} s at (10,4). "
        + (
            f"Not for m = {', '.join(map(str, behind))}: a row of ones is a plain XOR for tables too "
            f"({at.cpu(_TABLES, 1):.3f} s), while the first row of an original Cauchy matrix is not "
            f"({at.cpu(_ORIGINAL, 1):.3f} s)."
            if behind
            else "For m = 1 too."
        )
    )
    steps = [_ORIGINAL, _GOOD, _COMPRESSED, _FUSED, _SEARCHED]
    seconds = [at.cpu(name, 4) for name in steps]
    rates = [at.rate(name, 4) for name in steps]
    better = sorted(seconds, reverse=True) == seconds and sorted(rates) == rates
    told, reached = ", ".join(f"{value:.3f}" for value in seconds), ", ".join(f"{rate:.1f}" for rate in rates)
    good, original, searched, fused = (at.cpu(name, 4, "decode") for name in (_GOOD, _ORIGINAL, _SEARCHED, _FUSED))
    lines.append(
        f"* **Improvement raises throughput and lowers CPU time: {_word(better)}.** At (10,4) encoding takes, step by "
        f"step (good matrix, compressed, fused and scheduled, searched matrix), {told} s a GB, and does {reached} "
        "GB/s. A good matrix helps encoding only: in decoding, where its inverse is as dense as any, it takes "
        f"{good:.3f} s, the original {original:.3f} s; by fused programs, a searched one takes {searched:.3f} s and a "
        f"good one {fused:.3f} s."
    )
    blamed = at.cpu(_WORDS, 4) > 1.5 * at.cpu(_POWERS, 4)
    lines.append(
        f"* **That the Vandermonde matrix is to blame: {_word(blamed)}.** By vector instructions the same matrix takes "
        f"{at.cpu(_WORDS, 4):.3f} s at (10,4), `powers` by XORs {at.cpu(_POWERS, 4):.3f} s, the best program on plain "
        f"loops {at.cpu(_SEARCHED, 4):.3f} s. What loses is one load a symbol."
    )
    return lines
