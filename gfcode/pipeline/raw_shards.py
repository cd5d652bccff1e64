"""Headerless shard files: their lengths, and reading and writing them a window at a time."""

import os
import stat
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from gfcode.errors import InputChangedError, ParameterError, ShardSetError
from gfcode.pipeline.files import read_at

__all__ = ["RawFiles", "StripedFile", "lengths_by_size", "lengths_of_all", "window_bytes"]

Bytes = npt.NDArray[np.uint8]
#: Bytes of a window over all shards together.
_WINDOW: Final = 8 << 20


def window_bytes(n: int, unit: int, multiple: int) -> int:
    """Bytes of each shard in a window: whole cells if they are small, else whole strips; all n shards about 8 MiB."""
    step = unit if unit <= _WINDOW // n else multiple
    return max(step, _WINDOW // n // step * step)


def lengths_by_size(size: int, k: int, m: int, unit: int, multiple: int) -> list[int]:
    """Lengths of the shards of a file that is dealt out in cells, with its last cell as short as the file ends.

    Parameters
    ----------
    size : int
        Bytes of the file.
    k, m, unit : int
        Data shards, parity shards, and bytes of a cell.
    multiple : int
        What a block's length is a multiple of.

    Returns
    -------
    list of int
        Of the n shards; parity shards are as long as the longest data shard, in whole strips.
    """
    stripes, rest = divmod(size, k * unit)
    whole = stripes * unit
    data = [whole + min(max(rest - j * unit, 0), unit) for j in range(k)]
    return [*data, *[whole + -(-min(rest, unit) // multiple) * multiple] * m]


def lengths_of_all(
    given: Mapping[int, int],
    names: Mapping[int, str],
    k: int,
    m: int,
    multiple: int,
    unit: int | None,
    size: int | None,
) -> tuple[list[int], bool]:
    """Find the length of every shard from those that are there.

    Parameters
    ----------
    given : mapping of int to int
        Length of each file, by shard index.
    names : mapping of int to str
        Its name, for messages.
    k, m, multiple : int
    unit : int, optional
        Bytes of a cell, where the shards are striped; data shards may then differ in length by the last stripe.
    size : int, optional
        Bytes of the striped file.

    Returns
    -------
    lengths : list of int
        Of the n shards.
    certain : bool
        False where a shard that is not there may have been shorter, all others being full.

    Raises
    ------
    ShardSetError
        If the lengths do not fit together.
    ParameterError
        If only `size` can tell the length of a missing shard, or unit or size cannot be.
    """  # fmt: skip
    _check_unit(unit, size, multiple)
    longest = max(given.values(), default=0)
    if unit is None:
        odd = [index for index, length in given.items() if length != longest]
        if odd:
            raise ShardSetError(
                f"the shards differ in length: {names[odd[0]]} has {given[odd[0]]} bytes, others {longest}; leave "
                "truncated ones out as missing, or give the cell size of striped ones with --unit"
            )
        if longest % multiple:
            raise ShardSetError(
                f"the shards have {longest} bytes, no whole number of strips of {multiple}: another preset, w or "
                "packet size"
            )
        return [longest] * (k + m), True
    if size is not None:
        lengths = lengths_by_size(size, k, m, unit, multiple)
        _hold_against(given, names, lengths, f"a file of {size} bytes")
        return lengths, True
    base = max(longest - 1, 0) // unit * unit
    if all(length == longest for length in given.values()) and longest % unit == 0:
        return [longest] * (k + m), not set(range(1 if multiple == 1 else 0, k)) - given.keys()
    least, most = _size_range(given, base, k, unit, multiple)
    if least > most:
        raise ShardSetError(
            f"the lengths of the shards ({', '.join(f'{names[i]}: {length}' for i, length in given.items())}) are not "
            f"those of any file dealt out in cells of {unit} bytes"
        )
    low, high = (lengths_by_size(bound, k, m, unit, multiple) for bound in (least, most))
    absent = [index for index in range(k + m) if index not in given]
    if any(low[index] != high[index] for index in absent):
        raise ParameterError(
            f"the length of a missing shard cannot be told from the others: the file had {least} to {most} bytes; "
            "give its size with --size"
        )
    _hold_against(given, names, low, f"a file of {least} bytes")
    return low, True


def _check_unit(unit: int | None, size: int | None, multiple: int) -> None:
    if unit is None:
        if size is not None:
            raise ParameterError("the size of the file matters for striped shards only; give their cell size (--unit)")
        return
    if unit < 1 or unit % multiple:
        raise ParameterError(f"cells of {unit} bytes are no whole number of strips of {multiple} bytes")
    if size is not None and size < 0:
        raise ParameterError(f"a file cannot have {size} bytes")


def _hold_against(given: Mapping[int, int], names: Mapping[int, str], lengths: Sequence[int], what: str) -> None:
    for index, length in given.items():
        if length != lengths[index]:
            raise ShardSetError(
                f"{names[index]} has {length} bytes, where shard {index} of {what} has {lengths[index]}; leave "
                "truncated shards out as missing"
            )


def _size_range(given: Mapping[int, int], base: int, k: int, unit: int, multiple: int) -> tuple[int, int]:
    """Least and greatest size of the file that the lengths of its shards allow."""
    least, most = base * k + 1, (base + unit) * k
    for index, length in given.items():
        tail = length - base
        if index >= k:  # parity: the first cell of the last stripe, in whole strips
            least = max(least, base * k + tail - multiple + 1)
            most = min(most, base * k + tail if tail < unit else most)
        elif tail <= 0:
            most = min(most, base * k + index * unit)
        elif tail == unit:
            least = max(least, base * k + (index + 1) * unit)
        else:
            least, most = max(least, base * k + index * unit + tail), min(most, base * k + index * unit + tail)
    return least, most


class RawFiles:
    """Open shard files, read in windows with zeros behind their ends.

    Parameters
    ----------
    paths : mapping of int to str
        By shard index. Each must be a regular file.

    Raises
    ------
    ShardSetError
        If one is no regular file, or two are the same file.
    OSError
        If one cannot be opened.

    Attributes
    ----------
    paths, lengths : dict of int
        Path and bytes of each file, by shard index.
    stats : dict of str to stat_result
        By path.
    """

    def __init__(self, paths: Mapping[int, str]) -> None:
        self.paths = dict(paths)
        self._fds: dict[int, int] = {}
        self.lengths: dict[int, int] = {}
        self.stats: dict[str, os.stat_result] = {}
        self._seen: dict[tuple[int, int], str] = {}
        try:
            for index, path in self.paths.items():
                self._open(index, path)
        except BaseException:
            self.close()
            raise

    def _open(self, index: int, path: str) -> None:
        self._fds[index] = fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ShardSetError(f"{path} is no regular file")
        other = self._seen.setdefault((found.st_dev, found.st_ino), path)
        if len(self._seen) < len(self._fds):
            raise ShardSetError(f"{other} and {path} are the same file, given as two shards")
        self.lengths[index] = found.st_size
        self.stats[path] = found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    def read(self, index: int, offset: int, out: Bytes) -> None:
        """Fill `out` from a shard, with zeros from its end on."""
        try:
            got = read_at(self._fds[index], [out.data], offset)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), self.paths[index]) from error
        if got < min(len(out), max(self.lengths[index] - offset, 0)):
            raise ShardSetError(f"{self.paths[index]} became shorter while it was read")
        out[got:] = 0


class StripedFile:
    """Reads windows of the data shards out of the file that they make up.

    Parameters
    ----------
    fd, path, size
        The file.
    k, cell : int
        Cells are dealt out in turn; a single round of cells makes contiguous shards.
    """

    def __init__(self, fd: int, path: str, size: int, k: int, cell: int) -> None:
        self._fd, self._path, self._size, self._k, self._cell = fd, path, size, k, cell

    def read(self, offset: int, rows: Bytes) -> None:
        """Fill the rows with bytes `offset` on of each data shard, zeros behind the end of the file."""
        length = rows.shape[1]
        if offset % self._cell == 0 and length % self._cell == 0 and length > self._cell:
            stripes = np.empty((length // self._cell, self._k, self._cell), np.uint8)
            self._read(offset * self._k, stripes.reshape(-1))
            rows.reshape(self._k, -1, self._cell)[...] = stripes.transpose(1, 0, 2)
            return
        first = offset
        while first < offset + length:
            stripe, within = divmod(first, self._cell)
            run = min(self._cell - within, offset + length - first)
            for j, row in enumerate(rows):
                start = (stripe * self._k + j) * self._cell + within
                self._read(start, row[first - offset : first - offset + run])
            first += run

    def _read(self, start: int, out: Bytes) -> None:
        there = min(max(self._size - start, 0), len(out))
        if there and read_at(self._fd, [out[:there].data], start) < there:
            raise InputChangedError(f"{self._path} became shorter while it was read")
        out[there:] = 0
