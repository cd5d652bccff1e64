"""What the shim takes for the operand layouts of MMA, checked against a second source, and what it finds if they break.

The second source are the thread-value layouts of CuTe's traits for SM80 atoms (shape : stride, columns first), with
A and B as m + M·k and n + N·k, and C as m + 16·n.
"""

import ctypes
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from gfcode.engine.protocol import Product
from gfcode.errors import DeviceError
from gfcode.gf import GF
from gfcode.kernels.cuda.work import Work
from gfcode.matrix.dense import Matrix
from tests.gpu.harness import Bench, Place, layout_of, random_matrix
from tests.gpu.shim import HostKernel, compile_host

PLACE = Place(gap=256)


@pytest.fixture(scope="module")
def kernel(benches: dict[int, Bench]) -> HostKernel:
    bench = benches[90]
    rng = np.random.default_rng(0)
    bench.check(Product(random_matrix(rng, 8, 4, 10), layout_of("words", 8)), "matrix", [(1, 128)], PLACE, rng)
    return bench.device.kernels[-1]


class Probe(ctypes.Structure):
    _fields_ = (("op", ctypes.c_int), ("registers", ctypes.c_void_p), ("d", ctypes.c_void_p))


# op, K, bits of an element, and for A and for B: shape and strides of a lane's values, strides of lanes (t, g).
ATOMS = {
    "m16n8k32 u8": (0, 32, 8, ((4, 2, 2), (16, 8, 256), (64, 1)), ((4, 2), (8, 128), (32, 1))),
    "m16n8k128 b1": (1, 128, 1, ((32, 2), (16, 8), (512, 1)), ((32,), (8,), (256, 1))),
    "m16n8k256 b1": (2, 256, 1, ((32, 2, 2), (16, 8, 2048), (512, 1)), ((32, 2), (8, 1024), (256, 1))),
}


