"""`gfcode plan`: what is asked for is computed, and printed in both forms."""

import click
import pytest

from gfcode.cli.plan import code, duration, rate
from gfcode.durability import durability
from tests.cli.conftest import Runner


def test_json_is_what_the_library_says(gfcode: Runner) -> None:
    done = gfcode(
        "plan", "--code", "6+3", "--code", "1+2", "--afr", "1.5%", "--mttr", "3d", "--sets", "500", "--serial",
        "--shard-size", "4TB", "--unreadable", "1e-16", "--json",
    )  # fmt: skip
    assert done.code == 0
    assert done.json == {
        "afr": 0.015,
        "mttr_hours": 72,
        "sets": 500,
        "repairs": "serial",
        "unreadable_bits": 1e-16,
        "shard_bytes": 4 * 10**12,
        "codes": [
            durability(
                k, m, afr=0.015, mttr_hours=72, sets=500, repairs="serial", unreadable_bits=1e-16, shard_bytes=4e12
            ).to_json()
            for k, m in [(6, 3), (1, 2)]
        ],
    }


def test_defaults_are_the_default_code_and_no_unreadable_places(gfcode: Runner) -> None:
    done = gfcode("plan", "--json")
    assert done.json["codes"] == [durability(10, 4, afr=0.02, mttr_hours=24).to_json()]
    assert gfcode("plan", "-k", "3", "--json").json["codes"][0]["m"] == 4
    assert gfcode("plan", "--shard-size", "1TB", "--json").json["unreadable_bits"] == 1e-15


def test_table(gfcode: Runner) -> None:
    done = gfcode("plan", "--code", "10+4", "--code", "10+0", "--code", "100+300")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "2 failures per 100 disks and year, each repaired in 24 h on average, all at once"
    assert lines[2].split()[:4] == ["code", "disks", "space", "loss/year"]
    assert lines[3].split() == ["10+4", "14", "1.40x", "1.8e-15", "1.8e-15", "14.7", "1.8e-15", "10", "0.28"]
    assert lines[4].split() == ["10+0", "10", "1.00x", "1.8e-01", "2.0e-01", "0.7", "1.8e-01", "0", "0.00"]
    assert "< 1e-300" in lines[5]
    assert "> 300" in lines[5]
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--code", "10-4"], "'10-4' is no code; write K+M, for example 10+4"),
        (["--code", "10+4", "-k", "3"], "--code takes the place of -k and -m"),
        (["-k", "0"], "k must be at least 1, not 0"),
        (["-m", "600"], "m must be 0 to 512, not 600"),
        (["--afr", "2"], "2 would be 200 % a year; write 2% or 200%"),
        (["--afr", "0%"], "it must be above 0"),
        (["--afr", "often"], "'often' is no rate"),
        (["--afr", "nan"], "'nan' is no rate"),
        (["--mttr", "24"], "'24' is no duration; write for example 90min, 24h, 3d or 2w"),
        (["--mttr", "0h"], "'0h' is no duration"),
        (["--sets", "0"], "0"),
        (["--unreadable", "1e-15"], "--unreadable needs --shard-size"),
        (["--shard-size", "1TB", "--unreadable", "1"], "must be 0 to below 1, not 1.0"),
    ],
)
def test_wrong_usage(gfcode: Runner, arguments: list[str], words: str) -> None:
    done = gfcode("plan", *arguments)
    assert done.code == 2
    assert words in done.error


def test_numbers_as_people_write_them() -> None:
    assert [rate("2%"), rate("0.5 %"), rate("0.02"), rate("300%")] == [0.02, 0.005, 0.02, 3]
    assert [duration("90min"), duration("24h"), duration("1.5d"), duration("2w")] == [1.5, 24, 36, 336]
    assert code("10+4") == (10, 4)
    with pytest.raises(click.BadParameter):
        duration("1y")
