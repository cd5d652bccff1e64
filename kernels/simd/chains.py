"""The order in which a sum of products is cheapest: y = c_1·d_1 + ... + c_k·d_k as nested multiplications.

With inputs in any order p, y = c_pk · (d_pk + r_k · (d_pk-1 + r_k-1 · (...))) where r_i = c_p(i-1) / c_p(i): every step
multiplies what is there by a ratio and adds one input. Constants differ in cost (8 to 17 XORs in GF(2^8)), so a path
through the inputs along cheap ratios beats multiplying each input by its own constant by a fifth.
"""

import itertools
from collections.abc import Sequence

__all__ = ["cheapest_order"]

#: Paths are grown backwards from this many of the cheapest ends.
_ENDS = 3
#: Longer paths are grown once and not improved: the moves are quadratic in number.
_MAX_IMPROVED = 24


def cheapest_order(step: Sequence[Sequence[int]], final: Sequence[int]) -> list[int]:
    """Find an order of low cost (nearest neighbour, then moves of single inputs; no guarantee).

    Parameters
    ----------
    step : k × k costs
        step[i][j]: of going from input i to input j.
    final : k costs
        Of ending with an input.

    Returns
    -------
    list of int
        A permutation of 0 .. k-1.
    """
    count = len(final)
    best: list[int] = []
    least = 0
    ends = _ENDS if count <= _MAX_IMPROVED else 1
    for end in sorted(range(count), key=final.__getitem__)[:ends]:
        path = _grow(step, end, count)
        cost = final[end] + sum(step[a][b] for a, b in itertools.pairwise(path))
        if not best or cost < least:
            best, least = path, cost
    if 2 < count <= _MAX_IMPROVED:
        _improve(best, step, final)
    return best


def _grow(step: Sequence[Sequence[int]], end: int, count: int) -> list[int]:
    """Grow a path backwards, by the cheapest predecessor each time."""
    path, left = [end], set(range(count)) - {end}
    while left:
        following = path[-1]
        previous = min(left, key=lambda place: step[place][following])
        left.remove(previous)
        path.append(previous)
    return path[::-1]


def _improve(path: list[int], step: Sequence[Sequence[int]], final: Sequence[int]) -> None:
    """Move single inputs to where they cost less, as long as one gains (at most a few rounds)."""
    for _ in range(3):
        moved = False
        for place in range(len(path)):
            item = path[place]
            before = path[place - 1] if place else None
            after = path[place + 1] if place + 1 < len(path) else None
            gain = (
                _edge(before, item, step, final) + _edge(item, after, step, final) - _edge(before, after, step, final)
            )
            rest = path[:place] + path[place + 1 :]
            ends = [None, *rest, None]
            costs = [
                _edge(a, item, step, final) + _edge(item, b, step, final) - _edge(a, b, step, final)
                for a, b in itertools.pairwise(ends)
            ]
            target = min(range(len(costs)), key=costs.__getitem__)
            if costs[target] < gain:
                rest.insert(target, item)
                path[:] = rest
                moved = True
        if not moved:
            return


def _edge(a: int | None, b: int | None, step: Sequence[Sequence[int]], final: Sequence[int]) -> int:
    """Cost of b following a; None stands for the start and for the end."""
    if a is None:
        return 0
    return final[a] if b is None else step[a][b]
