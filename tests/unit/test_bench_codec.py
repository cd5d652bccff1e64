"""The benchmark of blocks in memory: what it measures is checked, parts of a run are put together, ISA-L's own code."""

import json
from pathlib import Path

import pytest

from bench import bench_codec
from bench.bench_codec import cases, main, parse, seconds
from bench.codec_cases import Subject, engine_at, target_at
from bench.codec_report import table
from bench.harness import PLACES, Case
from bench.isal import ISAS, Isal
from bench.peers import peers_here
from gfcode.engine.registry import get_engine
from gfcode.errors import EngineUnavailableError

try:
    get_engine("simd")
except EngineUnavailableError as error:
    pytest.skip(f"no simd engine here: {error}", allow_module_level=True)


def test_every_case_that_was_asked_for_fits_memory() -> None:
    found = cases(parse(["--peers"]))
    assert len(found) == 10 * 4 * 2
    assert all((case.k + 3 * case.m) * case.length <= bench_codec.AT_MOST for case in found)
    assert {case.length for case in found if case.k == 100} == {4 << 10, 64 << 10, 1 << 20, 4 << 20}
    one = cases(parse(["--shapes", "10+4", "--sizes", "64KiB,1MiB", "--places", "power of two"]))
    assert one == [Case("", 10, 4, size, "power of two") for size in (64 << 10, 1 << 20)]


def test_only_what_was_asked_for() -> None:
    options = parse(["--only", "repair,rows"])
    assert options.operations == ["repair", "repair, parity 0 lost"]
    assert options.extras == ["rows"]
    assert parse(["--short"]).extras == []
    for wrong in (["--only", "sleep"], ["--isa", "mmx"]):
        with pytest.raises(SystemExit):
            parse(wrong)


def test_estimates_grow_with_the_work() -> None:
    small, large = (Case("", 10, 4, length, PLACES[0]) for length in (4 << 10, 16 << 20))
    assert 0 < seconds(small, 5, 5, 9) < seconds(large, 5, 5, 9)
    assert seconds(small, 1, 1, 9) < seconds(small, 5, 5, 9)


def test_parts_of_a_run_make_one_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "result.json"
    common = ["--shapes", "3+2", "--sizes", "4KiB", "--places", "staggered", "--rounds", "1", "--no-pin"]
    main([*common, "--only", "encode,update", "--out", str(out)])
    main([*common, "--only", "decode,update", "--peers", "--add", "--out", str(out)])
    result = json.loads(out.read_text())
    assert [case["operation"] for case in result["cases"]] == ["encode", "decode", "update"]
    assert all(rate > 0 for case in result["cases"] for rates in case["rates"].values() for rate in rates)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(f"written to {out}")
    if "isal" in peers_here()[0]:
        assert any(line.startswith("| (3,2) |") for line in lines)


def test_ratios_are_taken_within_rounds() -> None:
    rates = {"packets": [2.0, 9.0, 8.0], "isal": [1.0, 3.0, 2.0]}
    record = {"isa": "native", "operation": "encode", "k": 4, "m": 2, "length": 65536, "where": "x", "rates": rates}
    assert list(table([record]))[-1] == "| (4,2) | 3.00 [2.00–4.00] |"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("bundled", [True, False])
def test_isal_at_every_instruction_set_makes_our_bytes(isa: str, bundled: bool) -> None:
    try:
        target = target_at(isa)
        isal = Isal(bundled=bundled, isa=isa)
    except (LookupError, OSError, AttributeError) as error:
        pytest.skip(str(error))
    # Each operation compares ISA-L's bytes with ours before it returns anything to measure.
    subject = Subject(Case("", 5, 3, 4096 + 512, PLACES[0]), engine_at("simd", isa), {"isal": isal}, target)
    for operation in (Subject.encode, Subject.decode, Subject.repair, Subject.repair_general, Subject.update):
        made = operation(subject)
        for call in made.calls.values():
            call()
        assert {"packets", "words", "isal"} <= set(made.calls)


def test_wrong_bytes_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        isal = Isal(bundled=True)
    except OSError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(isal, "product", lambda _matrix, _inputs, outputs, _times: lambda: outputs[0].fill(1))
    subject = Subject(Case("", 5, 3, 4096, PLACES[0]), get_engine("simd"), {"isal": isal}, target_at("native"))
    with pytest.raises(AssertionError, match="wrong bytes"):
        subject.encode()
