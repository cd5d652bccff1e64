"""The presets against golden vectors made by the peers themselves; these run everywhere."""

import hashlib
import json
import warnings

import numpy as np
import pytest

from gfcode import Codec
from gfcode.codec.presets import PRESETS
from gfcode.matrix.bitmatrix import expand
from tests.golden.make.vectors import FOLDER, SMALL, file_name
from tests.peers.base import Bytes, Variant, filled
from tests.peers.variants import VARIANTS

#: Vectors by the name of their file, read once.
FILES = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
TITLES = sorted(VARIANTS)


def codec_of(variant: Variant, k: int, m: int, engine: str | None = None) -> Codec:
    return Codec.preset(
        variant.preset, k, m, allow_uncertified=(k, m) in variant.uncertified, engine=engine, **variant.options
    )


def encode(codec: Codec, data: Bytes) -> Bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # uncertified codes say so
        return codec.encode(data)


def test_every_preset_has_vectors() -> None:
    assert {variant.preset for variant in VARIANTS.values()} == set(PRESETS)
    assert {file_name(variant) for variant in VARIANTS.values()} == set(FILES)


@pytest.mark.parametrize("title", TITLES)
def test_vectors_say_where_they_come_from(title: str) -> None:
    vector = FILES[file_name(VARIANTS[title])]
    assert vector["preset"] == VARIANTS[title].preset
    assert vector["options"] == VARIANTS[title].options
    assert vector["provenance"]
    for peer in vector["provenance"]:
        assert peer["library"]
        assert peer["version"]
        assert "unknown" not in peer["version"]
        assert peer["call"]


@pytest.mark.parametrize("title", TITLES)
def test_vectors_cover_every_shape_and_length(title: str) -> None:
    variant = VARIANTS[title]
    cases = FILES[file_name(variant)]["cases"]
    assert [(case["k"], case["m"]) for case in cases] == list(variant.shapes)
    for case in cases:
        assert [int(length) for length in case["parity_sha256"]] == list(variant.lengths)
        assert all(len(hashes) == case["m"] for hashes in case["parity_sha256"].values())


@pytest.mark.parametrize("title", TITLES)
def test_matrix(title: str) -> None:
    variant = VARIANTS[title]
    for case in FILES[file_name(variant)]["cases"]:
        codec = codec_of(variant, case["k"], case["m"])
        lines = [" ".join(f"{value:x}" for value in row) for row in codec.parity.values.tolist()]
        if "matrix" in case:
            assert case["matrix"] == lines
        else:
            assert codec.parity.values.size > SMALL
            assert case["matrix_sha256"] == hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("title", TITLES)
def test_parity(title: str) -> None:
    variant = VARIANTS[title]
    for case in FILES[file_name(variant)]["cases"]:
        k, m = case["k"], case["m"]
        codec = codec_of(variant, k, m)
        for length, hashes in case["parity_sha256"].items():
            parity = encode(codec, filled(k, int(length), seed=int(length)))
            assert [hashlib.sha256(row.tobytes()).hexdigest() for row in parity] == hashes, (k, m, length)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("title", TITLES)
def test_parity_by_engine(title: str, engine: str) -> None:
    variant = VARIANTS[title]
    case = FILES[file_name(variant)]["cases"][0]
    k, m = case["k"], case["m"]
    codec = codec_of(variant, k, m, engine)
    assert codec.engine.name == engine
    for length, hashes in case["parity_sha256"].items():
        parity = encode(codec, filled(k, int(length), seed=int(length)))
        assert [hashlib.sha256(row.tobytes()).hexdigest() for row in parity] == hashes, length


def test_data_rule() -> None:
    state, expected = 7, []
    for _ in range(50):
        state = (1664525 * state + 1013904223) % 2**32
        expected.append(state >> 24)
    assert filled(5, 10, seed=7).ravel().tolist() == expected


def test_javareedsolomon_published_example() -> None:
    """The one example with numbers in JavaReedSolomon's own tests: ReedSolomonTest.testOneEncode."""
    data = np.array([[0, 1], [4, 5], [2, 3], [6, 7], [8, 9]], np.uint8)
    parity = Codec.preset("backblaze", 5, 5).encode(data)
    assert parity.tolist() == [[12, 13], [10, 11], [14, 15], [90, 91], [94, 95]]


def test_byte_wise_codes_take_any_length() -> None:
    data = filled(6, 4096)
    whole = Codec.preset("klauspost", 6, 3).encode(data)
    for length in (0, 1, 2, 63, 65, 1000):
        part = Codec.preset("klauspost", 6, 3).encode(data[:, :length])
        assert np.array_equal(part, whole[:, :length])


def test_packet_size_moves_bytes_and_changes_none_of_the_symbols() -> None:
    """One packet of 8 · 64 bytes is 64 packets of 8: the same bits, elsewhere."""
    data = filled(4, 8 * 512)
    fine = Codec.preset("jerasure-cauchy-good", 4, 2, packet_bytes=8).encode(data)
    shuffled = data.reshape(4, 64, 8, 8).transpose(0, 2, 1, 3).reshape(4, -1)
    coarse = Codec.preset("jerasure-cauchy-good", 4, 2, packet_bytes=512).encode(np.ascontiguousarray(shuffled))
    assert np.array_equal(coarse, fine.reshape(2, 64, 8, 8).transpose(0, 2, 1, 3).reshape(2, -1))


def test_liber8tion_is_no_field_code() -> None:
    """Its squares are no multiplications in GF(2^8): bit matrices are needed."""
    codec = Codec.preset("jerasure-liber8tion", 8, 2, packet_bytes=8)
    assert codec.parity.shape == (16, 64)
    assert codec.field.w == 1
    good = Codec.preset("jerasure-cauchy-good", 8, 2, packet_bytes=8)
    assert codec.parity.values[8:].sum() == 71 < expand(good.parity)[8:].sum()
