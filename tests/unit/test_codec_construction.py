"""What a codec is made of, and what none is made of."""

import multiprocessing
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gfcode
from gfcode import errors
from gfcode.codec import Codec
from gfcode.engine.naive import NumpyEngine
from gfcode.errors import (
    EngineUnavailableError,
    MixedFieldsError,
    NotMDSError,
    ParameterError,
    ReduciblePolynomialError,
)
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import FAMILIES, parity_matrix
from gfcode.params import MAX_ELEMENTS
from tests.unit.codec_support import RecordingEngine, all_shards, random_data


def test_attributes() -> None:
    codec = Codec(10, 4)
    assert (codec.k, codec.m, codec.n, codec.w) == (10, 4, 14, 8)
    assert codec.field is GF(8)
    assert (codec.layout.name, codec.layout.packet_bytes, codec.block_multiple) == ("packets", 64, 512)
    assert codec.family == "powers"
    assert codec.parity == parity_matrix("powers", GF(8), 10, 4)
    assert codec.certificate.detail
    words = Codec(3, 2, w=16, layout="words", polynomial=0x1002D)
    assert words.block_multiple == 2
    assert words.field.polynomial == 0x1002D
    assert Codec(3, 2, packet_bytes=8).block_multiple == 64


@pytest.mark.parametrize("family", FAMILIES)
def test_families_keep_their_name_and_auto_says_what_it_chose(family: str) -> None:
    assert Codec(4, 2, matrix=family).family == family
    assert Codec(10, 5).family == "cauchy-good"
    assert Codec(10, 4, matrix="auto").family == "powers"


def test_an_explicit_matrix_in_any_form() -> None:
    values = [[1, 1, 1], [1, 2, 4]]
    forms: list[Any] = [
        values,
        tuple(map(tuple, values)),
        np.array(values),
        np.array(values, np.uint8),
        Matrix(GF(8), values),
    ]
    for form in forms:
        codec = Codec(3, 2, matrix=form)
        assert codec.family == "explicit"
        assert codec.parity == Matrix(GF(8), values)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 1, 1]], r"shape \(1, 3\), not \(m, k\) = \(2, 3\)"),
        ([[1, 1], [1, 2], [1, 3]], r"shape \(3, 2\)"),
        ([1, 1, 1], "two dimensions"),
        ([[1, 1, 1], [1, 2]], "cannot be used"),
        ([[1, 1, 1], [1, 2, 256]], "256 is no element"),
        ([[1, 1, 1], [1, 2, -3]], "-3 is no element"),
        ([[1.0, 1, 1], [1, 2, 4]], "float64"),
        ("Cauchy", "unknown matrix 'Cauchy'; choose auto, vandermonde"),
    ],
)
def test_matrices_that_are_none_are_refused(matrix: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Codec(3, 2, matrix=matrix)  # type: ignore[arg-type]


def test_a_matrix_over_another_field_is_refused() -> None:
    with pytest.raises(MixedFieldsError, match="GF"):
        Codec(2, 1, w=8, matrix=Matrix(GF(16), [[1, 1]]))


def test_a_matrix_that_a_loss_defeats_is_refused_by_name() -> None:
    with pytest.raises(NotMDSError, match=r"the loss of shards \{0,1\} cannot be decoded") as refusal:
        Codec(3, 2, matrix=[[1, 1, 1], [2, 2, 4]])
    assert refusal.value.lost == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0, "m": 2}, "k must be at least 1, not 0"),
        ({"k": -3, "m": 2}, "k must be at least 1, not -3"),
        ({"k": 3, "m": -1}, "m must be at least 0, not -1"),
        ({"k": 2.0, "m": 1}, "k must be an integer, not 2.0"),
        ({"k": 2, "m": "1"}, "m must be an integer, not '1'"),
        ({"k": 2, "m": 1, "w": None}, "w must be an integer, not None"),
        ({"k": 2, "m": 1, "w": 17}, "17"),
        ({"k": 2, "m": 1, "w": 0}, "0"),
        ({"k": 250, "m": 125}, r"375 shards are too many for GF\(2\^8\), which has room for 257"),
        ({"k": 14, "m": 4, "w": 4}, "has room for 17"),
        ({"k": 200, "m": 60, "matrix": "cauchy", "w": 8}, "260 shards"),
        ({"k": 2, "m": 1, "w": 5, "layout": "words"}, "layout 'words' needs w in 4, 8, 16, 32, not 5"),
        ({"k": 2, "m": 1, "layout": "columns"}, "unknown layout 'columns'"),
        ({"k": 2, "m": 1, "packet_bytes": 12}, "multiple of 8, not 12"),
        ({"k": 2, "m": 1, "packet_bytes": 1 << 62}, "packet bytes must be at most 1099511627776, not"),
        ({"k": 2, "m": 1, "polynomial": 0x1101}, "degree"),
    ],
)
def test_parameters_that_no_code_has_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Codec(**arguments)  # type: ignore[arg-type]


