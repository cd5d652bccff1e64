"""Candidates, the search among them, and the catalogue of what it found."""

import json
from importlib import resources
from random import Random

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.errors import ParameterError
from gfcode.gf import GF
from gfcode.matrix.bitmatrix import expand, ones
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.xor import catalogue
from gfcode.xor.candidates import Candidate, Weights, cauchy, mutate, polynomials, powers, stock
from gfcode.xor.interpret import interpret, matrix
from gfcode.xor.lower import lower
from gfcode.xor.search import search_codes

ENTRIES = catalogue.entries()


def test_polynomials() -> None:
    assert polynomials(4) == [0x13, 0x19, 0x1F]
    assert len(polynomials(8)) == 30  # by Gauss's formula: (2^8 − 2^4) / 8
    assert polynomials(16) == [0x1100B]
    for w in (1, 17, 32):
        with pytest.raises(ParameterError, match=f"w = 2 to 16, not {w}"):
            polynomials(w)


def test_weights() -> None:
    weights = Weights(GF(8))
    assert weights.ones[[0, 1, 2]].tolist() == [0, 8, 11]
    assert len(weights.cycle) == 255
    assert len(Weights(GF(8, 0x11B)).cycle) == 51
    rows = weights.lightest_rows(np.array([[7, 3, 9], [4, 2, 2]], np.uint8))
    assert rows.tolist()[1] == [2, 1, 1]
    best = min(sum(weights.ones[GF(8).div(x, d)] for x in (7, 3, 9)) for d in (7, 3, 9))
    assert weights.ones[rows[0]].sum() == best


def test_powers_are_scaled_powers_by_rising_ones() -> None:
    candidates = powers(5, 3, 4)
    counts = [ones(candidate.matrix) for candidate in candidates]
    assert counts == sorted(counts)
    for candidate in candidates:
        field, values = candidate.matrix.field, candidate.matrix.values
        exponents = [int(word.rstrip(",")) for word in candidate.origin.split()[1:4]]
        for row, exponent in zip(values, exponents, strict=True):
            assert (field.div(row[1:], row[:-1]) == field.pow(field.alpha, exponent)).all()
    assert len({(c.matrix.field, c.matrix.values.tobytes()) for c in candidates}) == len(candidates)
    # x has order 5 modulo 0x1f, so that six columns are too many.
    assert {c.matrix.field.polynomial for c in candidates} == {0x13, 0x19, 0x1F}
    assert {c.matrix.field.polynomial for c in powers(6, 3, 4)} == {0x13, 0x19}


def test_stock_is_the_families_that_have_room() -> None:
    assert [candidate.origin for candidate in stock(10, 4, 8)] == ["vandermonde", "powers", "cauchy", "cauchy-good"]
    assert [candidate.origin for candidate in stock(14, 3, 4)] == ["vandermonde", "powers"]


@pytest.mark.parametrize(("k", "m", "w"), [(10, 4, 4), (12, 4, 4), (3, 2, 8), (6, 3, 16)])
def test_cauchy_candidates_are_mds(k: int, m: int, w: int) -> None:
    for seed in range(3):
        candidate = cauchy(k, m, w, Random(seed))
        assert candidate is not None
        assert candidate.matrix.shape == (m, k)
        assert certify(candidate.matrix).method == "cauchy"
    assert cauchy(2**w, m, w, Random(0)) is None


def test_cauchy_candidates_are_improved() -> None:
    best = min(ones(c.matrix) for seed in range(4) if (c := cauchy(6, 3, 8, Random(seed))))
    assert best < ones(parity_matrix("cauchy", GF(8), 6, 3))


def test_mutate_leaves_the_original() -> None:
    original = Candidate(parity_matrix("powers", GF(8), 4, 3), "powers")
    kept = original.matrix.values.copy()
    changed = [mutate(original, Random(seed)) for seed in range(40)]
    assert np.array_equal(original.matrix.values, kept)
    assert all(c.matrix.values.all() and c.matrix.shape == (3, 4) for c in changed)
    assert len({c.matrix for c in changed}) > 20
    assert mutate(changed[0], Random(1)).origin == changed[0].origin == "powers, changed"


def test_search() -> None:
    report = search_codes(3, 2, 4, seed=5, rounds=2, polish=100)
    assert report == search_codes(3, 2, 4, seed=5, rounds=2, polish=100)
    assert (report.k, report.m, report.w, report.seed, report.rounds, report.polish) == (3, 2, 4, 5, 2, 100)
    assert report.best is report.found[0]
    for found in report.found:
        assert certify(found.matrix) == found.certificate
        assert np.array_equal(matrix(found.program), expand(found.matrix))
        assert found.before == lower(expand(found.matrix)).xors
        assert report.best.program.xors <= found.program.xors <= found.before
    assert {"powers", "cauchy-good"} <= {found.origin for found in report.found}
    # Each of the 2 · 4 parity bits needs all three data shards.
    assert report.best.program.xors >= 8 * 2


