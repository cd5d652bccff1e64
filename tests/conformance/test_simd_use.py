"""The simd engine in use: many threads on one codec, no byte outside the blocks at any vector width."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.kernels.simd.target import host, host_variants
from gfcode.params import LayoutName

pytestmark = pytest.mark.skipif(host() is None, reason="no SIMD kernels for this CPU")


@pytest.mark.parametrize("layout", ["packets", "words"])
def test_eight_threads_decode_what_they_like(layout: LayoutName) -> None:
    """Eight threads, a thousand decodes each, of random losses on one codec."""
    codec = Codec(10, 4, layout=layout, engine="simd")
    data = np.random.default_rng(1).integers(0, 256, (10, 1024), np.uint8)
    shards = [*data, *codec.encode(data)]
    wrong: list[str] = []

    def work(seed: int) -> None:
        chance = np.random.default_rng(seed)
        try:
            for _ in range(1000):
                kept = chance.permutation(14)[:10].tolist()
                if not (codec.decode({index: shards[index] for index in kept}) == data).all():
                    wrong.append(f"kept {kept}")
        except Exception as error:  # noqa: BLE001 - reported by the test
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("target", host_variants())
def test_nothing_outside_the_blocks_is_touched(target: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.conformance.simd_guarded", target],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "products checked" in result.stdout
