"""The classic experiment: its methods give the right bytes, and what it writes and draws can be read."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.experiment import SWEEPS, Point, free_memory, main, points
from bench.loops import PACKET, Memory, program_call, table_call
from bench.methods import METHODS, Prepared
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.xor.interpret import interpret
from gfcode.xor.program import ZERO, XorProgram


def filled(count: int, length: int) -> Memory:
    memory = Memory(count, length)
    memory.words[: memory.scratch] = np.random.default_rng(1).integers(0, 1 << 63, memory.scratch, np.uint64)
    return memory


@st.composite
def programs(draw: st.DrawFn) -> XorProgram:
    inputs = draw(st.integers(2, 6))
    instructions = []
    for index in range(draw(st.integers(0, 12))):
        values = st.integers(0, inputs + index - 1)
        instructions.append(tuple(draw(st.lists(values, min_size=2, max_size=9, unique=True))))
    outputs = st.integers(ZERO, inputs + len(instructions) - 1)
    return XorProgram(inputs, tuple(instructions), tuple(draw(st.lists(outputs, min_size=1, max_size=5))))


@settings(max_examples=40, deadline=None)
@given(programs())
def test_programs_run_as_the_interpreter_runs_them(program: XorProgram) -> None:
    inputs, outputs = program.inputs, len(program.outputs)
    memory = filled(inputs + outputs, 2 * PACKET)
    sources = [memory.block(index).copy() for index in range(inputs)]
    program_call(program, 1, memory, list(range(inputs)), list(range(inputs, inputs + outputs)))()
    made = np.stack([memory.block(inputs + index) for index in range(outputs)])
    assert (made == interpret(program, sources)).all()
    assert all((memory.block(index) == source).all() for index, source in enumerate(sources))


def test_a_program_with_more_temporaries_than_there_is_room_for() -> None:
    chain = tuple((index, index + 1) for index in range(1100))
    program = XorProgram(1101, (*chain, tuple(range(1101, 2201))), (2201,))
    memory = Memory(2, PACKET)
    with pytest.raises(MemoryError, match="packets of scratch"):
        program_call(program, 1101, memory, [0], [1])


@pytest.mark.parametrize("w", [4, 8, 16])
def test_every_method_is_checked_against_the_numpy_engine(w: int) -> None:
    memory = filled(4 + 2, w * PACKET)
    prepared: dict[str, Prepared] = {}
    for method in METHODS:
        matrix = method.parity(4, 2, w)
        if matrix is not None:
            prepared[method.name] = method.prepare(matrix, memory, [0, 1, 2, 3], [4, 5])
    assert len(prepared) >= len(METHODS) - 1  # the catalogue has no codes with w = 16
    assert prepared["good Cauchy, bit matrix"].xors is not None
    assert prepared["Vandermonde, tables"].xors is None


def test_the_check_finds_wrong_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = filled(6, 8 * PACKET)
    monkeypatch.setattr("bench.methods.table_call", lambda *_: lambda: None)
    with pytest.raises(AssertionError, match="gives wrong bytes"):
        METHODS[0].prepare(parity_matrix("vandermonde", GF(8), 4, 2), memory, [0, 1, 2, 3], [4, 5])


def test_zeros_of_a_matrix_are_skipped_by_tables() -> None:
    memory = filled(4, 4096)
    table_call(Matrix(GF(8), [[0, 1], [0, 0]]), memory, [0, 1], [2, 3])()
    assert (memory.block(2) == memory.block(1)).all()
    assert not memory.block(3).any()


def test_points_cover_every_sweep() -> None:
    found = list(points(SWEEPS, [1, 4], 2))
    assert [sum(point.sweep == sweep for point in found) for sweep in SWEEPS] == [2, 8, 7, 3]
    assert all(point.length % (16 * PACKET) == 0 for point in found)
    with pytest.raises(ValueError, match="no sweep"):
        list(points(["n"], [1], 1))


def test_large_sizes_take_fewer_rounds() -> None:
    small, large, largest = (Point("size", 10, 4, 8, size) for size in (64, 1024, 4096))
    assert [point.rounds(5, short=False) for point in (small, large, largest)] == [5, 3, 2]
    assert [point.rounds(5, short=True) for point in (small, large, largest)] == [3, 3, 1]
    assert [point.rounds(1, short=False) for point in (small, large, largest)] == [1, 1, 1]
    assert largest.memory == pytest.approx(1.8 * 4.096e9, rel=0.01)
    assert free_memory() > 1 << 20


def test_what_does_not_fit_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.experiment.free_memory", lambda: 1 << 20)
    main(["--sweeps", "size", "--sizes", "8", "--out", str(tmp_path / "out.json")])
    assert "8 MB are passed over: 13 MiB of memory are not free" in capsys.readouterr().out


def test_program_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'gfcode[bench]'")
    out = tmp_path / "experiment.json"
    arguments = ["--sweeps", "size", "--sizes", "0.4", "--rounds", "1", "--out", str(out)]
    main([*arguments, "--images", str(tmp_path)])
    cases = json.loads(out.read_text())["cases"]
    assert [case["operation"] for case in cases] == ["encode", "decode"]
    for case in cases:
        assert set(case["median"]) == {method.name for method in METHODS}
        assert all(value > 0 for value in case["cpu_seconds_per_gb"].values())
    assert (tmp_path / "experiment-size.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "experiment-size.png").read_bytes().startswith(b"\x89PNG")
    assert "Vandermonde, tables" in capsys.readouterr().out
