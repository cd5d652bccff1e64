"""The harness of all benchmarks: what it times, with a clock that the test moves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfcode.engine.protocol import Blocks, Operator, Product
from gfcode.engine.registry import get_engine
from gfcode.errors import GFCodeError, ParameterError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.measure import harness, isal, plots
from gfcode.measure.harness import PLACES, Clocks, Figure, interleave, machine, place
from gfcode.measure.quick import choices, measure
from gfcode.params import Layout


class Clock:
    """A clock of which calls take as long as they are told to."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.calls: list[str] = []

    def call(self, name: str, wall: float, cpu: float) -> Callable[[], None]:
        def run() -> None:
            self.calls.append(name)
            self.wall += wall
            self.cpu += cpu

        return run

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall, lambda: self.cpu)


def test_rates_and_cpu_time_are_those_of_the_clock() -> None:
    clock = Clock()
    calls = {"slow": clock.call("slow", 0.25, 0.5), "quick": clock.call("quick", 0.001, 0.0005)}
    figures = interleave(calls, 10**9, rounds=4, window=0.01, clocks=clock.clocks)
    assert figures["slow"].rates == pytest.approx([4.0] * 4)
    assert figures["slow"].cpu_median == pytest.approx(0.5)
    assert figures["quick"].median == pytest.approx(1000)
    assert figures["quick"].cpu_median == pytest.approx(0.0005)
    assert figures["quick"].ratio(figures["slow"]) == pytest.approx(250)


def test_variants_take_turns_and_short_ones_are_repeated() -> None:
    clock = Clock()
    calls = {"a": clock.call("a", 1, 1), "b": clock.call("b", 0.5, 0.5)}
    interleave(calls, {"a": 10, "b": 20}, rounds=2, window=1.0, clocks=clock.clocks)
    warm, rest = clock.calls[:4], clock.calls[4:]
    assert warm == ["a", "a", "b", "b"]
    assert rest == ["a"] * 3 + ["b"] * 12 + ["a"] * 3  # three runs a turn; b first in the second round


def test_bytes_may_differ_by_variant() -> None:
    clock = Clock()
    calls = {"a": clock.call("a", 1, 1), "b": clock.call("b", 1, 1)}
    figures = interleave(calls, {"a": 10**9, "b": 3 * 10**9}, rounds=3, clocks=clock.clocks)
    assert [figures[name].median for name in "ab"] == pytest.approx([1, 3])


def test_a_ratio_is_paired_by_round() -> None:
    ours, theirs = Figure((2.0, 20.0, 200.0)), Figure((1.0, 10.0, 100.0))
    assert ours.ratio(theirs) == 2
    assert ours.median == 20


@pytest.mark.parametrize("where", PLACES)
def test_blocks_lie_where_they_are_said_to(where: str) -> None:
    data, out = place((3, 2), 4096, where)
    assert data.shape == (3, 4096)
    assert data.any()
    assert out.shape == (2, 4096)
    assert not out.any()
    assert (np.diff([block.ctypes.data for block in data]) % 4096 == 0).all() == (where == "power of two")


def test_machine_names_what_figures_depend_on() -> None:
    assert {"machine", "cpus", "python", "gfcode", "numpy"} <= set(machine())


def test_the_commit_is_that_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gfcode.measure.harness.__file__", str(tmp_path / "gfcode/measure/harness.py"))
    assert harness.commit() is None
    assert "commit" not in machine()
    folder = tmp_path / ".git"
    (folder / "refs/heads").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    assert harness.commit() is None
    (folder / "packed-refs").write_text(f"# pack-refs\n{'1' * 40} refs/heads/old\n{'2' * 40} refs/heads/main\n")
    assert harness.commit() == "2" * 40
    (folder / "refs/heads/main").write_text("3" * 40 + "\n")
    assert machine()["commit"] == "3" * 12
    (folder / "HEAD").write_text("4" * 40 + "\n")
    assert harness.commit() == "4" * 40


@pytest.mark.parametrize("operation", ["encode", "decode", "repair"])
def test_all_engines_are_measured_and_checked(operation: str) -> None:
    engines = {name: get_engine(name) for name in ("numba", "numpy")}
    rows = measure(operation, 3, 2, 1024, engines, isal.load(), rounds=1)
    assert [row.layout for row in rows] == ["packets", "words"]
    for row in rows:
        assert {"numba", "numpy"} <= set(row.figures)
        assert all(figure.median > 0 and figure.cpu_median >= 0 for figure in row.figures.values())
        assert set(row.to_dict()["rates"]) == set(row.figures)
    assert set(choices(3, 2)) == {"packets", "words"}


def test_layouts_and_isal_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands side by side in a table is of the same rounds."""
    together: list[list[object]] = []

    def once(calls: dict[object, object], _: object, *, rounds: int) -> dict[object, Figure]:
        together.append(list(calls))
        return {name: Figure((1.0,) * rounds) for name in calls}

    monkeypatch.setattr("gfcode.measure.quick.interleave", once)
    measure("decode", 3, 2, 1024, {"numba": get_engine("numba")}, Copier(), rounds=1)
    assert together == [[("packets", "numba"), ("words", "numba"), ("words", "isal")]]


class Copier(isal.Isal):
    """Stands for ISA-L where there is none: multiplies by the oracle."""

    version = "the oracle"

    def __init__(self) -> None:
        pass

    def product(self, matrix: Any, inputs: Any, outputs: Any) -> Callable[[], object]:
        operator = get_engine("numpy").prepare(Product(Matrix(GF(8), matrix), Layout("words", 8)))
        return lambda: operator(Blocks.of_buffers(inputs), Blocks.of_buffers(outputs, writable=True))


class Wrong:
    """An engine that does nothing."""

    name = "wrong"

    def refuses(self, _: Product) -> None:
        return None

    def prepare(self, _: Product) -> Operator:
        return lambda *_: None


def test_wrong_bytes_are_not_measured() -> None:
    with pytest.raises(GFCodeError, match="wrong gives wrong bytes: encode of"):
        measure("encode", 3, 2, 1024, {"numba": get_engine("numba"), "wrong": Wrong()}, None, rounds=1)


def test_names_that_no_plot_can_have() -> None:
    with pytest.raises(ParameterError, match=r"must be named \.svg"):
        plots.check_name("plot.jpeg2000")
