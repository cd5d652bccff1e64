"""What a scrub remembers from one run to the next: how far it came, and what it found wrong."""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import xxhash
from filelock import FileLock, Timeout

from gfcode.errors import GFCodeError, ParameterError
from gfcode.pipeline.files import named_errors

__all__ = ["Problem", "ScrubState", "default_state_path", "held"]

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """A set that was not intact when it was last looked at.

    Attributes
    ----------
    set_id : str or None
        None where no metadata is left to tell.
    name, path : str
        Name of the set, and a file of it.
    state : {"repairable", "beyond repair", "failed"}
    summary : str
        One line.
    found : str
        When, in UTC, as ISO 8601.
    """

    set_id: str | None
    name: str
    path: str
    state: str
    summary: str
    found: str


@dataclass(slots=True)
class ScrubState:
    """How far the passes over a directory have come.

    Attributes
    ----------
    directory : str
        Real path.
    started : str or None
        When the current pass began; None between passes.
    cursor : str
        Id of the last set that the pass has finished; sets are taken in the order of their ids.
    partial : str
        Id of the set in whose middle the last run ended, or "".
    batch : int
        Batches of that set which are done.
    worst : str
        Its worst state in those.
    sets, bytes_read : int
        Sets finished and bytes read in this pass.
    last : dict or None
        Beginning, end, sets and bytes of the last pass that was finished.
    problems : dict of str to Problem
        By id of the set, or by path.
    """

    directory: str
    started: str | None = None
    cursor: str = ""
    partial: str = ""
    batch: int = 0
    worst: str = ""
    sets: int = 0
    bytes_read: int = 0
    last: dict[str, Any] | None = None
    problems: dict[str, Problem] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str, directory: str) -> "ScrubState":
        """Read a state file; a new state where there is none.

        Raises
        ------
        ParameterError
            If it is no state file, or that of another directory.
        """
        real = os.path.realpath(directory)
        try:
            with open(path, encoding="utf-8", errors="surrogatepass") as file, named_errors(file):
                values = json.load(file)
        except FileNotFoundError:
            return cls(real)
        except ValueError as error:
            raise ParameterError(f"{path} is no state of a scrub: {error}; remove it to begin anew") from error
        try:
            if values.pop("version") != _VERSION:
                raise ParameterError(f"{path} is a state of another release; remove it to begin anew")
            problems = {key: Problem(**problem) for key, problem in values.pop("problems").items()}
            state = cls(**values, problems=problems)
        except (AttributeError, KeyError, TypeError) as error:
            raise ParameterError(f"{path} is no state of a scrub; remove it to begin anew") from error
        if state.directory != real:
            raise ParameterError(f"{path} is the state of {state.directory}, not of {real}; name another file")
        return state

    def save(self, path: str) -> None:
        """Replace a state file, at once or not at all."""
        text = json.dumps({"version": _VERSION, **asdict(self)}, indent=1)
        temporary = f"{path}.{secrets.token_hex(8)}.tmp"
        try:
            with open(temporary, "x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError) and error.errno is not None:
                raise OSError(error.errno, os.strerror(error.errno), path) from error  # nobody knows the hidden name
            raise


def default_state_path(directory: str) -> str:
    """Return the state file of a directory, in the user's directory for states."""
    from platformdirs import user_state_path

    name = xxhash.xxh3_128_hexdigest(os.fsencode(os.path.realpath(directory)))
    return str(user_state_path("gfcode") / "scrub" / f"{name}.json")


def _remove_left(path: str) -> None:
    """Remove what killed runs have left of a state file; whoever calls holds it."""
    directory, name = os.path.split(path)
    unfinished = re.compile(rf"{re.escape(name)}\.[0-9a-f]{{16}}\.tmp")
    for entry in filter(unfinished.fullmatch, os.listdir(directory or ".")):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, entry))


@contextlib.contextmanager
def held(path: str) -> Iterator[None]:
    """Hold a state file for the length of a `with` block.

    Raises
    ------
    GFCodeError
        If another scrub holds it.
    """
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    lock = FileLock(f"{path}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise GFCodeError(f"another scrub is at work with {path}; wait for it, or name another state file") from None
    try:
        _remove_left(path)
        yield
    finally:
        lock.release()
