"""`gfcode bench`: what it measures can be read, and what it cannot do it says."""

import re
import sys
from pathlib import Path

import pytest

from gfcode.measure import areas
from tests.cli.conftest import Runner

SMALL = ("--shape", "2+1", "--length", "4KiB", "--rounds", "1", "--engine", "numba")


def test_json(gfcode: Runner) -> None:
    done = gfcode("bench", *SMALL, "--shape", "3+2", "--json")
    assert done.code == 0, done.err
    cases = done.json["cases"]
    assert len(cases) == 2 * 2 * 3
    assert {(case["k"], case["m"]) for case in cases} == {(2, 1), (3, 2)}
    assert {case["layout"] for case in cases} == {"packets", "words"}
    assert all(case["median"]["numba"] > 0 and case["length"] == 4096 for case in cases)
    assert set(done.json["chosen"]["2+1"]) == {"packets", "words"}
    assert done.json["environment"]["cpus"]


def test_text(gfcode: Runner) -> None:
    done = gfcode("bench", *SMALL)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert sum(line.startswith("(2,1)") for line in lines) == 6
    assert [line.partition(":")[0] for line in lines[-2:]] == ["chosen for layout packets", "chosen for layout words"]


@pytest.mark.parametrize("area", ["fields", "matrices", "programs"])
def test_areas_beside_the_codecs(gfcode: Runner, area: str) -> None:
    done = gfcode("bench", "--area", area, "--rounds", "1", "--json")
    assert done.code == 0, done.err
    assert done.json["cases"] == []
    assert len(done.json[area]) >= 2
    assert all(line["median"] > 0 and line["unit"] for line in done.json[area])


def test_large_numbers_are_written_out(gfcode: Runner) -> None:
    done = gfcode("bench", "--area", "matrices", "--rounds", "1")
    assert done.code == 0, done.err
    (line,) = [line for line in done.out.splitlines() if "(10,4): bit matrix" in line]
    assert re.fullmatch(r"\S+  \(10,4\): bit matrix +[\d,]+ \[[\d,]+-[\d,]+\] a second", line)


@pytest.mark.parametrize("prepare", ["_fields", "_matrices", "_programs"])
def test_what_is_measured_is_made_anew(prepare: str) -> None:
    """No cache answers in its place."""
    for name, (call, _) in getattr(areas, prepare)().items():
        assert call() is not call(), name


def test_files(gfcode: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are encoded, verified, decoded and repaired; nothing is left of them."""
    monkeypatch.setattr("gfcode.cli.bench._FILE", (1 << 20, 1 << 20))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = gfcode("bench", "--area", "files", "--rounds", "2")
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith("files ")]
    assert [line.split(": ")[1].split("  ")[0] for line in lines] == [
        "encode a file", "verify its shards", "decode it", "repair one shard",
    ]  # fmt: skip
    assert all(line.endswith(" GB/s") for line in lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--shape", "4"), 2, "is no shape"),
        (("--shape", "200+100"), 2, "shards"),
        (("--length", "100"), 2, "multiple of 512"),
        (("--engine", "abacus"), 2, "is no engine"),
        (("--plot", "bench.txt"), 2, "must be named .svg"),
        (("--plot", "bench.svg", "--area", "fields"), 2, "--plot draws codecs"),
        (("--area", "weather"), 2, "weather"),
        (("--area", "fields", "--shape", "4+2"), 2, "are for codecs"),
        (("--area", "files", "--engine", "numba"), 2, "are for codecs"),
    ],
)
def test_wrong_use(gfcode: Runner, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = gfcode("bench", *arguments)
    assert done.code == code
    assert message in done.error


@pytest.mark.parametrize("command", [("bench", *SMALL), ("codes",)])
def test_plots_want_matplotlib(
    gfcode: Runner, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = gfcode(*command, "--plot", tmp_path / "plot.svg")
    assert done.code == 1
    assert "pip install 'gfcode[bench]'" in done.error
    assert not (tmp_path / "plot.svg").exists()


@pytest.mark.parametrize("suffix", ["svg", "png"])
@pytest.mark.parametrize("command", [("bench", *SMALL), ("codes", "-k", "4", "-m", "2")])
def test_plots(gfcode: Runner, command: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'gfcode[bench]'")
    path = tmp_path / f"plot.{suffix}"
    assert gfcode(*command, "--plot", path, "-q").code == 0
    assert path.read_bytes().startswith({"svg": b"<?xml", "png": b"\x89PNG"}[suffix])
