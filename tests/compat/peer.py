"""The installed PyECLib, spoken to through a process of its own."""

import ctypes.util
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from functools import cache
from typing import Any

from tests.peers.base import PeerMissingError

__all__ = ["Peer", "PeerRaisedError", "start"]


class PeerRaisedError(Exception):
    """PyECLib raised an exception; the message is the name of its class."""


class Peer:
    """PyECLib. `types` are the codes that it has here."""

    def __init__(self) -> None:
        if importlib.util.find_spec("pyeclib") is None:
            raise PeerMissingError("pyeclib is not installed: pip install pyeclib")
        self.folder = tempfile.TemporaryDirectory(prefix="gfcode-pyeclib-")
        jerasure = ctypes.util.find_library("Jerasure")
        if jerasure is not None:
            # PyECLib's wheel looks for Jerasure by a name of its own.
            library = next(path for path in _library_paths(jerasure) if os.path.exists(path))
            os.symlink(library, os.path.join(self.folder.name, "libJerasure-pyeclib.so.2"))
        path = os.pathsep.join(filter(None, [self.folder.name, os.environ.get("LD_LIBRARY_PATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.compat.pyeclib_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LD_LIBRARY_PATH": path},
        )
        assert self.process.stdout is not None
        self.types, self.version = pickle.load(self.process.stdout)  # noqa: S301 - from a process of ours

    def call(self, options: dict[str, Any], method: str, *arguments: Any, legacy: bool = False) -> Any:
        """Call a method of the driver with these options; an empty name only makes the driver.

        Raises
        ------
        PeerRaisedError
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump((options, legacy, method, arguments), self.process.stdin)
        self.process.stdin.flush()
        outcome, value = pickle.load(self.process.stdout)  # noqa: S301 - from a process of ours
        if outcome == "raised":
            raise PeerRaisedError(value)
        return value

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)
        self.folder.cleanup()


def _library_paths(name: str) -> list[str]:
    """Where the loader finds a library, by what it loads."""
    ctypes.CDLL(name)
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        return sorted(
            {line.split()[-1] for line in maps if os.path.basename(line.split()[-1]).startswith("libJerasure")}
        )


@cache
def start() -> Peer:
    """Start PyECLib once.

    Raises
    ------
    PeerMissingError
    """
    return Peer()
