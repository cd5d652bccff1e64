"""A fixed share of the rot campaign, and checks of its model."""

import random
from pathlib import Path

import pytest

from tests.reliability.damage import DAMAGES, damage
from tests.reliability.rot import Model, WrongError, rot_campaign, rot_trial
from tests.reliability.samples import samples


def test_random_damage() -> None:
    counts = rot_campaign(400, seed=1)
    assert sum(count for outcome, count in counts.items() if not outcome.startswith("damage: ")) == 400
    assert all(counts[f"damage: {kind.__name__}"] for kind in DAMAGES)
    assert min(counts["repaired"], counts["beyond repair"], counts["intact"]) > 5


def test_the_same_number_gives_the_same_damage() -> None:
    sample, other = samples()[1]
    assert damage(random.Random("x"), sample, other) == damage(random.Random("x"), sample, other)


def test_the_model_knows_what_is_lost() -> None:
    sample, other = samples()[1]
    assert (sample.k, sample.m) == (3, 2)
    files = {sample.name(shard): bytearray(content) for shard, content in enumerate(sample.shards)}
    assert Model.of(files, sample, other) == Model(possible=True, certain=True)
    for shard in (0, 1):
        files[sample.name(shard)][sample.starts[3]] ^= 1
    assert Model.of(files, sample, other) == Model(possible=True, certain=True)
    files["elsewhere"] = files.pop(sample.name(2))
    assert Model.of(files, sample, other) == Model(possible=True, certain=False)
    files["elsewhere"][sample.starts[3]] ^= 1
    assert Model.of(files, sample, other) == Model(possible=False, certain=False)


def test_wrong_bytes_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "s"
    directory.mkdir()
    number = next(number for number in range(50) if rot_trial(7, number, directory)[0] == "repaired")
    monkeypatch.setattr("tests.reliability.rot._decoded", lambda *_, **__: b"wrong")
    with pytest.raises(WrongError, match=f"trial {number} of seed 7, .*WRONG BYTES WITH SUCCESS"):
        rot_trial(7, number, directory)
