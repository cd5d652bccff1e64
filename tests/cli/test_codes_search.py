"""`gfcode codes --search`."""

import pytest

from gfcode.gf import GF
from gfcode.matrix.bitmatrix import ones
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from tests.cli.conftest import Runner

SEARCH = ("codes", "--search", "-k", "4", "-m", "2", "--w", "4", "--rounds", "1", "--polish", "50")


def test_search_reports_certified_matrices_and_their_xors(gfcode: Runner) -> None:
    done = gfcode(*SEARCH, "--seed", "3", "--json")
    assert done.code == 0
    report = done.json
    assert {name: report[name] for name in ("k", "m", "w", "seed", "rounds", "polish")} == {
        "k": 4, "m": 2, "w": 4, "seed": 3, "rounds": 1, "polish": 50,
    }  # fmt: skip
    assert 0 < report["refused"] < report["candidates"]
    counts = [found["xors_after"] for found in report["found"]]
    assert counts == sorted(counts)
    assert {"powers", "cauchy-good"} <= {found["origin"] for found in report["found"]}
    for found in report["found"]:
        matrix = Matrix(GF(4, int(found["polynomial"], 16)), found["matrix"])
        assert certify(matrix).method == found["certificate"]["method"]
        assert found["xors_before"] == ones(matrix) - 8
        assert found["xors_after"] <= found["xors_before"]
        assert found["xors_per_data_bit"] == found["xors_after"] / 16
    assert gfcode(*SEARCH, "--seed", "3", "--json").json == report


def test_search_in_words(gfcode: Runner) -> None:
    done = gfcode(*SEARCH)
    assert done.code == 0
    report = gfcode(*SEARCH, "--json").json
    lines = done.out.splitlines()
    assert lines[0].startswith(f"(4,2), w = 4: {report['candidates']} matrices looked at")
    (best,) = (line for line in lines if line.startswith("best: "))
    assert f"{report['found'][0]['xors_after']} XORs" in best
    for row in report["found"][0]["matrix"]:
        assert " ".join(f"{element:>3}" for element in row) in lines
    assert max(map(len, lines)) <= 100
    assert gfcode(*SEARCH, "--quiet").out == ""


def test_search_for_a_time(gfcode: Runner) -> None:
    done = gfcode("codes", "--search", "-k", "2", "-m", "1", "--w", "2", "--seconds", "0", "--json")
    assert done.code == 0
    assert done.json["rounds"] == 1
    # A single parity shard is the XOR of the data, and nothing is cheaper.
    assert done.json["found"][0]["matrix"] == [[1, 1]]
    assert done.json["found"][0]["xors_after"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seconds", "5"), "--seconds, --rounds, --polish and --seed go with --search"),
        (("--seed", "0"), "go with --search"),
        (("--search", "--rounds", "1", "--w", "32"), "w = 2 to 16, not 32"),
        (("--search", "--rounds", "1", "--w", "4", "-k", "16"), "too many for GF(2^4)"),
        (("--search", "--rounds", "1", "-m", "0"), "no parity to search for"),
        (("--search", "--rounds", "0"), "--rounds"),
    ],
)
def test_search_refuses(gfcode: Runner, arguments: tuple[str, ...], message: str) -> None:
    done = gfcode("codes", *arguments)
    assert done.code == 2
    assert message in done.error
