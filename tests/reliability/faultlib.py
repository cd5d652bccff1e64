"""Compile the fault library, and the numbers that it knows."""

import functools
import shutil
import subprocess
import tempfile
from enum import IntEnum, IntFlag
from pathlib import Path

__all__ = ["Action", "Kind", "fault_library", "why_not"]


class Kind(IntFlag):
    """Kinds of system calls; the numbers are those of faultlib.c."""

    OPEN = 1
    CREATE = 2
    READ = 4
    WRITE = 8
    SYNC = 16
    RENAME = 32
    LINK = 64
    UNLINK = 128
    ALLOC = 256
    DIRECTORY = 512
    ATTRIBUTES = 1024
    LIST = 2048
    #: All that change the directory tree or a file.
    CHANGES = CREATE | WRITE | SYNC | RENAME | LINK | UNLINK | ALLOC | DIRECTORY | ATTRIBUTES
    ALL = CHANGES | OPEN | READ | LIST


class Action(IntEnum):
    """What happens at the call; the numbers are those of faultlib.c."""

    COUNT = 0
    SIGNAL_BEFORE = 1
    SIGNAL_AFTER = 2
    FAIL = 3
    #: That call fails, and all behind it.
    FAIL_FROM = 4
    SHORT = 5
    GARBLE = 6
    TRUNCATE = 7
    APPEND = 8
    REMOVE = 9
    REWRITE = 10


@functools.cache
def _compiled() -> tuple[Path | None, str]:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None, "no C compiler (gcc) for the fault library"
    source = Path(__file__).with_name("faultlib.c")
    target = Path(tempfile.mkdtemp(prefix="gfcode-faultlib-")) / "faultlib.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(target), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, f"the fault library cannot be compiled: {done.stderr.strip().splitlines()[-1]}"
    return target, ""


def why_not() -> str:
    """Return why there is no fault library; nothing if there is."""
    return _compiled()[1]


def fault_library() -> Path:
    """Return the compiled library."""
    path, reason = _compiled()
    if path is None:
        raise RuntimeError(reason)
    return path
