"""Finds the shared sums of `multiplier_data`: hill climbing for each constant of a field, far longer than at run time.

Run `python -m gfcode.kernels.simd.multiplier_search 8 0x11d` to print them again (some minutes). The result depends on
the random numbers only, and these on the seed.
"""

import random
import sys
from collections.abc import Sequence

from gfcode.kernels.simd.multipliers import bit_rows, quick_search

__all__ = ["Values", "climb", "cost"]

_ROUNDS = 6
_MOVES = 4000


class Values:
    """Operations on sets of values of w bits; a set is an integer with a bit for each member."""

    def __init__(self, w: int) -> None:
        self.w = w
        # For each bit, the set of all values that do not have it.
        self.without = [sum(1 << value for value in range(1 << w) if not value >> bit & 1) for bit in range(w)]

    def moved(self, members: int, by: int) -> int:
        """Return {value ^ by for value in members}."""
        for bit, without in enumerate(self.without):
            if by >> bit & 1:
                members = (members & without) << (1 << bit) | members >> (1 << bit) & without
        return members

    def sums(self, members: int, elements: Sequence[int]) -> int:
        """Members, and members plus one element."""
        total = members
        for element in elements:
            total |= self.moved(members, element)
        return total


def cost(rows: Sequence[int], shared: Sequence[int], values: Values) -> int | None:
    """Three-input XORs of the program with these shared sums; None if a shared sum itself takes more than one."""
    elements = [1 << bit for bit in range(values.w)]
    for value in shared:
        up_to_three = values.sums(values.sums(values.sums(1, elements), elements), elements)
        if not up_to_three >> value & 1:
            return None
        elements.append(value)
    total = len(shared)
    reached = values.sums(values.sums(1, elements), elements)
    left = [row for row in rows if row]
    while left:
        total += len(left)
        left = [row for row in left if not reached >> row & 1]
        if left:
            reached = values.sums(values.sums(reached, elements), elements)
    return total


def climb(
    rows: Sequence[int], start: Sequence[int], values: Values, chance: random.Random, *, moves: int = _MOVES
) -> tuple[int, list[int]]:
    """Improve one program by random changes of one shared sum at a time."""
    now, price = list(start), cost(rows, start, values) or 1 << 14
    best, least = now, price
    for _ in range(moves):
        trial = list(now)
        elements = [1 << bit for bit in range(values.w)] + trial
        fresh = chance.choice(rows)
        if chance.random() > 0.3:
            fresh = 0
            for element in chance.sample(elements, chance.choice((2, 2, 3))):
                fresh ^= element
        kind = chance.random()
        if kind < 0.25 and len(trial) < 5:
            trial.insert(chance.randint(0, len(trial)), fresh)
        elif kind < 0.4 and trial:
            trial.pop(chance.randrange(len(trial)))
        elif trial:
            trial[chance.randrange(len(trial))] = fresh
        if len(set(trial)) < len(trial) or any(value.bit_count() < 2 for value in trial):
            continue
        found = cost(rows, trial, values)
        if found is not None and (found <= price or (found == price + 1 and chance.random() < 0.02)):
            now, price = trial, found
            if found < least:
                best, least = trial, found
    return least, best


def main(w: int, polynomial: int) -> None:
    """Print the entry of one field."""
    values, chance = Values(w), random.Random(1)  # noqa: S311 - a search, not a secret
    rows = bit_rows(w, polynomial)
    words = []
    for line, start in zip(rows.tolist(), quick_search(rows, w), strict=True):
        best, least = list(start), cost(line, start, values) or 1 << 14
        for turn in range(_ROUNDS):
            found, shared = climb(line, best if turn % 2 else [], values, chance)
            if found < least:
                best, least = shared, found
        words.append("".join(f"{value:02x}" for value in best) or "-")
    sys.stdout.write(" ".join(words) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2], 0))
