"""Compiled kernels on disk, one directory per user: a cache that can fail in every way and only cost time.

An entry is a file named by the hash of its key. It carries a digest of its content, so that a torn or rotten file is
a miss and never code that runs.
"""

import hashlib
import os
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Final

import platformdirs

__all__ = ["ENVIRONMENT_VARIABLE", "DiskCache", "cache_directory"]

#: Names the directory to use instead of the user's own cache directory.
ENVIRONMENT_VARIABLE: Final = "GFCODE_CACHE_DIR"

_MAGIC: Final = b"gfcache1"
_DIGEST_BYTES: Final = 16


def cache_directory() -> Path:
    """Directory of gfcode's caches: `GFCODE_CACHE_DIR`, or the user's cache directory on this platform.

    Raises
    ------
    FileNotFoundError
        If the user has no home directory and no directory was chosen.
    """
    if chosen := os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(chosen).absolute()
    directory = Path(platformdirs.user_cache_dir("gfcode"))
    if not directory.is_absolute():  # an unexpanded "~" would become a folder of the working directory
        raise FileNotFoundError(f"this user has no home directory for {directory}")
    return directory


def _digest(key: bytes, payload: bytes) -> bytes:
    return hashlib.blake2b(payload, key=hashlib.blake2b(key).digest(), digest_size=_DIGEST_BYTES).digest()


class DiskCache:
    """Entries of one kind in a folder of the cache directory.

    Safe to use from many threads and processes at once: entries appear whole, by renaming. An unusable directory is
    reported once in the life of the process, as a `RuntimeWarning`; after that it costs nothing but compilation.

    Parameters
    ----------
    name : str
        The folder inside `cache_directory()`.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def _path(self, key: bytes) -> Path:
        return cache_directory() / self.name / f"{hashlib.blake2b(key, digest_size=16).hexdigest()}.bin"

    def load(self, key: bytes) -> bytes | None:
        """Return what was stored under `key`; None if nothing was, if it is damaged, or if others could have put it."""
        try:
            with self._path(key).open("rb") as file:
                if not _is_ours(os.fstat(file.fileno())):
                    return None
                content = file.read()
        except OSError:
            return None
        head = len(_MAGIC) + _DIGEST_BYTES
        payload = content[head:]
        return payload if content[:head] == _MAGIC + _digest(key, payload) else None

    def store(self, key: bytes, payload: bytes) -> None:
        """Keep `payload` under `key`, replacing what is there; warn (once a process) if that cannot be done."""
        temporary = None
        try:
            path = self._path(key)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours(path.parent.stat()):
                raise PermissionError(f"{path.parent} can be written by other users")
            descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + _digest(key, payload) + payload)
            os.replace(temporary, path)
            temporary = None
        except OSError as error:
            _warn(error)
        finally:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)


def _warn(error: OSError) -> None:
    if not _warnings_given:
        _warnings_given.append(str(error))
        warnings.warn(
            f"compiled kernels cannot be kept on disk ({error}), so that every process compiles its own; "
            f"set {ENVIRONMENT_VARIABLE} to a directory that you can write to",
            RuntimeWarning,
            stacklevel=2,
        )


_warnings_given: list[str] = []


def _is_ours(status: os.stat_result) -> bool:
    """Tell whether only this user (or root) can have written there."""
    if os.name != "posix":
        return True
    return status.st_uid in {os.geteuid(), 0} and not status.st_mode & stat.S_IWOTH
