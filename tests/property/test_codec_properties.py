"""What holds for every codec: any loss up to m is undone, products are linear, and blocks are rows of strips."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gfcode.codec import Codec
from gfcode.engine.registry import get_engine, status
from gfcode.errors import EngineUnavailableError, NotMDSError, ParameterError
from gfcode.params import Layout

Bytes = npt.NDArray[np.uint8]
ENGINES = [engine.name for engine in status() if engine.usable]
MATRICES = ["auto", "powers", "vandermonde", "cauchy", "cauchy-good"]

pytestmark = pytest.mark.filterwarnings("error")
quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Case:
    """A codec, random data for it, and a loss of at most m shards."""

    codec: Codec
    data: Bytes
    lost: list[int]

    @property
    def shards(self) -> dict[int, Bytes]:
        blocks = np.concatenate([self.data, self.codec.encode(self.data)], axis=-2)
        return {i: blocks[..., i, :] for i in range(self.codec.n)}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    words = draw(st.booleans())
    w = draw(st.sampled_from([4, 8, 16, 32]) if words else st.sampled_from([*range(1, 17), 32]))
    packet_bytes = draw(st.sampled_from([8, 16, 64, 72, 256]))
    layout = Layout("words", w) if words else Layout("packets", w, packet_bytes)
    k, m = draw(st.integers(1, 9)), draw(st.integers(0, 5))
    assume(m <= 1 or k == 1 or k + m <= 2**w)
    engine = draw(st.sampled_from(ENGINES))
    try:
        codec = Codec(
            k,
            m,
            w,
            draw(st.sampled_from(MATRICES)),
            layout.name,
            packet_bytes=packet_bytes,
            engine=engine,
        )
        codec.encoder()
    except (NotMDSError, EngineUnavailableError):
        assume(False)
    except ParameterError as error:
        if "too many for matrix" not in str(error):  # a family with less room than the field
            raise
        assume(False)
    strips = draw(st.integers(0, 300) if words else st.integers(0, 6))
    stripes = draw(st.sampled_from([None, 1, 2, 3]))
    shape = (*(() if stripes is None else (stripes,)), k, strips * codec.block_multiple)
    data = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 256, shape, dtype=np.uint8)
    lost = draw(st.lists(st.integers(0, k + m - 1), max_size=m, unique=True))
    return Case(codec, data, lost)


@quick
@given(cases())
def test_any_loss_of_up_to_m_shards_is_undone(case: Case) -> None:
    shards = case.shards
    kept = {i: block for i, block in shards.items() if i not in case.lost}
    assert (case.codec.decode(kept) == case.data).all()
    rebuilt = case.codec.reconstruct(kept, case.lost)
    assert list(rebuilt) == case.lost
    assert all((rebuilt[i] == shards[i]).all() for i in case.lost)


@quick
@given(cases(), st.integers(0, 2**32))
def test_encoding_is_linear(case: Case, seed: int) -> None:
    other = np.random.default_rng(seed).integers(0, 256, case.data.shape, dtype=np.uint8)
    both = case.codec.encode(case.data) ^ case.codec.encode(other)
    assert (case.codec.encode(case.data ^ other) == both).all()
    assert not case.codec.encode(np.zeros_like(case.data)).any()


@quick
@given(cases(), st.data())
def test_blocks_are_rows_of_strips(case: Case, draw: st.DataObject) -> None:
    length, unit = case.data.shape[-1], case.codec.block_multiple
    cut = draw.draw(st.integers(0, length // unit)) * unit
    parts = [case.codec.encode(part) for part in (case.data[..., :cut], case.data[..., cut:])]
    assert (np.concatenate(parts, axis=-1) == case.codec.encode(case.data)).all()


@quick
@given(cases(), st.data())
def test_updating_a_parity_is_encoding_anew(case: Case, draw: st.DataObject) -> None:
    index = draw.draw(st.integers(0, case.codec.k - 1))
    seed = draw.draw(st.integers(0, 2**32))
    parity = case.codec.encode(case.data)
    changed = case.data.copy()
    changed[..., index, :] = np.random.default_rng(seed).integers(0, 256, changed[..., 0, :].shape, dtype=np.uint8)
    case.codec.update(parity, index, case.data[..., index, :], changed[..., index, :])
    assert (parity == case.codec.encode(changed)).all()


@quick
@given(cases(), st.data())
def test_verify_sees_any_change(case: Case, draw: st.DataObject) -> None:
    assume(case.codec.m > 0 and case.data.size > 0)
    shards = {i: block.copy() for i, block in case.shards.items()}
    assert case.codec.verify(shards)
    wrong = draw.draw(st.integers(0, case.codec.n - 1))
    place = draw.draw(st.integers(0, shards[wrong].size - 1))
    shards[wrong].reshape(-1)[place] ^= draw.draw(st.integers(1, 255))
    assert not case.codec.verify(shards)


@quick
@given(cases())
def test_engines_make_the_same_bytes(case: Case) -> None:
    codec = case.codec
    reference = Codec(
        codec.k, codec.m, codec.w, codec.parity, codec.layout.name,
        packet_bytes=codec.layout.packet_bytes or 64, engine=get_engine("numpy"),
    )  # fmt: skip
    assert (codec.encode(case.data) == reference.encode(case.data)).all()
