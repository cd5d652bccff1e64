"""The baseline by plain matrix products, with NumPy in CuPy's place."""

import numpy as np
import pytest

from gfcode.engine.protocol import Product
from gfcode.kernels.cuda.matmul import multiply_bits
from tests.gpu.harness import layout_of, oracle, random_matrix


@pytest.mark.parametrize("w", [4, 8, 16])
@pytest.mark.parametrize("layout", ["packets", "words"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_baseline_equals_the_oracle(layout: str, w: int, dtype: str) -> None:
    rng = np.random.default_rng(w)
    product = Product(random_matrix(rng, w, 3, 7), layout_of(layout, w, 24))
    length = 3 * product.layout.strip_bytes if layout == "packets" else 50
    data = rng.integers(0, 256, (2, 7, length), dtype=np.uint8)
    assert np.array_equal(multiply_bits(np, product, data, dtype), oracle(product, data))


def test_numbers_too_small_to_count_are_refused() -> None:
    product = Product(random_matrix(np.random.default_rng(1), 16, 2, 130), layout_of("words", 16))
    with pytest.raises(ValueError, match="float16 cannot count 2080 ones; use float32"):
        multiply_bits(np, product, np.zeros((1, 130, 2), np.uint8))
