"""No engine reads or writes a byte outside the blocks: a guard page on either side would end the process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.engines import FAST


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run([sys.executable, *arguments], cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("name", FAST)
def test_nothing_outside_the_blocks_is_touched(name: str) -> None:
    result = run("-m", "tests.conformance.guarded", name)
    assert result.returncode == 0, result.stderr
    assert "products checked" in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("index", ["-1", "region.size"])
def test_the_guard_pages_guard(index: str) -> None:
    code = (
        "import ctypes; from tests.conformance.guarded import Region; region = Region(100); "
        "address = region.bytes.__array_interface__['data'][0]; "
        f"print('alive', flush=True); print(ctypes.c_uint8.from_address(address + {index}).value)"
    )
    result = run("-c", code)
    assert result.stdout == "alive\n"
    assert result.returncode < 0
