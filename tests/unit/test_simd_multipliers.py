"""XOR programs of constants compute what the field says, and the stored ones are as short as they claim."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfcode.gf import GF
from gfcode.kernels.simd.chains import cheapest_orders
from gfcode.kernels.simd.constants import chains
from gfcode.kernels.simd.multiplier_data import SHARED
from gfcode.kernels.simd.multiplier_search import Values, climb, cost
from gfcode.kernels.simd.multipliers import bit_rows, multiplier_costs, multipliers, quick_search

FIELDS = ((8, 0x11D), (8, 0x165), (7, 0x89), (4, 0x13), (4, 0x19), (3, 0xB), (2, 0x7), (1, 0x3))


@pytest.mark.parametrize(("w", "polynomial"), FIELDS)
def test_a_program_multiplies(w: int, polynomial: int) -> None:
    field = GF(w, polynomial)
    programs = multipliers(w, polynomial)
    assert len(programs) == field.order - 1
    symbols = np.arange(field.order)
    planes = [symbols >> bit & 1 for bit in range(w)]
    for constant, program in enumerate(programs, 1):
        elements = list(planes)
        for terms in program.shared:
            assert 2 <= len(terms) <= 3
            elements.append(np.bitwise_xor.reduce([elements[term] for term in terms]))
        sums = [np.bitwise_xor.reduce([elements[term] for term in terms]) for terms in program.sums]
        product = sum(plane << bit for bit, plane in enumerate(sums))
        assert (product == field.mul(constant, symbols.astype(field.dtype))).all()


def test_one_costs_the_least() -> None:
    costs = multiplier_costs(8, 0x11D)
    assert costs[0] == 8
    assert costs.min() == 8


@pytest.mark.parametrize("key", SHARED)
def test_stored_programs_beat_the_quick_search(key: tuple[int, int]) -> None:
    w, polynomial = key
    rows, values = bit_rows(w, polynomial), Values(w)
    stored = [program.cost for program in multipliers(w, polynomial)]
    words = SHARED[key].split()
    assert len(words) == len(stored)
    for line, word, claimed in zip(rows.tolist(), words, stored, strict=True):
        assert cost(line, () if word == "-" else tuple(bytes.fromhex(word)), values) == claimed
    quick = [cost(line, shared, values) for line, shared in zip(rows.tolist(), quick_search(rows, w), strict=True)]
    assert sum(stored) < 0.93 * sum(value for value in quick if value is not None)
    assert None not in quick


def test_climbing_never_loses() -> None:
    rows, values = bit_rows(8, 0x11D)[199].tolist(), Values(8)
    least, shared = climb(rows, [], values, random.Random(1), moves=300)
    assert least == cost(rows, shared, values)
    before = cost(rows, [], values)
    assert before is not None
    assert least < before


def tables_of_costs(k: int) -> st.SearchStrategy[list[list[list[int]]]]:
    line = st.lists(st.integers(1, 20), min_size=k, max_size=k)
    return st.lists(st.lists(line, min_size=k + 1, max_size=k + 1), min_size=1, max_size=3)


@given(st.integers(1, 12).flatmap(tables_of_costs))
def test_orders_are_permutations_no_worse_than_the_nearest_neighbours(costs: list[list[list[int]]]) -> None:
    every = np.array(costs)
    orders = cheapest_orders(every[:, :-1], every[:, -1])
    for order, (*step, final) in zip(orders.tolist(), costs, strict=True):
        assert sorted(order) == list(range(len(final)))
        end = min(range(len(final)), key=final.__getitem__)
        grown, left = [end], set(range(len(final))) - {end}
        while left:
            nearest = min(left, key=lambda place: step[place][grown[-1]])
            left.remove(nearest)
            grown.append(nearest)
        assert _total(order, step, final) <= _total(grown[::-1], step, final)


def _total(path: list[int], step: list[list[int]], final: list[int]) -> int:
    return final[path[-1]] + sum(step[a][b] for a, b in itertools.pairwise(path))


@given(st.lists(st.lists(st.integers(0, 255), min_size=5, max_size=5), min_size=1, max_size=4))
def test_a_chain_makes_the_product_of_its_row_and_leaves_zeros_out(constants: list[list[int]]) -> None:
    field = GF(8)
    data = np.arange(1, 6, dtype=np.uint8)
    outputs = range(20, 20 + len(constants))
    rows = chains(field, np.array(constants), [10, 11, 12, 13, 14], outputs, multiplier_costs(8, 0x11D))
    for number, (row, line) in enumerate(zip(rows, constants, strict=True)):
        assert row.output == 20 + number
        assert sorted(row.inputs) == [10 + place for place, constant in enumerate(line) if constant]
        total = 0
        for source, step in zip(row.inputs, row.steps, strict=True):
            total = field.mul(total ^ int(data[source - 10]), step)
        assert total == field.dot(np.array(line), data)
