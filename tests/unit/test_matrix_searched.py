"""The family `searched`: the catalogue's matrices, as they are for good, over the fields of their own polynomials."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from gfcode import decode_file, encode_file
from gfcode.codec import Codec
from gfcode.errors import ParameterError
from gfcode.gf import GF
from gfcode.matrix import searched
from gfcode.matrix.certificate import certify
from gfcode.matrix.generator import family_field, parity_matrix
from gfcode.xor import catalogue

DIGEST = "d4eb3425fbcdaacf77efe3b38dc750cadd29765258b2844562c2b80b63426870"


def test_they_are_the_catalogues() -> None:
    entries = {entry.key: entry.matrix for entry in catalogue.entries()}
    assert set(searched.codes()) == set(entries)
    for (k, m, w), matrix in entries.items():
        assert parity_matrix("searched", family_field("searched", k, m, w), k, m) == matrix


def test_they_stay_as_they_are() -> None:
    """Parity of a family is the same in every release; better matrices need another name."""
    text = [
        repr((code, searched.polynomial(*code), Codec(*code, matrix="searched").parity.values.tolist()))
        for code in sorted(searched.codes())
    ]
    assert hashlib.sha256("\n".join(text).encode()).hexdigest() == DIGEST


@pytest.mark.parametrize("code", searched.codes())
def test_codecs_take_the_polynomial_along(code: tuple[int, int, int]) -> None:
    codec = Codec(*code, matrix="searched", engine="numpy")
    assert codec.family == "searched"
    assert codec.field.polynomial == searched.polynomial(*code)
    assert codec.certificate == certify(codec.parity)
    assert Codec(*code, matrix="searched", polynomial=codec.field.polynomial).parity == codec.parity


def test_refusals_say_what_there_is() -> None:
    with pytest.raises(
        ParameterError, match=r"k = 9, m = 4, w = 8; there is one for \(4,2\) .*\(20,4\) over GF\(2\^8\)"
    ):
        Codec(9, 4, matrix="searched")
    with pytest.raises(ParameterError, match="w = 16; there is one for w = 4 and 8 only"):
        Codec(10, 4, 16, matrix="searched")
    with pytest.raises(ParameterError, match="polynomial 0x187, not 0x11d"):
        Codec(10, 4, matrix="searched", polynomial=0x11D)
    with pytest.raises(ParameterError, match="polynomial 0x187, not 0x11d"):
        parity_matrix("searched", GF(8), 10, 4)


def test_sets_are_read_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "data"
    source.write_bytes(np.random.default_rng(1).bytes(100_000))
    encode_file(source, k=4, m=2, matrix="searched", out=tmp_path)
    shards = sorted(tmp_path.glob("data.*.gfs"))
    for shard in shards[:2]:
        shard.unlink()
    before = source.read_bytes()
    source.unlink()
    monkeypatch.setattr(searched, "_kept", lambda: pytest.fail("the kept matrices were asked for"))
    decode_file(shards[2:], tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == before
