"""`gfcode codes` and `gfcode engines`."""

from pathlib import Path

import pytest

from gfcode.engine.registry import ENGINES, status
from gfcode.matrix.generator import FAMILIES
from tests.cli.conftest import Runner


@pytest.mark.parametrize(
    ("k", "m", "lost"),
    [
        (10, 5, [0, 3, 5, 12, 13]),
        (6, 5, [0, 3, 5, 8, 9]),
        (5, 6, [0, 3, 4, 6, 8, 9]),
        (22, 4, [0, 10, 21, 24]),
    ],
)
def test_unsafe_powers_are_refused_with_the_loss(gfcode: Runner, k: int, m: int, lost: list[int]) -> None:
    done = gfcode("codes", "-k", str(k), "-m", str(m), "--json")
    assert done.code == 0
    assert done.json["auto"] == "cauchy-good"
    families = {family["family"]: family for family in done.json["families"]}
    assert list(families) == list(FAMILIES)
    assert families["powers"]["certified"] is False
    assert families["powers"]["lost"] == lost
    for name in ("vandermonde", "cauchy", "cauchy-good"):
        assert families[name]["certified"] is True
        assert families[name]["lost"] == []
        assert families[name]["method"] == "cauchy"
    assert families["cauchy-good"]["ones"] < families["cauchy"]["ones"]
    text = gfcode("codes", "-k", str(k), "-m", str(m))
    assert text.code == 0
    line = next(line for line in text.out.splitlines() if line.split()[:1] == ["powers"])
    assert "refused: loses" in line


def test_ones_and_peers_of_the_default(gfcode: Runner) -> None:
    """RAID-6's second parity row over GF(2^8) at k = 2 is 1, 2: 8 + 8 + 8 + 11 ones."""
    report = gfcode("codes", "-k", "2", "-m", "2", "--json").json
    powers = next(family for family in report["families"] if family["family"] == "powers")
    assert powers["ones"] == 35
    assert powers["same_bytes"] == "ISA-L gf_gen_rs_matrix (words), RAID-6 P and Q (words)"
    text = gfcode("codes")
    assert text.code == 0
    starred = [line.split()[1] for line in text.out.splitlines()[:-1] if line.startswith("*")]
    assert starred == [gfcode("codes", "--json").json["auto"]] == ["powers"]
    assert max(map(len, text.out.splitlines())) <= 100


def test_families_without_room_are_named(gfcode: Runner) -> None:
    done = gfcode("codes", "-k", "14", "-m", "3", "--w", "4", "--json")
    assert done.code == 0
    cauchy = next(family for family in done.json["families"] if family["family"] == "cauchy")
    assert cauchy["ones"] is None
    assert "GF(2^4)" in cauchy["detail"]
    assert "no room" in gfcode("codes", "-k", "14", "-m", "3", "--w", "4").out


def test_quiet_says_nothing(gfcode: Runner) -> None:
    for name in ("codes", "engines"):
        done = gfcode(name, "-q")
        assert (done.code, done.out, done.err) == (0, "", "")


def test_engines_are_listed_with_reasons(gfcode: Runner) -> None:
    done = gfcode("engines", "--json")
    assert done.code == 0
    engines = {engine["name"]: engine for engine in done.json["engines"]}
    assert list(engines) == list(ENGINES)
    assert engines["numpy"]["usable"] is True
    assert {name: engine["usable"] for name, engine in engines.items()} == {s.name: s.usable for s in status()}
    assert all(engine["detail"] for engine in engines.values())
    assert engines[done.json["chosen"]["packets"]]["usable"] is True
    assert engines[done.json["chosen"]["words"]]["usable"] is True
    text = gfcode("engines")
    for name, engine in engines.items():
        line = next(line for line in text.out.splitlines() if line.split()[:1] == [name])
        assert line.split()[1] == ("usable" if engine["usable"] else "unusable")
        assert engine["detail"] in line


def test_demand_of_the_environment_is_shown(gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GFCODE_ENGINE", "numpy")
    assert gfcode("engines", "--json").json["environment"] == "numpy"
    assert "GFCODE_ENGINE=numpy asks for" in gfcode("engines").out


def test_searched_matrices_where_they_are_kept(gfcode: Runner, tmp_path: Path) -> None:
    report = gfcode("codes", "-k", "10", "-m", "4", "--json").json
    found = next(family for family in report["families"] if family["family"] == "searched")
    assert found["certified"]
    assert found["ones"] < min(family["ones"] for family in report["families"] if family["family"] != "searched")
    assert "none kept" in gfcode("codes", "-k", "9", "-m", "4").out
    (tmp_path / "data").write_bytes(b"x" * 1000)
    assert (
        gfcode(
            "encode", str(tmp_path / "data"), "-k", "6", "-m", "3", "--matrix", "searched", "--out", str(tmp_path)
        ).code
        == 0
    )
    refused = gfcode("encode", str(tmp_path / "data"), "-k", "5", "-m", "3", "--matrix", "searched")
    assert refused.code != 0
    assert "no matrix 'searched' is kept for k = 5, m = 3" in refused.err
