"""Attributes that are computed once, and never wait for another object's."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gfcode.once import cached_property

ROOT = Path(__file__).parents[2]


class Slow:
    """Something whose attribute waits for an event."""

    def __init__(self, event: threading.Event | None) -> None:
        self.event, self.count = event, 0

    @cached_property
    def value(self) -> int:
        """Count calls."""
        self.count += 1
        if self.event is not None:
            assert self.event.wait(20)
        return self.count


def test_it_is_computed_once_for_each_object() -> None:
    one, other = Slow(None), Slow(None)
    assert (one.value, one.value, one.count) == (1, 1, 1)
    assert other.count == 0
    assert isinstance(Slow.value, cached_property)
    assert Slow.value.__doc__ == "Count calls."


def test_no_object_waits_for_another() -> None:
    """One that did would wait for ever in a process forked meanwhile."""
    event = threading.Event()
    thread = threading.Thread(target=lambda: Slow(event).value)
    thread.start()
    try:
        found: list[int] = []
        quick = threading.Thread(target=lambda: found.append(Slow(None).value), daemon=True)
        quick.start()
        quick.join(10)
        assert found == [1]
    finally:
        event.set()
        thread.join()


@pytest.mark.parametrize("folder", ["gfcode", "kernels", "cli"])
def test_nothing_uses_the_one_with_a_lock(folder: str) -> None:
    found = [path for path in (ROOT / folder).rglob("*.py") if "functools import cached_property" in path.read_text()]
    assert not found
    assert not [path for path in (ROOT / folder).rglob("*.py") if "functools.cached_property(" in path.read_text()]


def test_a_child_forked_while_threads_make_codecs_works() -> None:
    program = """
import os, threading
from gfcode.codec import Codec

stop = threading.Event()

def work():
    while not stop.is_set():
        Codec(3, 2, matrix="cauchy-good", engine="numpy").plan([0, 3, 4], [1, 2])

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(8):
    child = os.fork()
    if not child:
        Codec(5, 3, engine="numpy").plan([0, 3, 4, 5, 6], [1, 2])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
"""
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("no fork here")
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
