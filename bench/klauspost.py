"""klauspost/reedsolomon in a process of its own, as calls that can be timed; needs Go and the library's sources."""

import os
import shutil
import subprocess
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["Klauspost", "build"]

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "klauspost.go")
#: Where Debian's golang-*-dev packages put sources.
_GOPATH = "/usr/share/gocode"


def build(folder: str) -> str:
    """Build the program without a network; return its path.

    Raises
    ------
    OSError
        If Go or the sources are missing, or it does not build.
    """
    go = shutil.which("go")
    gopath = os.environ.get("GOPATH", _GOPATH)
    if go is None or not os.path.isdir(os.path.join(gopath, "src/github.com/klauspost/reedsolomon")):
        raise OSError("needs Debian's golang-go and golang-github-klauspost-reedsolomon-dev")
    program = os.path.join(folder, "klauspost")
    environment = {
        **os.environ, "GO111MODULE": "off", "GOPATH": gopath, "GOFLAGS": "", "CGO_ENABLED": "0",
    }  # fmt: skip
    done = subprocess.run(
        [go, "build", "-o", program, _SOURCE], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OSError(f"go build fails: {done.stderr.strip()}")
    return program


class Klauspost:
    """A running program that encodes one shape, with one thread.

    Parameters
    ----------
    program : str
        What `build` returned.
    k, m, length : int
    """

    def __init__(self, program: str, k: int, m: int, length: int) -> None:
        self._process = subprocess.Popen(
            [program, str(k), str(m), str(length)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, "GOMAXPROCS": "1"},
        )  # fmt: skip
        self.sum = int(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            self._process.communicate()
            raise OSError("the Go program has ended")
        return line

    def encode(self, times: int) -> Callable[[], object]:
        """Return a call that encodes so many times."""

        def call() -> None:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{times}\n")
            self._process.stdin.flush()
            assert self._answer() == "done"

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
