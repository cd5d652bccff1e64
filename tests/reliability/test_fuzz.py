"""The targets for fuzzing, on their seeds and on random changes of them; and what fuzzing has found."""

import random

import pytest

from tests.reliability.fuzz import SEEDS, TARGETS, mutated


@pytest.mark.parametrize("name", TARGETS)
def test_changes_of_seeds(name: str) -> None:
    rng = random.Random(f"fuzz {name}")
    for seed in SEEDS[name]:
        TARGETS[name](seed)
        for _ in range(30 if name == "shards" else 300):
            TARGETS[name](mutated(seed, rng))
