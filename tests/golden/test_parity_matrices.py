"""Parity matrices byte for byte as Jerasure and ISA-L make them: recorded ones, and those of libraries found here."""

import ctypes
import ctypes.util
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfcode.gf import GF
from gfcode.matrix.generator import parity_matrix

RECORDED = json.loads((Path(__file__).parent / "parity_matrices.json").read_text())["matrices"]
Function = Any


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: f"{r['source']} k={r['k']} m={r['m']} w={r['w']}")
def test_recorded_matrices(recorded: dict[str, Any]) -> None:
    expected = [[int(element, 16) for element in row.split()] for row in recorded["rows"]]
    k, m = recorded["k"], recorded["m"]
    assert (len(expected), len(expected[0])) == (m, k)
    assert parity_matrix(recorded["family"], GF(recorded["w"]), k, m).values.tolist() == expected


def library(*names: str) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    pytest.skip(f"no {' or '.join(names)} on this machine")


@pytest.fixture(scope="module")
def jerasure() -> ctypes.CDLL:
    return library("libJerasure.so.2", "libJerasure.so")


@pytest.fixture(scope="module")
def isal() -> ctypes.CDLL:
    return library("libisal.so.2", "libisal.so")


def jerasure_matrix(function: Function, k: int, m: int, w: int) -> Any:
    function.restype = ctypes.POINTER(ctypes.c_int)
    pointer = function(k, m, w)
    if not pointer:
        return None
    matrix = np.ctypeslib.as_array(pointer, (m, k)).astype(np.uint32)  # astype copies
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(pointer)
    return matrix


@pytest.mark.peer
@pytest.mark.parametrize("w", [8, 16, 32])
def test_vandermonde_is_jerasures(jerasure: ctypes.CDLL, w: int) -> None:
    for k, m in [*product((1, 2, 3, 5, 10, 30, 100), (1, 2, 3, 4, 7, 20, 60)), (250, 6), (6, 250)]:
        expected = jerasure_matrix(jerasure.reed_sol_vandermonde_coding_matrix, k, m, w)
        assert np.array_equal(parity_matrix("vandermonde", GF(w), k, m).values, expected), (k, m)


@pytest.mark.peer
@pytest.mark.parametrize("w", [*range(2, 17), 32])
def test_cauchy_good_is_jerasures(jerasure: ctypes.CDLL, w: int) -> None:
    compared = 0
    for k, m in product((1, 2, 3, 5, 10, 17, 30, 100), (1, 2, 3, 4, 7, 20)):
        if (w == 32 and k > 60) or k + m > 2**w:
            continue
        expected = jerasure_matrix(jerasure.cauchy_good_general_coding_matrix, k, m, w)
        assert np.array_equal(parity_matrix("cauchy-good", GF(w), k, m).values, expected), (k, m)
        compared += 1
    assert compared


@pytest.mark.peer
@pytest.mark.parametrize("w", range(2, 12))
def test_cauchy_good_with_two_rows_has_jerasures_whole_tables(jerasure: ctypes.CDLL, w: int) -> None:
    k = min(2**w - 1, 1023)
    expected = jerasure_matrix(jerasure.cauchy_good_general_coding_matrix, k, 2, w)
    assert np.array_equal(parity_matrix("cauchy-good", GF(w), k, 2).values, expected)


@pytest.mark.peer
def test_cauchy_good_of_long_rows_is_jerasures(jerasure: ctypes.CDLL) -> None:
    for w, k, m in ((11, 1100, 2), (12, 1100, 3), (16, 1100, 3)):
        expected = jerasure_matrix(jerasure.cauchy_good_general_coding_matrix, k, m, w)
        assert np.array_equal(parity_matrix("cauchy-good", GF(w), k, m).values, expected), (w, k, m)


@pytest.mark.peer
@pytest.mark.parametrize(("family", "function"), [("powers", "gf_gen_rs_matrix"), ("cauchy", "gf_gen_cauchy1_matrix")])
def test_powers_and_cauchy_are_isals(isal: ctypes.CDLL, family: str, function: str) -> None:
    for k, m in [*product((1, 2, 3, 5, 10, 30), (1, 2, 3, 4, 7, 20)), (250, 6), (6, 250), (200, 3)]:
        buffer = (ctypes.c_ubyte * ((k + m) * k))()
        getattr(isal, function)(buffer, k + m, k)
        expected = np.array(buffer, np.uint8).reshape(k + m, k)[k:]
        assert np.array_equal(parity_matrix(family, GF(8), k, m).values, expected), (k, m)
