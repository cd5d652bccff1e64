"""Real data for the demonstration: a tar archive of the files that this Python installation is made of."""

import io
import os
import stat
import sys
import sysconfig
import tarfile
from collections.abc import Iterator

from gfcode.errors import GFCodeError

__all__ = ["write_input"]

#: Larger files are left out: each is read whole, so that it can't change while it is archived.
_MAX_FILE = 256 * 2**20


def write_input(path: str, size: int) -> int:
    """Write an uncompressed tar archive of at least `size` bytes.

    It holds the standard library and the installed packages; then, while it is too small, what stands in the system's
    library and data folders; then all of these again under other names.

    Parameters
    ----------
    path : str
        The archive to write.
    size : int
        Bytes wanted.

    Returns
    -------
    int
        Number of files in the archive.

    Raises
    ------
    GFCodeError
        If there are no files to be read.
    """
    files = 0
    with open(path, "xb") as target, tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        turn = 0
        while target.tell() < size:
            start = files
            for name in _files():
                files += _add(archive, name, f"copy-{turn}/" if turn else "")
                if target.tell() >= size:
                    break
            if files == start:
                raise GFCodeError("found no files to make an archive of")
            turn += 1
    return files


def _files() -> Iterator[str]:
    """Yield regular files, each folder in the order of its names, no folder twice."""
    paths = sysconfig.get_paths()
    folders = [
        *(paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
        sys.prefix,
        sys.base_prefix,
        "/usr/lib",
        "/usr/share",
    ]
    seen: set[str] = set()
    for folder in folders:
        for parent, names, files in os.walk(folder):
            real = os.path.realpath(parent)
            if real in seen:
                names.clear()
                continue
            seen.add(real)
            names.sort()
            yield from (os.path.join(parent, name) for name in sorted(files))


def _add(archive: tarfile.TarFile, path: str, prefix: str) -> bool:
    """Add one file as it is at this moment; return whether it could be read."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE:
            return False
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE)
    except OSError:
        return False
    member = tarfile.TarInfo(prefix + path.lstrip("/"))
    member.size = len(content)
    member.mtime = int(status.st_mtime)
    member.mode = stat.S_IMODE(status.st_mode)
    archive.addfile(member, io.BytesIO(content))
    return True
