"""A fork waits for other threads that load or compile for the first time, so that its child can do both."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

# The standard library's own hooks complain where they come in the middle of a fork: they are there before.
BEGIN = """
import concurrent.futures.thread, logging, os, signal, sys, threading, time
import gfcode
from gfcode.engine.locks import COMPILING, LOADING

loading = threading.Event()
"""

# The compiler's module comes only while the fork is already waiting.
COMPILES = """
def load():
    with LOADING:
        loading.set()
        time.sleep(0.3)
        import gfcode.kernels.simd.compiler
        COMPILING.acquire()
    time.sleep(0.3)
    COMPILING.release()

def use():
    assert COMPILING.acquire(timeout=10)
    assert LOADING.acquire(timeout=10)
"""

IMPORTS = """
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "gfcode.codec":
            loading.set()
            time.sleep(0.3)

sys.meta_path.insert(0, Slow())

def load():
    gfcode.Codec

def use():
    assert gfcode.Codec(2, 1).n == 3
"""

END = """
thread = threading.Thread(target=load)
thread.start()
assert loading.wait(10)
child = os.fork()
if not child:
    signal.alarm(30)
    status = 1
    try:
        use()
        status = 0
    finally:
        os._exit(status)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("scene", [COMPILES, IMPORTS], ids=["compiles", "imports"])
def test_a_child_can_do_what_another_thread_was_doing(scene: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + scene + END], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