def test_search_beats_the_families() -> None:
    """(6,3) over GF(2^4): the best matrix found in a second takes far fewer XORs than any family's."""
    report = search_codes(6, 3, 4, seed=1, rounds=1)
    families = [found for found in report.found if found.origin in {"powers", "cauchy", "cauchy-good", "vandermonde"}]
    assert len(families) == 4
    assert report.best.program.xors < min(found.program.xors for found in families)


def test_search_refuses() -> None:
    with pytest.raises(ParameterError, match="needs a limit"):
        search_codes(4, 2, 8)
    with pytest.raises(ParameterError, match="m = 0"):
        search_codes(4, 0, 8, rounds=1)
    with pytest.raises(ParameterError, match="too many"):
        search_codes(16, 4, 4, rounds=1)


def test_the_catalogue_holds_the_common_codes() -> None:
    wide = [(4, 2), (6, 3), (8, 3), (10, 4), (12, 4), (16, 4), (17, 3), (20, 4)]
    assert [entry.key for entry in ENTRIES] == sorted([(k, m, 8) for k, m in wide] + [(k, m, 4) for k, m in wide[:5]])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: ",".join(map(str, entry.key)))
def test_catalogue_entries_are_certified_and_counted_anew(entry: catalogue.Entry) -> None:
    k, m, w = entry.key
    assert entry.matrix.shape == (m, k)
    assert certify(entry.matrix).method == entry.method
    bits = expand(entry.matrix)
    assert entry.before == int(bits.sum()) - m * w
    assert np.array_equal(matrix(entry.program), bits)
    assert entry.after == sum(len(operands) - 1 for operands in entry.program.instructions)
    # Every output takes in every data shard, or the code were not MDS.
    assert m * w * (k - 1) // w <= entry.after < entry.before
    seed, rounds, polish = (int(word) for word in entry.command.split()[-5::2])
    assert entry.command == (
        f"gfcode codes --search -k {k} -m {m} --w {w} --seed {seed} --rounds {rounds} --polish {polish}"
    )


def test_catalogue_is_ahead_of_the_published_program() -> None:
    """RS(10,4) over GF(2^8): 385 XORs and 677 memory accesses (Uezato, SC'21)."""
    entry = catalogue.find(10, 4, 8)
    assert entry is not None
    assert entry.after < 330
    assert entry.program.memory_accesses < 600


def test_catalogue_programs_encode_as_a_codec_does() -> None:
    for key in ((4, 2, 8), (10, 4, 4), (10, 4, 8)):
        entry = catalogue.find(*key)
        assert entry is not None
        k, m, w = key
        codec = Codec(k, m, w, entry.matrix, polynomial=entry.matrix.field.polynomial, engine="numpy")
        data = np.random.default_rng(k).integers(0, 256, (k, w * 64), np.uint8)
        parity = interpret(entry.program, data.reshape(k * w, 64))
        assert np.array_equal(parity.reshape(m, w * 64), codec.encode(data))


def test_lookup() -> None:
    found = catalogue.lookup(10, 4, 8)
    assert found is not None
    assert found.shape == (4, 10)
    assert catalogue.lookup(11, 4, 8) is None
    assert catalogue.find(10, 4, 16) is None


def test_catalogue_file_is_what_dump_writes() -> None:
    text = resources.files("gfcode.xor").joinpath("catalogue.json").read_text(encoding="utf-8")
    assert catalogue.dump(list(ENTRIES)[::-1]) == text
    assert [catalogue.Entry.from_dict(entry) for entry in json.loads(text)["entries"]] == list(ENTRIES)


def test_entries_that_do_not_fit_are_refused() -> None:
    data = ENTRIES[0].to_dict()
    with pytest.raises(ParameterError, match="not an entry"):
        catalogue.Entry.from_dict({key: value for key, value in data.items() if key != "program"})
    with pytest.raises(ParameterError, match="does not fit"):
        catalogue.Entry.from_dict(data | {"k": data["k"] + 1})
    other = ENTRIES[-1].to_dict()["program"]
    with pytest.raises(ParameterError, match="does not fit"):
        catalogue.Entry.from_dict(data | {"program": other})


def test_entry_of_a_report() -> None:
    report = search_codes(2, 2, 4, rounds=1)
    entry = catalogue.entry_of(report)
    assert entry.key == (2, 2, 4)
    assert entry.command == "gfcode codes --search -k 2 -m 2 --w 4 --seed 0 --rounds 1 --polish 0"
    assert catalogue.Entry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry
    assert isinstance(entry.matrix, Matrix)
