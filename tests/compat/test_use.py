"""The driver in use: the page's example, threads, every engine."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gfcode.compat.pyeclib import ECDriver
from gfcode.engine.registry import ENVIRONMENT_VARIABLE, status
from tests.compat.shapes import SHAPES, options

PAGE = Path(__file__).parents[2] / "docs" / "pyeclib.md"


def test_the_example_of_the_page() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})  # noqa: S102 - the page is ours


def test_the_page_lists_every_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [ec_type for ec_type in SHAPES if f"| `{ec_type}`" not in page] == []


def test_many_threads_share_a_driver() -> None:
    driver = ECDriver(ec_type="isa_l_rs_vand", k=5, m=3, chksum_type="inline_crc32")

    def work(seed: int) -> bool:
        chosen = random.Random(seed)
        data = chosen.randbytes(chosen.randrange(20_000))
        fragments = driver.encode(data)
        lost = chosen.sample(range(8), 3)
        left = [fragment for i, fragment in enumerate(fragments) if i not in lost]
        chosen.shuffle(left)
        return driver.decode(left) == data and driver.reconstruct(left, lost) == [fragments[i] for i in sorted(lost)]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(400)))


@pytest.mark.parametrize("engine", [engine.name for engine in status() if engine.usable and engine.name != "cuda"])
@pytest.mark.parametrize("ec_type", sorted(SHAPES))
def test_every_engine_makes_the_same_bytes(ec_type: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    k, m = SHAPES[ec_type][1]
    data = random.Random(7).randbytes(9001)
    expected = ECDriver(**options(ec_type, k, m)).encode(data)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, engine)
    driver = ECDriver(**options(ec_type, k, m))
    assert driver.encode(data) == expected
    assert driver.decode(expected[1:]) == data
    assert driver.reconstruct(expected[1:], [0]) == expected[:1]
