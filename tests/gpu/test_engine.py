"""The engine as callers have it: device arrays and streams, host blocks streamed through, failures."""

from types import SimpleNamespace

import numpy as np
import pytest

from gfcode.engine.arrays import is_device_array
from gfcode.engine.protocol import Blocks, Engine, Product
from gfcode.errors import BlockError, EngineUnavailableError, ParameterError
from gfcode.gf import GF
from gfcode.kernels.cuda.batches import Batch
from gfcode.kernels.cuda.blocks import DeviceBlocks
from gfcode.kernels.cuda.engine import CudaEngine
from gfcode.matrix.generator import parity_matrix
from tests.gpu import shim
from tests.gpu.harness import PRODUCT, WORDS, DlpackOnly, layout_of, oracle, random_bytes, random_matrix
from tests.gpu.shim import DeviceArray, ShimDevice

pytestmark = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")


def test_engine_keeps_the_contract(engine: CudaEngine) -> None:
    assert isinstance(engine, Engine)
    assert engine.name == "cuda"
    assert "compute capability 9.0" in engine.detail
    assert engine.refuses(PRODUCT) is None
    odd = Product(parity_matrix("powers", GF(5), 4, 2), layout_of("packets", 5))
    assert engine.refuses(odd) == "the cuda engine has kernels for w = 4, 8, 16, not 5"
    with pytest.raises(EngineUnavailableError, match="not 5"):
        engine.prepare(odd)
    with pytest.raises(ParameterError, match="there is no kernel 'fast'"):
        engine.prepare(PRODUCT, "fast")  # type: ignore[arg-type] # the point of the test


def test_kernels_are_chosen_by_the_matrix(engine: CudaEngine) -> None:
    assert engine.prepare(PRODUCT).kernel == "matrix"
    assert engine.prepare(Product(parity_matrix("powers", GF(8), 10, 4), WORDS)).kernel == "horner"
    assert engine.prepare(PRODUCT, "program").kernel == "program"


# Device arrays


@pytest.mark.parametrize("shape", [(5, 200), (3, 5, 200)])
def test_device_arrays_stay_where_they_are(device: ShimDevice, engine: CudaEngine, shape: tuple[int, ...]) -> None:
    data = random_bytes(*shape)
    source = device.device_array(data)
    target = device.device_array(np.zeros((*shape[:-2], 3, 200), np.uint8))
    operator = engine.prepare(PRODUCT)
    device.copies.clear()
    operator.apply_device(source, target)
    assert not target.array.any(), "nothing waits: the work is only enqueued"
    device.finish(0)
    assert np.array_equal(target.array.reshape(-1, 3, 200), oracle(PRODUCT, data.reshape(-1, 5, 200)))
    assert sum(size for _, size in device.copies) < 4096, "the matrix alone is copied"


def test_the_current_stream_is_used_and_the_producers_is_waited_for(device: ShimDevice, engine: CudaEngine) -> None:
    data = random_bytes(2, 5, 64)
    producer, current = device.new_stream(), device.new_stream()
    source = device.device_array(np.zeros_like(data))
    target = device.device_array(np.zeros((2, 3, 64), np.uint8))
    address = source.array.ctypes.data
    staging = device.pinned_array(*data.shape)
    staging[:] = data
    device.copy(address, staging.ctypes.data, data.nbytes, producer)
    source.stream = producer
    device.current = current
    engine.prepare(PRODUCT).apply_device(source, target)
    assert device.launches[-1][1] == current
    device.finish(current)
    assert np.array_equal(target.array, oracle(PRODUCT, data))
    engine.prepare(PRODUCT).apply_device(source, target, producer)
    assert device.launches[-1][1] == producer


def test_operator_may_go_before_its_work_is_done(device: ShimDevice, engine: CudaEngine) -> None:
    data = random_bytes(1, 5, 64)
    target = device.device_array(np.zeros((1, 3, 64), np.uint8))
    stream = device.new_stream()
    operator = engine.prepare(PRODUCT)
    operator.apply_device(device.device_array(data), target, 0)
    operator.apply_device(device.device_array(data), target, stream)
    del operator
    device.finish(0)
    device.finish(stream)
    assert np.array_equal(target.array, oracle(PRODUCT, data))


