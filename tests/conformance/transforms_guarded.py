"""Run the simd engine's transforms for one target on blocks between pages that cannot be touched.

    python -m tests.conformance.transforms_guarded TARGET

An access outside a block ends the process with a signal; a wrong byte ends it with an error.
"""

import sys

import numpy as np

from gfcode.engine.protocol import Product
from gfcode.gf import GF
from gfcode.kernels.simd import fft_operator
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.fft_operator import FftOperator
from gfcode.kernels.simd.target import host_variants
from gfcode.matrix.transformed import Decoding, Parity
from gfcode.params import Layout
from tests.conformance.engines import expected
from tests.conformance.guarded import Region, gives

_LENGTHS = (2, 18, 34, 64, 66, 254, 258, 578)


def main(target: str) -> None:
    """Encode and decode at both ends of guarded regions, through the caches and past them."""
    k, m = 13, 7
    engine = SimdEngine(host_variants()[target])
    regions = [Region(max(_LENGTHS)) for _ in range(k + m)]
    chance = np.random.default_rng(1)
    checked = 0
    for w in (8, 16):
        code, layout = Parity(GF(w), k, m), Layout("words", w)
        for matrix in (code, Decoding(code, range(m, k + m), range(m))):
            product = Product(matrix, layout)
            operator = FftOperator(engine, product)
            for length in _LENGTHS:
                data = chance.integers(0, 256, (1, k, length), np.uint8)
                wanted = expected(product, data)[0]
                for at_end, stream_from in ((False, 1 << 60), (True, 1 << 60), (False, 0), (True, 0)):
                    fft_operator._STREAM_STRIPE = stream_from
                    if not gives(operator, regions, data[0], wanted, at_end=at_end):
                        sys.exit(f"wrong bytes: w = {w}, {length} bytes")
                    checked += 1
    print(f"{checked} products checked")


if __name__ == "__main__":
    main(sys.argv[1])
