"""Codecs given arrays in device memory: the work goes where the data is."""

import itertools
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.engine import registry
from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.engine import CudaEngine
from tests.gpu import shim
from tests.gpu.harness import Bytes
from tests.gpu.shim import DeviceArray, ShimDevice

pytestmark = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")


class Sliceable(DeviceArray):
    """A device array that can be sliced, as CuPy's can."""

    def __getitem__(self, key: Any) -> "Sliceable":
        return Sliceable(self.array[key])


class SliceableDevice(ShimDevice):
    def new_array(self, shape: tuple[int, ...]) -> object:
        return Sliceable(self.device_array(np.zeros(shape, np.uint8)).array)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> ShimDevice:
    device = SliceableDevice(90)
    monkeypatch.setitem(registry._loaded, "cuda", CudaEngine(Context(device)))
    return device


def data_of(*shape: int) -> Bytes:
    return np.random.default_rng(shape).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("shape", [(4, 1024), (3, 4, 1024)])
def test_encode_stays_on_the_device(device: ShimDevice, shape: tuple[int, ...]) -> None:
    codec = Codec(4, 2, engine="numpy")
    data = data_of(*shape)
    parity: Any = codec.encode(device.device_array(data))  # type: ignore[call-overload] # any device array
    device.finish(0)
    assert np.array_equal(parity.array, codec.encode(data))
    out = device.device_array(np.zeros_like(parity.array))
    assert codec.encode(device.device_array(data), out) is out  # type: ignore[call-overload] # any device array
    device.finish(0)
    assert np.array_equal(out.array, codec.encode(data))


@pytest.mark.parametrize("stripes", [None, 2])
def test_every_loss_is_rebuilt_on_the_device(device: ShimDevice, stripes: int | None) -> None:
    codec = Codec(3, 2, layout="words", engine="numpy")
    lead = () if stripes is None else (stripes,)
    data = data_of(*lead, 3, 77)
    whole = np.concatenate([data, codec.encode(data)], axis=-2)
    shards = [device.device_array(whole[..., i, :]) for i in range(5)]
    for lost in itertools.combinations(range(5), 2):
        left = {i: shard for i, shard in enumerate(shards) if i not in lost}
        found: Any = codec.reconstruct(left, [*lost, next(iter(left))])  # type: ignore[arg-type] # device arrays
        device.finish(0)
        assert list(found) == [*lost, next(iter(left))]
        assert found[next(iter(left))] is shards[next(iter(left))]
        for shard in lost:
            assert np.array_equal(found[shard].array, whole[..., shard, :])


@pytest.mark.parametrize("layout", ["packets", "words"])
def test_codecs_run_on_the_engine_from_host_memory(device: ShimDevice, layout: str) -> None:
    codec, plain = (Codec(5, 3, layout=layout, engine=engine) for engine in ("cuda", "numpy"))  # type: ignore[arg-type]
    data = data_of(2, 5, 1024)
    parity = codec.encode(data)
    assert np.array_equal(parity, plain.encode(data))
    whole = dict(enumerate(np.concatenate([data, parity], axis=1).swapaxes(0, 1)))
    for lost in ((0, 1, 2), (1, 4, 7), (5, 6, 7), (0, 6)):
        left = {i: block for i, block in whole.items() if i not in lost}
        assert np.array_equal(codec.decode(left), data)
        for shard, block in codec.reconstruct(left, lost).items():
            assert np.array_equal(block, whole[shard])
    assert codec.verify(whole).consistent
    new = data_of(2, 1024)
    codec.update(parity, 3, data[:, 3], new)
    data[:, 3] = new
    assert np.array_equal(parity, plain.encode(data))
    assert device.launches


def test_shards_of_two_places_are_refused(device: ShimDevice) -> None:
    codec = Codec(2, 1, layout="words", engine="numpy")
    with pytest.raises(BlockError, match="shard 1 is not in device memory, as others are"):
        codec.reconstruct({0: device.device_array(data_of(8)), 1: data_of(8)}, [2])  # type: ignore[dict-item]


def test_without_the_engine_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = EngineUnavailableError("cupy is not installed: pip install 'gfcode[cuda]'")
    monkeypatch.setitem(registry._loaded, "cuda", reason)
    with pytest.raises(EngineUnavailableError, match="engine 'cuda' cannot be used here: cupy is not installed"):
        Codec(2, 1, layout="words").encode(DeviceArray(data_of(2, 8)))  # type: ignore[call-overload]
