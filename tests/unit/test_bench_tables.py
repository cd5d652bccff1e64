"""Published tables run again: what is measured is what the tables say, and every result is checked."""

import json
from pathlib import Path

import pytest

from bench import gcrs, klauspost
from bench.published import FIGURES, SOURCES, figures
from bench.tables import TABLES, Entry, main, measure, render, table
from gfcode.measure.isal import Isal, load

SMALL = Entry("sc21", "RS(4,2)", "decode", 4, 2, 32 * 1024 + 64, (0, 3), (64, 1024))


def test_lines_of_the_tables() -> None:
    sc21 = list(table("sc21"))
    assert {(entry.k, entry.m) for entry in sc21} == {(k, m) for k in (8, 9, 10) for m in (2, 3, 4)}
    assert all(9_999_000 < entry.k * entry.length <= 10_000_000 for entry in sc21)
    assert all(len(entry.lost) == (entry.m if entry.operation == "decode" else 0) for entry in sc21)
    encode, decode = table("isal")
    assert (encode.k, encode.m, encode.length) == (decode.k, decode.m, decode.length) == (10, 4, 2396736)
    names = [entry.name for entry in table("klauspost")]
    assert names == ["10x4x1M", "10x4x16M", "17x3x1M", "50x20x1M"]
    assert all(entry.counts_parity for entry in table("klauspost"))
    with pytest.raises(ValueError, match="no table"):
        list(table("tpds"))
    gpu = list(table("gcrs"))
    assert [(entry.m, entry.w) for entry in gpu] == [(m, w) for m in range(1, 5) for w in range(4, 9)]
    assert all(entry.length % (entry.w * 2048) == 0 and 0.98e6 < entry.length <= 1e6 for entry in gpu)


def test_published_figures_stand_beside_lines_that_exist() -> None:
    lines = {(entry.table, entry.name, entry.operation) for name in TABLES for entry in table(name)}
    assert set(FIGURES) <= lines
    told = [each for found in FIGURES.values() for each in found]
    assert all(each.rate > 0 and each.what for each in told)
    assert {each.source for each in told} == set(SOURCES)
    assert all(
        source.title and source.hardware and source.address.startswith("https://") for source in SOURCES.values()
    )
    assert figures("gcrs", "m=3 w=8", "encode") == ()
    assert [each.rate for each in figures("sc21", "RS(10,4)", "decode")] == [5.859, 4.712]


@pytest.mark.parametrize("w", [4, 7])
def test_jerasure_is_held_to_our_bytes(w: int) -> None:
    if gcrs.load() is None:
        pytest.skip("Jerasure is not installed: apt-get install libjerasure2")
    found = measure(Entry("gcrs", "x", "encode", 4, 2, w * 2048, w=w), None, None, 1)
    assert set(found) == {"packets 64", "jerasure", *(["words"] if w == 4 else [])}


def test_a_line_is_measured_and_checked() -> None:
    isal = load()
    figures = measure(SMALL, isal, None, 1)
    assert set(figures) == {"words", "packets 64", "packets 1024", *(["isal"] if isal else [])}
    assert all(figure.median > 0 for figure in figures.values())


@pytest.mark.peer
def test_wrong_bytes_of_a_peer_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    isal = load()
    if isal is None:
        pytest.skip("ISA-L is not installed: pip install pyeclib, or apt-get install libisal2")
    monkeypatch.setattr(Isal, "product", lambda *_: lambda: None)
    with pytest.raises(AssertionError, match="isal gives wrong bytes"):
        measure(SMALL, isal, None, 1)


def test_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def absent(folder: str) -> str:
        raise OSError("no Go here")

    monkeypatch.setattr(klauspost, "build", absent)
    monkeypatch.setattr("bench.tables.table", lambda _: iter([SMALL]))
    out = tmp_path / "tables.json"
    main(["--tables", "sc21", "--rounds", "1", "--out", str(out)])
    result = json.loads(out.read_text())
    assert result["environment"]["no peer klauspost"] == "no Go here"
    (case,) = result["cases"]
    assert case["counts"] == "data"
    assert all(case["median"][name] > 0 for name in ("words", "packets 64"))
    assert "RS(4,2)    decode" in capsys.readouterr().out
    main(["--print", str(out)])
    assert "| RS(4,2), decode | " in capsys.readouterr().out
    lines = list(render(result["cases"]))
    assert lines[1].startswith("| | ")
    assert lines[-1].endswith("| not found | not found |")


@pytest.mark.peer
def test_klauspost_runs(tmp_path: Path) -> None:
    try:
        program = klauspost.build(str(tmp_path))
    except OSError as error:
        pytest.skip(str(error))
    with klauspost.Klauspost(program, 4, 2, 4096) as peer:
        assert peer.sum > 0
        peer.encode(3)()
    with pytest.raises(OSError, match="has ended"):
        klauspost.Klauspost(program, 4000, 70000, 64)
