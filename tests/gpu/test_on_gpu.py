"""Products and verbs on the GPU of this machine, against the oracle. Skipped, with the reason, where there is none."""

import pytest

from bench.gpu_checks import check, check_baseline, check_verbs
from bench.gpu_machine import CupyMachine, decode_product, encode_product
from gfcode.engine.registry import get_engine
from gfcode.errors import EngineUnavailableError
from gfcode.kernels.cuda.engine import CudaEngine, KernelName
from gfcode.params import Layout

pytestmark = pytest.mark.gpu

LAYOUTS = [Layout(name, w) for name in ("packets", "words") for w in (4, 8, 16)]


@pytest.fixture(scope="module")
def machine() -> CupyMachine:
    try:
        engine = get_engine("cuda")
    except EngineUnavailableError as error:
        pytest.skip(str(error))
    assert isinstance(engine, CudaEngine)
    return CupyMachine(engine)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("kernel", ["matrix", "horner", "program"])
def test_products_equal_the_oracle(machine: CupyMachine, kernel: KernelName, layout: Layout) -> None:
    for k, m in ((3, 1), (5, 2), (10, 4), (40, 20)):
        if layout.w == 4 and k + m > 16:
            continue
        for product in (encode_product(k, m, layout), decode_product(k, m, layout, range(min(k, m)))[0]):
            if kernel != "matrix":
                try:
                    machine.engine.prepare(product, kernel)
                except EngineUnavailableError:
                    continue
            assert check(machine, product, kernel)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_verbs_of_codecs_equal_the_oracle(machine: CupyMachine, layout: Layout) -> None:
    assert check_verbs(machine, [layout], 10, 4)


def test_the_librarys_own_matrix_product_agrees(machine: CupyMachine) -> None:
    pytest.importorskip("cupy.cuda.cublas", reason="cuBLAS is not installed", exc_type=ImportError)
    assert check_baseline(machine, encode_product(10, 4, Layout("words", 8)))
