"""Before and after: what is matched, and what counts as a change."""

import json
from pathlib import Path

import pytest

from bench.compare import changes, main


def result(rates: list[float], peer: list[float], length: int = 64) -> dict[str, object]:
    case = {"operation": "encode", "k": 4, "length": length, "rates": {"ours": rates, "peer": peer}, "median": {}}
    return {
        "environment": {"model": "x", "load": str(rates[0])},
        "cases": [case],
        "threads": [{"n": 1, "rates": rates}],
    }


def test_cases_are_matched_and_ratios_are_of_medians() -> None:
    ours, peer, threads = changes(result([1, 2, 3], [1, 1, 1]), result([4, 4, 8], [1, 1, 1]))
    assert ours.key == ("cases", "operation=encode", "k=4", "length=64", "ours")
    assert ours.ratio == 2
    assert ours.bounds == pytest.approx((4 / 3, 8))
    assert [change.clear for change in (ours, peer)] == [True, False]
    assert threads.key == ("threads", "n=1", "rate")
    assert changes(result([1], [1], 64), result([1], [1], 128))[0].key[0] == "threads"


def test_relative_to_a_peer_a_slow_machine_is_no_change() -> None:
    (ours,) = changes(result([4, 4], [2, 2]), result([2, 2], [1, 1]), "peer")
    assert ours.ratio == 1
    assert not ours.clear


def test_what_is_derived_says_nothing_of_what_was_measured() -> None:
    before, after = ({"cases": [{"k": 4, "bound": bound, "rates": [1.0]}]} for bound in ("loads", "L2"))
    assert [change.key for change in changes(before, after)] == [("cases", "k=4", "rate")]


def test_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rates in (("a", [1.0, 2.0]), ("b", [3.0, 4.0])):
        (tmp_path / name).write_text(json.dumps(result(rates, [1.0, 1.0])))
    assert main([str(tmp_path / "a"), str(tmp_path / "b"), "--names", "ours"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "load: 1.0 -> 3.0"
    assert lines[1].endswith("×2.33 [1.50-4.00]*")
    assert lines[2] == "1 compared: ×2.333 on the whole; 1 clearly faster, 0 slower"
    assert main([str(tmp_path / "a"), str(tmp_path / "b"), "--names", "nobody"]) == 1