def test_a_reducible_polynomial_is_refused() -> None:
    with pytest.raises(ReduciblePolynomialError):
        Codec(2, 1, polynomial=0x101)


@pytest.mark.parametrize(("k", "m"), [(1, 0), (5, 0), (1, 1), (1, 300), (300, 1), (255, 2)])
def test_the_edges_of_what_codes_there_are(k: int, m: int) -> None:
    codec = Codec(k, m)
    data = random_data(codec, 1)
    shards = all_shards(codec, data)
    kept = {i: shards[i] for i in list(shards)[m:]}
    assert (codec.decode(kept) == data).all()


def test_without_parity_nothing_is_made_and_everything_is_needed() -> None:
    codec = Codec(3, 0)
    data = random_data(codec)
    assert codec.encode(data).shape == (0, data.shape[1])
    assert codec.encode(data, out=[]) == []
    assert codec.engine.name in {"simd", "numba", "numpy"}
    assert (codec.decode(dict(enumerate(data))) == data).all()
    assert codec.verify(dict(enumerate(data)))
    codec.update([], 0, data[0], data[1])
    with pytest.raises(errors.UnrecoverableError):
        codec.decode({0: data[0], 2: data[2]})


@pytest.mark.parametrize("matrix", [[], np.empty((0, 3), np.uint8), Matrix(GF(8), np.empty((0, 3), np.uint8)), "auto"])
def test_no_parity_may_be_given_as_no_rows(matrix: Any) -> None:
    codec = Codec(3, 0, matrix=matrix)
    assert codec.parity.shape == (0, 3)
    assert codec.encode(random_data(codec)).shape[0] == 0


def test_no_rows_are_not_the_matrix_of_any_parity() -> None:
    with pytest.raises(ParameterError):
        Codec(3, 1, matrix=[])


def test_the_engine_demanded_is_the_engine_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "numba"):
        assert Codec(3, 2, engine=name).engine.name == name
    with pytest.raises(EngineUnavailableError, match="no engine 'abacus'"):
        Codec(3, 2, engine="abacus")
    engine = RecordingEngine()
    codec = Codec(3, 2, engine=engine)
    assert codec.engine is engine
    codec.encode(random_data(codec))
    assert len(engine.calls) == 1
    monkeypatch.setenv("GFCODE_ENGINE", "numpy")
    assert Codec(3, 2).engine.name == "numpy"
    monkeypatch.setenv("GFCODE_ENGINE", "abacus")
    with pytest.raises(EngineUnavailableError, match="GFCODE_ENGINE=abacus"):
        Codec(3, 2)
    assert Codec(3, 2, engine="auto").engine.name in {"simd", "numba"}