@pytest.mark.parametrize("atom", ATOMS)
def test_shim_multiplies_as_the_hardware_lays_operands_out(kernel: HostKernel, atom: str) -> None:
    op, depth, bits, a_layout, b_layout = ATOMS[atom]
    rng = np.random.default_rng(op)
    a = rng.integers(0, 1 << bits, (16, depth))
    b = rng.integers(0, 1 << bits, (depth, 8))
    c = rng.integers(0, 1000, (16, 8))
    registers = np.zeros((32, 10), np.uint32)

    def put(
        first: int,
        rows: int,
        layout: tuple[tuple[int, ...], tuple[int, ...], tuple[int, int]],
        element: Callable[[int, int], int],
    ) -> None:
        shape, strides, lanes = layout
        for lane in range(32):
            t, g = lane & 3, lane >> 2
            for value, place in enumerate(itertools.product(*(range(size) for size in reversed(shape)))):
                index = t * lanes[0] + g * lanes[1] + int(np.dot(place[::-1], strides))
                bit = value * bits
                registers[lane, first + bit // 32] |= np.uint32(element(index % rows, index // rows) << bit % 32)

    put(0, 16, a_layout, lambda m, k: int(a[m, k]))
    put(4, 8, b_layout, lambda n, k: int(b[k, n]))
    where = [
        [((lane >> 2) + 8 * (r >> 1), 2 * (lane & 3) + (r & 1)) for r in range(4)]  # m, n: (4,8),(2,2):(32,1),(16,8)
        for lane in range(32)
    ]
    for lane in range(32):
        for r in range(4):
            registers[lane, 6 + r] = c[where[lane][r]]
    d = np.zeros((32, 4), np.uint32)
    assert kernel.library.shim_probe(ctypes.byref(Probe(op, registers.ctypes.data, d.ctypes.data))) == 0
    wanted = a @ b + c
    assert [[int(d[lane, r]) for r in range(4)] for lane in range(32)] == [
        [int(wanted[place]) for place in row] for row in where
    ]


@pytest.mark.parametrize("device", [90, 100])
@pytest.mark.parametrize("mutant", [1, 2, 3, 4, 5])
def test_a_broken_operand_layout_is_noticed(benches: dict[int, Bench], device: int, mutant: int) -> None:
    """Registers, lanes, K halves, or columns or rows of the result exchanged: the kernel's bytes are wrong."""
    bench = benches[device]
    rng = np.random.default_rng(mutant)
    for k in (10, 20):  # both depths of one-bit MMA
        product = Product(random_matrix(rng, 8, 4, k), layout_of("words", 8))
        bench.check(product, "matrix", [(1, 128)], PLACE, rng)
        kernels = bench.device.kernels
        for kernel in kernels:
            kernel.set("shim_mutant", mutant)
        try:
            with pytest.raises(AssertionError):
                bench.check(product, "matrix", [(1, 128)], PLACE, rng)
        finally:
            for kernel in kernels:
                kernel.set("shim_mutant", 0)


# One line of a source broken; where, what, and what then is wrong.
BROKEN = {
    "byte transpose": ("transpose.cuh", "low, a[2], 0x4410", "low, a[2], 0x4401"),
    "field width": ("operands_b1.cuh", "acc[i] << 8", "acc[i] << 7"),
    "bit merge": ("operands_b1.cuh", "0x03030303u, pair[0]", "0x01010101u, pair[0]"),
    "tail store": ("memory.cuh", "if (i < n) p[i]", "if (i <= n) p[i]"),
    "next tile": ("work.cuh", "tile -= k.tiles;", "tile = 0;"),
    "matrix of a stripe": ("bitmatmul.cu", "__ldg(k.which + at.walk.stripe)", "__ldg(k.which)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_line_is_noticed(benches: dict[int, Bench], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    bench = benches[90]
    source, text, other = BROKEN[name]

    def run() -> None:
        rng = np.random.default_rng(7)
        field = GF(8)
        matrices = [Matrix(field, rng.integers(1, 256, (4, 10)).astype(np.uint8)) for _ in range(2)]
        layout = layout_of("words", 8)
        bench.check(Product(matrices[0], layout), "matrix", [(30, 300)], Place(gap=1, offset=1), rng)
        grouped = bench.engine.prepare_grouped(matrices, layout)
        data = rng.integers(0, 256, (2, 10, 64), dtype=np.uint8)
        out = bench.device.device_array(np.zeros((2, 4, 64), np.uint8))
        grouped.apply_device(bench.device.device_array(data), out, [0, 1])
        bench.device.finish(0)
        one = bench.device.device_array(np.zeros((1, 4, 64), np.uint8))
        bench.engine.prepare(Product(matrices[1], layout), "matrix").apply_device(
            bench.device.device_array(data[1:]), one
        )
        bench.device.finish(0)
        assert np.array_equal(out.array[1:], one.array)

    def altered(file: str, content: str) -> str:
        if file != source:
            return content
        assert text in content
        return content.replace(text, other)

    run()
    with monkeypatch.context() as patch:
        patch.setattr(bench.engine._context, "_kernels", {})
        patch.setattr(bench.engine._context._cache, "load", lambda _key: None)
        patch.setattr(bench.engine._context._cache, "store", lambda _key, _payload: None)
        patch.setattr(bench.device, "compile", lambda build: compile_host(build, altered))
        with pytest.raises(AssertionError):
            run()


def test_diverging_lanes_are_noticed(benches: dict[int, Bench]) -> None:
    """A lane that leaves before a matrix product would hang a GPU; the shim says so."""
    bench = benches[90]
    rng = np.random.default_rng(9)
    product = Product(random_matrix(rng, 8, 4, 10), layout_of("words", 8))
    bench.check(product, "matrix", [(1, 128)], PLACE, rng)
    build = bench.device.launches[-1][0].build

    def altered(file: str, content: str) -> str:
        line = "  Cursor at(k);\n"
        return content.replace(line, "  if (threadIdx.x == 3) return;\n" + line) if file == "bitmatmul.cu" else content

    data, matrix = np.zeros(4096, np.uint8), np.zeros(1 << 16, np.uint8)
    work = Work(data.ctypes.data, data.ctypes.data, length=128, piece=128, matrix=matrix.ctypes.data, c=10, r=4)
    work.stripes = work.tiles = work.whole_tiles = 1
    with pytest.raises(DeviceError, match="some lanes wait for a collective that others never reach"):
        HostKernel(compile_host(build, altered)).run(work, 1, 32, 0)


def test_work_has_the_compilers_layout(kernel: HostKernel) -> None:
    assert kernel.library.shim_work_bytes() == ctypes.sizeof(Work)