def test_strided_and_selected_arrays(device: ShimDevice, engine: CudaEngine) -> None:
    data = random_bytes(4, 9, 100)
    source = device.device_array(data)
    view = DeviceArray(source.array[::2, 1:6, 4:68])
    target = device.device_array(np.zeros((2, 3, 64), np.uint8))
    operator = engine.prepare(PRODUCT)
    operator.apply_device(view, target)
    device.finish(0)
    assert np.array_equal(target.array, oracle(PRODUCT, np.ascontiguousarray(data[::2, 1:6, 4:68])))
    taken = DeviceBlocks.of_array(device, source, 0)
    for columns in ([7, 2, 5, 0, 1], [8, 6, 4, 2, 0], [4]):
        chosen = taken.select(columns)
        assert (chosen.table is None) == (len(columns) < 5 or columns[0] == 8), "equal distances need no table"
        if len(columns) == 5:
            out = device.device_array(np.zeros((4, 3, 100), np.uint8))
            operator.apply_device(chosen, out)
            device.finish(0)
            assert np.array_equal(out.array, oracle(PRODUCT, np.ascontiguousarray(data[:, columns])))
    part = taken.select([7, 2, 5, 0, 1]).select([4, 3, 2, 1, 0]).part(Batch(1, 2, 0, 100))
    out = device.device_array(np.zeros((2, 3, 100), np.uint8))
    operator.apply_device(part, out)
    device.finish(0)
    assert np.array_equal(out.array, oracle(PRODUCT, np.ascontiguousarray(data[1:3][:, [1, 0, 5, 2, 7]])))
    with pytest.raises(BlockError, match="blocks of a stripe are 0 to 8, not 0 to 9"):
        taken.select([0, 9])
    with pytest.raises(BlockError, match=r"an index of blocks has shape \(4, blocks\)"):
        taken.gather(np.zeros((3, 2), np.int64))


def test_blocks_at_equal_distances_need_no_table(device: ShimDevice) -> None:
    whole = device.device_array(random_bytes(3, 7, 40))
    for columns in ([0, 1, 2], [5, 3, 1], [4], [2, 2]):
        taken = DeviceBlocks.of_arrays(device, [whole[:, i] for i in columns], 0)
        assert taken.table is None
        wanted = [[whole.array[s, i].ctypes.data for i in columns] for s in range(3)]
        assert taken.addresses().tolist() == wanted
    irregular = DeviceBlocks.of_arrays(device, [whole[:, i] for i in (0, 1, 3)], 0)
    assert irregular.table is not None
    assert irregular.select([1, 2]).table is None
    assert DeviceBlocks.join([irregular.select([0]), irregular.select([1])]).table is None


def test_blocks_that_are_arrays_of_their_own(device: ShimDevice, engine: CudaEngine) -> None:
    data = random_bytes(2, 5, 80)
    inputs = [device.device_array(data[:, i]) for i in range(5)]
    inputs[3] = DeviceArray(device.device_array(random_bytes(2, 200)).array[:, 7:87])
    inputs[3].array[:] = data[:, 3]
    outputs = tuple(device.device_array(np.zeros((2, 80), np.uint8)) for _ in range(3))
    operator = engine.prepare(PRODUCT)
    operator.apply_device(inputs, outputs)
    device.finish(0)
    assert np.array_equal(np.stack([out.array for out in outputs], axis=1), oracle(PRODUCT, data))
    flat = [DeviceArray(array.array[0]) for array in inputs]
    one = device.device_array(np.zeros((3, 80), np.uint8))
    operator.apply_device(flat, one)
    device.finish(0)
    assert np.array_equal(one.array, oracle(PRODUCT, data)[0])
    with pytest.raises(BlockError, match=r"block 4 has shape \(2, 80\), block 0 \(80,\); they must have the same"):
        operator.apply_device([*flat[:4], inputs[4]], one)
    with pytest.raises(BlockError, match=r"block 0 has shape \(2, 5, 80\), not \(length,\) or \(stripes, length\)"):
        operator.apply_device([device.device_array(data)] * 5, one)
    with pytest.raises(BlockError, match="there are no blocks: give arrays of one shape"):
        operator.apply_device([], one)


