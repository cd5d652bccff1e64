"""What a GPU makes against the oracle, before anything is timed. Each check raises SystemExit if a byte differs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.gpu_machine import Machine, wanted
from gfcode.codec import Codec
from gfcode.engine.protocol import Product
from gfcode.kernels.cuda.engine import KernelName
from gfcode.kernels.cuda.matmul import multiply_bits
from gfcode.params import Layout

__all__ = ["check", "check_baseline", "check_verbs"]


def check(machine: Machine, product: Product, kernel: KernelName) -> int:
    """Compare a kernel with the oracle on ragged blocks, or raise; return how often.

    Raises
    ------
    GFCodeError
        If the kernel cannot run the product.
    SystemExit
        If a byte differs.
    """
    operator = machine.engine.prepare(product, kernel)
    rng = np.random.default_rng(1)
    unit = product.layout.strip_bytes
    rows, columns = product.matrix.shape
    if product.layout.name == "packets":
        shapes = [(3, unit), (2, 5 * unit), (1, 41 * unit)]
    else:
        shapes = [(3, 16), (2, 16 * 129), (1, 16 * 257)]
        if kernel != "program":  # unaligned blocks have kernels of their own, which take programs long to compile
            shapes += [(3, unit), (2, 129 * unit), (1, 4099 * unit)]
    for stripes, length in shapes:
        data = rng.integers(0, 256, (stripes, columns, length), dtype=np.uint8)
        source, target = machine.array(*data.shape), machine.array(stripes, rows, length)
        machine.put(source, data)
        operator.apply_device(source, target)
        if not np.array_equal(machine.get(target), wanted(product, data)):
            raise SystemExit(f"WRONG BYTES: {kernel} {product.layout} {product.matrix} length {length}")
    return len(shapes)


def check_baseline(machine: Machine, product: Product) -> int:
    """Compare the library's matrix product, which shares no code with the kernels, with the oracle, once."""
    data = np.random.default_rng(5).integers(0, 256, (2, product.matrix.shape[1], 1024), dtype=np.uint8)
    data = data[..., : 1024 // product.layout.strip_bytes * product.layout.strip_bytes]
    source = machine.array(*data.shape)
    machine.put(source, data)
    if not np.array_equal(machine.get(multiply_bits(machine.xp, product, source)), wanted(product, data)):
        raise SystemExit(f"WRONG BYTES: plain matmul {product.layout} {product.matrix}")
    return 1


def check_verbs(machine: Machine, layouts: Sequence[Layout], k: int, m: int) -> int:
    """Give every verb of a codec arrays of the GPU, and compare with the oracle on the host; return how often."""
    for layout in layouts:
        codec: Any = Codec(k, m, w=layout.w, layout=layout.name, packet_bytes=layout.packet_bytes, engine="numpy")
        length = (5 if layout.name == "packets" else 777) * layout.strip_bytes
        data = np.random.default_rng(6).integers(0, 256, (3, k, length), dtype=np.uint8)
        whole = np.concatenate([data, codec.encode(data)], axis=1)
        shards = machine.array(*whole.shape)
        machine.put(shards, whole)
        lost = sorted({0, k, k - 1, k + m - 1})[:m]  # data and parity
        left = {i: shards[:, i] for i in range(k + m) if i not in lost}
        parity = codec.encode(shards[:, :k])
        rebuilt = codec.reconstruct(left, lost)
        pairs = [(parity, whole[:, k:]), (codec.decode(left), data), *((rebuilt[i], whole[:, i]) for i in lost)]
        if not all(np.array_equal(machine.get(made), expected) for made, expected in pairs):
            raise SystemExit(f"WRONG BYTES: a codec's verbs, {layout.name}")
        codec.update(parity, 2, shards[:, 2], shards[:, 1])
        data[:, 2] = data[:, 1]
        changed = codec.encode(data)
        good = codec.verify({i: shards[:, i] for i in range(k + m)})
        whole[1, 3, 5] ^= 1
        machine.put(shards, whole)
        bad = codec.verify({i: shards[:, i] for i in range(k + m)})
        if not np.array_equal(machine.get(parity), changed) or not good or bad or bad.wrong_in != {1: (3,)}:
            raise SystemExit(f"WRONG ANSWER: update or verify of a codec, {layout.name}")
    return 6 * len(layouts)
