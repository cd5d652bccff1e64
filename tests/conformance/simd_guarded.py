"""Run the simd engine's kernels for one target on blocks between pages that cannot be touched.

    python -m tests.conformance.simd_guarded TARGET

An access outside a block ends the process with a signal; a wrong byte ends it with an error.
"""

import sys

import numpy as np

from gfcode.engine.protocol import Product
from gfcode.gf import GF
from gfcode.kernels.simd import engine as engine_module
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.target import host_variants
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout
from tests.conformance.engines import expected, random_product, strips_around
from tests.conformance.guarded import Region, gives

_LAYOUTS = (Layout("words", 4), Layout("words", 8), Layout("words", 16), Layout("packets", 8), Layout("packets", 16))


def main(target: str) -> None:
    """Run random matrices, powers and sums at both ends of guarded regions, through the caches and past them."""
    rows, columns = 3, 5
    engine = SimdEngine(host_variants()[target])
    longest = max(max(strips_around(layout)) for layout in _LAYOUTS)
    regions = [Region(longest) for _ in range(rows + columns)]
    chance = np.random.default_rng(1)
    checked = 0
    for layout in _LAYOUTS:
        field = GF(layout.w)
        powers = field.pow(field.alpha, np.arange(rows)[:, None] * np.arange(columns))
        products = [
            random_product(chance, layout, rows, columns),
            Product(Matrix(field, powers), layout),
            Product(Matrix(field, powers[:2]), layout),
            Product(Matrix(field, np.ones((rows, columns), np.int64)), layout),
        ]
        for product in products:
            for length in strips_around(layout):
                data = chance.integers(0, 256, (1, columns, length), np.uint8)
                wanted = expected(product, data)[0]
                for at_end, stream_from in ((False, 1 << 60), (True, 1 << 60), (False, 0), (True, 0)):
                    engine_module._STREAM_STRIPE = stream_from
                    if not gives(engine.prepare(product), regions, data[0], wanted, at_end=at_end):
                        sys.exit(f"wrong bytes: {layout}, {length} bytes")
                    checked += 1
    print(f"{checked} products checked")


if __name__ == "__main__":
    main(sys.argv[1])