def test_what_is_no_engine_and_what_are_no_shards_is_refused() -> None:
    nothing: Any = 3
    with pytest.raises(ParameterError, match="engine is 3, neither an engine nor the name of one"):
        Codec(3, 2, engine=nothing)
    with pytest.raises(ParameterError, match="want is 3, not shard indices in a list"):
        Codec(3, 2).reconstruct({0: b"", 1: b"", 2: b""}, want=nothing)


def test_repr_says_how_to_make_the_codec_again() -> None:
    for codec in (Codec(3, 2, engine="numpy"), Codec(4, 2, 16, "cauchy", "words"), Codec(4, 2, packet_bytes=8)):
        again = eval(repr(codec), {"Codec": Codec})  # noqa: S307 - that is what a repr is for
        assert repr(again) == repr(codec)
        assert again.parity == codec.parity
    assert re.search("matrix='explicit'", repr(Codec(2, 1, matrix=[[1, 1]])))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_the_same_codec(protocol: int) -> None:
    for codec in (
        Codec(4, 2),
        Codec(3, 2, matrix=[[1, 1, 1], [1, 2, 4]], layout="words", engine="numpy"),
        Codec(3, 2, w=5, packet_bytes=16, polynomial=0b111101, engine=NumpyEngine()),
    ):
        data = random_data(codec)
        parity = codec.encode(data)  # with an encoder and a planner made, which do not travel
        codec.plan(range(1, codec.n), [0])
        again = pickle.loads(pickle.dumps(codec, protocol))  # noqa: S301 - the test's own
        assert repr(again) == repr(codec)
        assert again.parity == codec.parity
        assert again.certificate == codec.certificate
        assert again.engine.name == codec.engine.name
        assert (again.encode(data) == parity).all()
        assert (again.decode(dict(enumerate([*data, *parity]))) == data).all()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_codecs_work_in_other_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this platform")
    codec = Codec(4, 2)
    data = random_data(codec)
    shards = all_shards(codec, data)
    codec.decode({i: shards[i] for i in (0, 1, 4, 5)})
    kept = {i: shards[i] for i in (1, 3, 4, 5)}
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert (pool.apply_async(codec.decode, (kept,)).get(60) == data).all()


def test_the_package_exports_every_error_and_what_its_list_says() -> None:
    assert set(errors.__all__) <= set(gfcode.__all__)
    assert sorted(gfcode.__all__) == sorted(set(gfcode.__all__))
    for name in gfcode.__all__:
        assert getattr(gfcode, name) is not None
    assert dir(gfcode) == sorted(gfcode.__all__)
    assert gfcode.Codec is Codec
    with pytest.raises(AttributeError, match="no attribute 'Kodec'"):
        _ = gfcode.Kodec  # type: ignore[attr-defined]


def test_importing_the_package_loads_no_library() -> None:
    code = (
        "import sys, gfcode; heavy = {'numpy', 'numba', 'llvmlite', 'cupy', 'click', 'rich'} & set(sys.modules);"
        "assert not heavy, heavy; from gfcode import Codec; heavy = {'numba', 'llvmlite', 'cupy', 'click'} &"
        " set(sys.modules); assert not heavy, heavy; Codec(10, 4);"
        " heavy = {'numba', 'llvmlite', 'cupy', 'click'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("packet_bytes", [64.0, "64", None])
def test_packet_bytes_are_an_integer(packet_bytes: Any) -> None:
    with pytest.raises(ParameterError, match="packet bytes must be an integer"):
        Codec(4, 2, packet_bytes=packet_bytes)


@pytest.mark.parametrize(("k", "m"), [(40_000, 40_000), (MAX_ELEMENTS + 1, 0), (10**30, 1)])
def test_a_matrix_that_exhausts_memory_is_refused_at_once(k: int, m: int) -> None:
    with pytest.raises(ParameterError, match="too large; the limit is 67108864 elements"):
        Codec(k, m, 32)


def test_messages_say_how_large_the_field_is() -> None:
    with pytest.raises(NotMDSError, match=r"over GF\(2\^8\)/0x11d is not MDS"):
        Codec(10, 5, matrix="powers")