#: What libraries say in `__cuda_array_interface__`, as far as it differs.
LIBRARIES: dict[str, dict[str, object]] = {
    "cupy": {"version": 3, "strides": None, "stream": 1, "descr": [("", "|u1")]},
    "torch": {"version": 2, "strides": None},
    "numba": {"version": 3, "strides": (192, 1), "stream": None},
    "jax": {"version": 2, "strides": None, "data": "read-only"},
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of_every_library_are_taken(device: ShimDevice, engine: CudaEngine, library: str) -> None:
    data = random_bytes(5, 192)
    memory = device.device_array(data)
    said = dict(LIBRARIES[library])
    read_only = said.pop("data", None) == "read-only"  # its arrays are never written
    place = (memory.array.ctypes.data, read_only)
    array = SimpleNamespace(
        __cuda_array_interface__={"shape": (5, 192), "typestr": "|u1", "data": place, **said}, memory=memory
    )
    target = device.device_array(np.zeros((3, 192), np.uint8))
    engine.prepare(PRODUCT).apply_device(array, target)
    device.finish(0)
    assert np.array_equal(target.array, oracle(PRODUCT, data[None])[0])
    if read_only:
        with pytest.raises(BlockError, match="output blocks are read-only"):
            engine.prepare(PRODUCT).apply_device(target, array)


def test_dlpack_is_taken(device: ShimDevice, engine: CudaEngine) -> None:
    data = random_bytes(5, 64)
    source = DlpackOnly(device.device_array(data).array)
    target = device.device_array(np.zeros((3, 64), np.uint8))
    engine.prepare(PRODUCT).apply_device(source, target)
    device.finish(0)
    assert np.array_equal(target.array, oracle(PRODUCT, data[None])[0])


def test_where_an_array_lives() -> None:
    assert is_device_array(DeviceArray(random_bytes(2, 2)))
    assert is_device_array(DlpackOnly(random_bytes(2, 2)))
    assert not is_device_array(DlpackOnly(random_bytes(2, 2), 1))
    assert not is_device_array(random_bytes(2, 2))
    assert not is_device_array([[1]])


def test_wrong_arrays_are_refused(device: ShimDevice, engine: CudaEngine) -> None:
    operator = engine.prepare(PRODUCT)
    good, out = device.device_array(random_bytes(2, 5, 64)), device.device_array(np.zeros((2, 3, 64), np.uint8))
    read_only = DeviceArray(out.array.view())
    read_only.array.flags.writeable = False
    cases = [
        ([1, 2, 3, 4, 5], out, "int is no array in device memory"),
        (random_bytes(2, 5, 64), out, "ndarray is no array in device memory"),
        (device.device_array(random_bytes(2, 4, 64)), out, "takes 5 input blocks a stripe, not 4"),
        (good, device.device_array(np.zeros((1, 3, 64), np.uint8)), "in each of 2 stripes, not 3 in 1"),
        (good, device.device_array(np.zeros((2, 3, 32), np.uint8)), "output blocks have 32 bytes, input blocks 64"),
        (device.device_array(np.zeros((2, 5, 64), np.uint16)), out, "must be arrays of uint8, not of <u2"),
        (device.device_array(np.zeros(64, np.uint8)), out, r"must be uint8 .* shape \(64,\)"),
        (DeviceArray(good.array[:, :, ::2]), out, "bytes of each block must be contiguous"),
        (good, read_only, "output blocks are read-only"),
    ]
    for source, target, message in cases:
        with pytest.raises(BlockError, match=message):
            operator.apply_device(source, target)
    packets = engine.prepare(Product(PRODUCT.matrix, layout_of("packets", 8)))
    with pytest.raises(BlockError, match="blocks of 64 bytes are no whole number of strips of 512"):
        packets.apply_device(good, out)
    device.number = 1
    with pytest.raises(BlockError, match="blocks are on device 0, but the engine runs on device 1"):
        operator.apply_device(good, out)
    assert device.launches == []


def test_empty_blocks_need_no_launch(device: ShimDevice, engine: CudaEngine) -> None:
    empty, out = device.device_array(np.zeros((2, 5, 0), np.uint8)), device.device_array(np.zeros((2, 3, 0), np.uint8))
    engine.prepare(PRODUCT).apply_device(empty, out)
    engine.prepare(PRODUCT)(
        Blocks.of_array(np.zeros((0, 5, 8), np.uint8)), Blocks.of_array(np.zeros((0, 3, 8), np.uint8))
    )
    assert device.launches == []


# Grouped products that are wrong


def test_wrong_groups_are_refused(device: ShimDevice, engine: CudaEngine) -> None:
    rng = np.random.default_rng(6)
    one = random_matrix(rng, 8, 3, 5)
    with pytest.raises(ParameterError, match="at least one matrix"):
        engine.prepare_grouped([], WORDS)
    with pytest.raises(ParameterError, match="one shape and one field"):
        engine.prepare_grouped([one, random_matrix(rng, 8, 3, 6)], WORDS)
    with pytest.raises(ParameterError, match=r"sources are integers of shape \(1, 5\)"):
        engine.prepare_grouped([one], WORDS, sources=[[0, 1, 2]])
    with pytest.raises(EngineUnavailableError, match="not 5"):
        engine.prepare_grouped([parity_matrix("powers", GF(5), 4, 2)], layout_of("packets", 5))
    operator = engine.prepare_grouped([one, one], WORDS)
    data, out = device.device_array(random_bytes(3, 5, 64)), device.device_array(np.zeros((3, 3, 64), np.uint8))
    with pytest.raises(BlockError, match="matrix numbers are 0 to 1, not 0 to 2"):
        operator.apply_device(data, out, [0, 1, 2])
    with pytest.raises(BlockError, match="matrix numbers are 0 to 1, not -1 to 1"):
        operator.apply_device(data, out, [0, 1, -1])
    with pytest.raises(BlockError, match="3 stripes need as many matrix numbers"):
        operator.apply_device(data, out, [0, 1])
    with pytest.raises(BlockError, match="3 stripes need as many matrix numbers, not float64"):
        operator.apply_device(data, out, np.zeros(3))  # type: ignore[arg-type] # the point of the test
