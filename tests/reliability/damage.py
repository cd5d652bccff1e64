"""Random damages of a shard set, held in memory as a mapping of file name to content."""

import random
from collections.abc import Callable

from tests.reliability.samples import Sample

__all__ = ["DAMAGES", "Files", "damage"]

#: File names and contents.
Files = dict[str, bytearray]
Damage = Callable[[random.Random, Files, Sample, Sample], None]

_SECTOR = 512


def _pick(rng: random.Random, files: Files) -> bytearray:
    return files[rng.choice(sorted(files))]


def _spot(rng: random.Random, content: bytearray) -> int:
    """Return an offset; often one in the first bytes of something."""
    if not content:
        return 0
    at = rng.randrange(len(content))
    return at - at % _SECTOR + rng.randrange(0, 96) if rng.random() < 0.3 and len(content) > 2 * _SECTOR else at


def bits(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Flip one bit, or a few all over a file."""
    content = _pick(rng, files)
    for _ in range(rng.choice((1, 1, 1, 3, 20)) if content else 0):
        at = min(_spot(rng, content), len(content) - 1)
        content[at] ^= 1 << rng.randrange(8)


def run(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Overwrite a run of bytes: with noise, or with one value."""
    content = _pick(rng, files)
    at = _spot(rng, content)
    count = min(len(content) - at, rng.choice((1, 7, 100, 1000, 5000)))
    if count > 0:
        content[at : at + count] = rng.randbytes(count) if rng.random() < 0.6 else bytes([rng.randrange(256)]) * count


def zero_sectors(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Zero whole sectors."""
    content = _pick(rng, files)
    sectors = len(content) // _SECTOR
    if sectors:
        first = rng.randrange(sectors)
        count = min(sectors - first, rng.choice((1, 1, 2, 8, 40)))
        content[first * _SECTOR : (first + count) * _SECTOR] = bytes(count * _SECTOR)


def swap_blocks(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Exchange sectors or whole frames, inside a file or between two."""
    a, b = _pick(rng, files), _pick(rng, files)
    if rng.random() < 0.5:
        stripes = [rng.randrange(-1, sample.stripes) for _ in range(2)]
        if rng.random() < 0.5:
            stripes[1] = stripes[0]
        spans = [slice(sample.starts[stripe + 1], sample.starts[stripe + 2]) for stripe in stripes]
    else:
        spans = []
        for content in (a, b):
            at = rng.randrange(max(1, len(content) // _SECTOR)) * _SECTOR
            spans.append(slice(at, at + _SECTOR))
    if a is b and spans[0].start < spans[1].stop and spans[1].start < spans[0].stop:
        return
    first, second = bytes(a[spans[0]]), bytes(b[spans[1]])
    a[spans[0].start : spans[0].start + len(second)] = second
    b[spans[1].start : spans[1].start + len(first)] = first


def truncate(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Cut the end off, often at a frame."""
    content = _pick(rng, files)
    at = rng.choice(sample.starts) if rng.random() < 0.3 else rng.randint(0, len(content))
    del content[at:]


def insert(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Insert bytes, which moves all that follows; at the end they only trail."""
    content = _pick(rng, files)
    at = rng.choice((len(content), rng.randint(0, len(content)), rng.choice(sample.starts)))
    content[at:at] = rng.randbytes(rng.choice((1, 16, 512, 4096)))


def cut_out(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Take bytes out, which moves all that follows."""
    content = _pick(rng, files)
    at = rng.choice((rng.randint(0, len(content)), rng.choice(sample.starts)))
    del content[at : at + rng.choice((1, 64, 512, 1024, 4096))]


def duplicate(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Repeat a piece of a file behind itself or over what follows, or copy the file under another name."""
    name = rng.choice(sorted(files))
    content = files[name]
    way = rng.randrange(3)
    if way == 0:
        files[f"copy{rng.randrange(3)}"] = bytearray(content)
        return
    stripe = rng.randrange(-1, sample.stripes)
    first, end = sample.starts[stripe + 1], sample.starts[stripe + 2]
    piece = content[first:end]
    content[end : end if way == 1 else end + len(piece)] = piece


def exchange_headers(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Exchange the headers of two frames, or of the metadata frames, or whole metadata frames."""
    a, b = _pick(rng, files), _pick(rng, files)
    length = rng.choice((512, 512, sample.starts[1]))
    x, y = (0, 0) if length > 512 else (rng.choice(sample.starts[:-1]), rng.choice(sample.starts[:-1]))
    if a is b and abs(x - y) < length:
        return
    first, second = bytes(a[x : x + length]), bytes(b[y : y + length])
    a[x : x + len(second)] = second
    b[y : y + len(first)] = first


def foreign_frame(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Put a frame of another set, of the same shape, where it would belong; as stale data is after a crash."""
    content = _pick(rng, files)
    stripe = rng.randrange(-1, min(sample.stripes, other.stripes))
    frame = other.frame(rng.randrange(other.n), stripe)
    content[sample.starts[stripe + 1] : sample.starts[stripe + 2]] = frame


def own_frame(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Put a sound frame of this set where another belongs: a write that went to the wrong place."""
    content = _pick(rng, files)
    to, stripe = rng.randrange(-1, sample.stripes), rng.randrange(-1, sample.stripes)
    frame = sample.frame(rng.randrange(sample.n), stripe)
    content[sample.starts[to + 1] : sample.starts[to + 1] + len(frame)] = frame


def remove(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Lose a file."""
    if len(files) > 1:
        del files[rng.choice(sorted(files))]


def swap_names(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Exchange two files."""
    a, b = rng.choice(sorted(files)), rng.choice(sorted(files))
    files[a], files[b] = files[b], files[a]


def every_shard(rng: random.Random, files: Files, sample: Sample, other: Sample) -> None:
    """Damage all files at once, each in another stripe."""
    shift = rng.randrange(sample.stripes)
    for number, name in enumerate(sorted(files)):
        content, at = files[name], sample.starts[(number + shift) % sample.stripes + 1] + rng.randrange(700)
        if at < len(content):
            content[at] ^= 0xFF


DAMAGES: tuple[Damage, ...] = (
    bits, run, zero_sectors, swap_blocks, truncate, insert, cut_out, duplicate, exchange_headers, foreign_frame,
    own_frame, remove, swap_names, every_shard,
)  # fmt: skip


def damage(rng: random.Random, sample: Sample, other: Sample) -> tuple[Files, tuple[str, ...]]:
    """Return the files of a set after one to six damages, and their kinds."""
    files: Files = {sample.name(shard): bytearray(content) for shard, content in enumerate(sample.shards)}
    kinds = rng.choices(DAMAGES, k=rng.choice((1, 1, 2, 2, 3, 4, 6)))
    for kind in kinds:
        kind(rng, files, sample, other)
    return files, tuple(kind.__name__ for kind in kinds)
