"""Runs `gfcode` command lines in forks of one process that has the fault library preloaded.

A fork starts in milliseconds where a new interpreter needs a large part of a second, so that thousands of runs can be
ended at different moments. All else is as in a new process: the command's own entry point and its handlers of signals.

The server reads one JSON request a line on stdin and answers with one JSON object a line on stdout.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from tests.reliability.faultlib import Action, Kind, fault_library

__all__ = ["OUTSIDE", "Fault", "Outcome", "Server"]

#: Seconds after which a run counts as hung.
LIMIT = 60.0
#: Exit code of a run that a signal met before the command handled any, or when it was over.
OUTSIDE = 99
_HELD = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True)
class Fault:
    """What happens at which call.

    Attributes
    ----------
    below : str
        Only calls on files below this directory count.
    kinds : Kind
        Only calls of these kinds count.
    action : Action
    call : int
        Number of the call, from 1.
    number : int
        Signal or errno.
    victim : str
        File that is changed.
    """

    below: str
    kinds: Kind = Kind.ALL
    action: Action = Action.COUNT
    call: int = 0
    number: int = 0
    victim: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    code : int
        Exit code, or the negative number of the signal that ended it.
    calls : int
        Calls counted.
    fired : bool
        Whether the fault happened, or the signal reached the running process.
    late : float
        Seconds from the fault, or the signal, to the end.
    hung : bool
    stdout, stderr : str
    """

    code: int
    calls: int
    fired: bool
    late: float
    hung: bool
    stdout: str
    stderr: str


class Server:
    """The process; a context manager that ends it."""

    def __enter__(self) -> Self:
        # Libraries that keep threads of their own would make forks unsafe.
        alone = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **alone, "LD_PRELOAD": str(fault_library())}
        environment.pop("GFCODE_DEBUG", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=environment, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]  # a pipe, as asked for
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]

    def run(
        self, arguments: list[str], fault: Fault, *, after: float | None = None, number: int = signal.SIGKILL,
        files: int = 0,
    ) -> Outcome:  # fmt: skip
        """Run a command line to its end.

        Parameters
        ----------
        arguments : list of str
        fault : Fault
        after : float, optional
            Seconds after which it gets signal `number`.
        number : int
        files : int
            Files that it may have open; 0 for as many as this process.
        """
        request = {
            "arguments": arguments, "fault": asdict(fault), "after": after, "number": int(number), "limit": LIMIT,
            "files": files,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the server of faults has ended")
        return Outcome(**json.loads(answer))


def _library() -> Any:
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.fault_calls.restype = ctypes.c_long
    library.fault_fired_at.restype = ctypes.c_double
    library.fault_arm.argtypes = [
        ctypes.c_char_p, ctypes.c_uint, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_char_p,
    ]  # fmt: skip
    if library.fault_setup():
        raise OSError("no shared memory")
    return library


def _warm_up() -> None:
    """Import what commands import, and run one, so that forks need not."""
    from gfcode.cli.main import main

    for name in ("encode", "decode", "verify", "repair", "scrub"):
        importlib.import_module(f"gfcode.cli.{name}")
    with tempfile.TemporaryDirectory() as base:
        source = Path(base) / "f"
        source.write_bytes(b"warm" * 1000)
        quiet = ["--quiet", "--threads", "1"]
        assert main(["encode", str(source), "-k", "3", "-m", "2", "--out", f"{base}/s", *quiet]) == 0
        for lost in (0, 1):
            (Path(base) / f"s/f.00{lost}.gfs").unlink()
        assert main(["decode", f"{base}/s", "-o", f"{base}/g", *quiet]) == 0
        assert main(["repair", f"{base}/s", *quiet]) == 0
        assert main(["scrub", f"{base}/s", "--state", f"{base}/state", *quiet]) == 0
        assert main(["encode", str(source), "--update", "--out", f"{base}/t", *quiet]) == 0
        assert main(["encode", f"{base}/s", "--archive", "--name", "a", "--out", f"{base}/u", *quiet]) == 0
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a process with threads cannot be forked safely")


def _child(request: dict[str, Any], library: Any, streams: tuple[int, int]) -> NoReturn:
    """Become the command."""
    from gfcode.cli.main import run

    fault = request["fault"]
    if request["files"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (request["files"], request["files"]))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    library.fault_arm(
        os.fsencode(fault["below"]), fault["kinds"], fault["action"], fault["call"], fault["number"],
        os.fsencode(fault["victim"]),
    )  # fmt: skip
    sys.argv = ["gfcode", *request["arguments"]]
    code = OUTSIDE
    with contextlib.suppress(BaseException):  # the one signal may come behind the command's end
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
            run()
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else 1
        except BaseException:  # noqa: BLE001  (as the interpreter itself does at its end)
            traceback.print_exc()
        signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking this large interpreter down would take longer than the run


def _serve_one(request: dict[str, Any], library: Any) -> dict[str, Any]:
    """Run one command in a child."""
    library.fault_reset()
    streams = (os.memfd_create("stdout"), os.memfd_create("stderr"))
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    child = os.fork()
    if not child:
        _child(request, library, streams)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
    process = os.pidfd_open(child)
    poll = select.poll()
    poll.register(process, select.POLLIN)
    sent = None
    if request["after"] is not None and not poll.poll(request["after"] * 1000):
        sent = time.monotonic()
        os.kill(child, request["number"])
    hung = not poll.poll(request["limit"] * 1000)
    ended = time.monotonic()
    if hung:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(process)
    texts = []
    for stream in streams:
        texts.append(os.pread(stream, 1 << 20, 0).decode(errors="replace"))
        os.close(stream)
    fired = bool(library.fault_fired())
    since = library.fault_fired_at() if fired else sent
    return {
        "code": code, "calls": library.fault_calls(), "fired": fired or sent is not None, "hung": hung,
        "late": 0.0 if since is None else ended - since, "stdout": texts[0], "stderr": texts[1],
    }  # fmt: skip


def _serve() -> None:
    library = _library()
    _warm_up()
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0))
    os.dup2(2, 1)
    for line in requests:
        answers.write(json.dumps(_serve_one(json.loads(line), library)) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
