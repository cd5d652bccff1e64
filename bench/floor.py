"""The I/O floor of the pipeline: a bare process that reads and writes the same bytes, with no coding and no checksums.

    python -m bench.floor encode SOURCE DIRECTORY K N SHARD_BYTES [sync]
    python -m bench.floor decode TARGET SIZE PATH... [sync]      k shards are read, SIZE bytes are written
    python -m bench.floor read PATH...
    python -m bench.floor repair TARGET SIZE PATH... [sync]      all other shards are read, one of SIZE bytes is written
    python -m bench.floor tree SOURCE DIRECTORY N SHARD_BYTES [sync]     every file is read, and N files written for it

It uses plain reads and writes of 1 MiB in one thread and imports nothing but `os` and `sys`.
"""

import os
import sys

PIECE = 1 << 20


def read_whole(path: str, buffer: bytearray) -> None:
    """Read a file from its beginning to its end."""
    fd = os.open(path, os.O_RDONLY)
    while os.readv(fd, [buffer]):
        pass
    os.close(fd)


def create(path: str, size: int) -> int:
    """Create a file with its blocks allocated."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    if size:
        os.posix_fallocate(fd, 0, size)
    return fd


def write_some(fd: int, view: memoryview, count: int) -> int:
    """Write `count` bytes, at most a piece; return how many."""
    return os.write(fd, view[: min(count, PIECE)]) if count else 0


def finish(descriptors: list[int], *, sync: bool) -> None:
    """Close files, flushed to the device if that is asked for."""
    for fd in descriptors:
        if sync:
            os.fsync(fd)
        os.close(fd)


def encode(source: str, directory: str, k: int, n: int, shard_bytes: int, *, sync: bool) -> None:
    """Read the source in rounds of k pieces, and after each write one piece of each of n files."""
    buffers = [bytearray(PIECE) for _ in range(n)]
    views = [memoryview(buffer) for buffer in buffers]
    files = [create(f"{directory}/floor.{i:03d}", shard_bytes) for i in range(n)]
    left = [shard_bytes] * n
    fd = os.open(source, os.O_RDONLY)
    more = True
    while more or any(left):
        if more:
            more = all(os.readv(fd, [buffers[j]]) for j in range(k))
        for i in range(n):
            left[i] -= write_some(files[i], views[i], left[i])
    os.close(fd)
    finish(files, sync=sync)


def combine(target: str, size: int, paths: list[str], *, writes: int, sync: bool) -> None:
    """Read in rounds one piece of each of several files, and after each write `writes` pieces of one file."""
    buffers = [bytearray(PIECE) for _ in paths]
    view = memoryview(buffers[0])
    sources = [os.open(path, os.O_RDONLY) for path in paths]
    file = create(target, size)
    left = size
    more = True
    while more or left:
        if more:
            got = [os.readv(fd, [buffer]) for fd, buffer in zip(sources, buffers, strict=True)]
            more = any(got)
        for _ in range(writes):
            left -= write_some(file, view, left)
    for fd in sources:
        os.close(fd)
    finish([file], sync=sync)


def tree(source: str, directory: str, n: int, shard_bytes: int, *, sync: bool) -> None:
    """Read each file of a directory, and write n files for it; flush all of them together."""
    view = memoryview(bytearray(shard_bytes))
    buffer = bytearray(PIECE)
    for name in sorted(os.listdir(source)):
        read_whole(f"{source}/{name}", buffer)
        for i in range(n):
            fd = os.open(f"{directory}/{name}.{i:03d}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(fd, view)
            os.close(fd)
    if sync:
        os.sync()


def main(arguments: list[str]) -> None:
    """Run one floor."""
    sync = arguments[-1] == "sync"
    what, *rest = arguments[: len(arguments) - sync]
    if what == "encode":
        encode(rest[0], rest[1], int(rest[2]), int(rest[3]), int(rest[4]), sync=sync)
    elif what == "tree":
        tree(rest[0], rest[1], int(rest[2]), int(rest[3]), sync=sync)
    elif what in {"decode", "repair"}:
        paths = rest[2:]
        combine(rest[0], int(rest[1]), paths, writes=len(paths) if what == "decode" else 1, sync=sync)
    else:
        buffer = bytearray(PIECE)
        for path in rest:
            read_whole(path, buffer)


if __name__ == "__main__":
    main(sys.argv[1:])
