"""The code on the page about GPUs runs as it stands, on the device of the tests, with fewer and shorter stripes."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.engine import registry
from gfcode.kernels.cuda.engine import CudaEngine
from tests.docs.fences import ROOT, fences
from tests.gpu import shim
from tests.gpu.harness import random_bytes
from tests.gpu.shim import ShimDevice

pytestmark = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")

STRIPES, LENGTH = 3, 1024
PAGE = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
BLOCKS = [block.text for block in fences(PAGE) if block.language == "text"]


def test_code_of_the_page(
    device: ShimDevice, engine: CudaEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(text: str, names: dict[str, Any]) -> dict[str, Any]:
        (tmp_path / "page.py").write_text(text, encoding="utf-8")
        return runpy.run_path(str(tmp_path / "page.py"), names)

    arrays, grouped = BLOCKS
    monkeypatch.setitem(registry._loaded, "cuda", engine)
    data, new = random_bytes(STRIPES, 10, LENGTH), random_bytes(STRIPES, LENGTH)

    def randint(low: int, high: int, shape: tuple[int, ...], dtype: type) -> Any:
        assert (low, high, shape, dtype) == (0, 256, data.shape, np.uint8)
        return device.device_array(data)

    cupy = SimpleNamespace(random=SimpleNamespace(randint=randint), uint8=np.uint8)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert "(1000, 10, 65_024)" in arrays
    names = run(arrays.replace("(1000, 10, 65_024)", str(data.shape)), {"new": device.device_array(new)})
    found = names["found"]
    device.finish(0)
    for shard in (0, 1):
        assert np.array_equal(found[shard].array, data[:, shard])
    oracle = Codec(10, 4, engine="numpy")
    data[:, 3] = new
    parity = oracle.encode(data)
    assert np.array_equal(names["parity"].array, parity)

    whole = np.concatenate([data, parity], axis=1)
    patterns = [(0, 3, 9, 12), (1, 2, 10, 13), (4, 5, 6, 7)]
    damaged = whole.copy()
    for stripe, lost in enumerate(patterns):
        damaged[stripe, list(lost)] = 0
    shards = device.device_array(damaged)
    launches = len(device.launches)
    given = {"codec": names["codec"], "patterns": patterns, "shards": shards, "which": list(range(STRIPES))}
    run(grouped, given)
    device.finish(0)
    assert len(device.launches) == launches + 1
    assert np.array_equal(shards.array, whole)
