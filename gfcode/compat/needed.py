"""Which fragments a reconstruction reads."""

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Final

import numpy as np

from gfcode.compat.stripe import Stripe

__all__ = ["needed"]

# Parities up to which the sums of all sets of them are looked at.
_FEW_PARITIES: Final = 12


def needed(stripe: Stripe, wanted: Sequence[int], left: Sequence[int]) -> list[int]:
    """Choose fragments to read.

    Parameters
    ----------
    stripe : Stripe
    wanted : sequence of int
        Fragments to make; for none of them, all data.
    left : sequence of int
        Fragments that may be read, in ascending order.

    Returns
    -------
    list of int
        The first k that determine everything; for codes whose parities cover little data, few that make what is wanted.

    Raises
    ------
    UnrecoverableError
        If those left do not determine what is wanted.
    """
    code = stripe.code
    if code.sparse and wanted:
        chosen = _fewest(stripe, wanted, left)
    else:
        basis = stripe.basis(tuple(left))
        chosen = list(basis) if len(basis) == stripe.k else None
    return list(stripe.plan(left, wanted or range(stripe.k)).sources) if chosen is None else chosen


def _fewest(stripe: Stripe, wanted: Sequence[int], left: Sequence[int]) -> list[int] | None:
    """Look at the sum of every set of parities, and let each wanted fragment take what adds least to what is read.

    None where sums are not all there is, or are too many, or none makes a wanted fragment.
    """
    k, bits = stripe.k, stripe.code.parity.values
    if stripe.m > _FEW_PARITIES or (bits > 1).any():
        return None
    present = set(left)
    parities = [index - k for index in left if index >= k]
    sets = list(chain.from_iterable(combinations(parities, count) for count in range(len(parities) + 1)))
    read: set[int] = set()
    for target in dict.fromkeys(wanted):
        best: set[int] | None = None
        for rows in sets:
            summed = [*rows, target - k] if target >= k else list(rows)
            covered = set(np.flatnonzero(np.bitwise_xor.reduce(bits[summed], axis=0)).tolist())
            if target < k and target not in covered:
                continue
            covered.discard(target)
            found = {*covered, *(row + k for row in rows)}
            if covered <= present and (best is None or len(found | read) < len(best | read)):
                best = found
        if best is None:
            return None
        read |= best
    return sorted(read)
