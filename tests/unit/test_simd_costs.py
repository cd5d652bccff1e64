"""The costs that are kept beside the shared sums are those of the programs made of them."""

import pytest

from gfcode.kernels.simd.multiplier_data import COSTS, SHARED
from gfcode.kernels.simd.multipliers import multiplier_costs, multipliers


@pytest.mark.parametrize("key", SHARED)
def test_costs_are_those_of_the_programs(key: tuple[int, int]) -> None:
    assert multiplier_costs(*key).tolist() == [program.cost for program in multipliers(*key)]
    assert key in COSTS
