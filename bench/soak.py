"""Mixed calls at full load, every result checked, memory watched: ``python -m bench.soak --minutes 10``.

Threads share a few codecs and call all verbs on random losses, by every kind of buffer. What each call gives is held
against bytes that were computed before by the NumPy engine. Memory is measured once everything has been called a
thousand times or for a tenth of the run, whichever is later, and at the end: it must not have grown by more than
`--growth` MiB. The first wrong byte or exception ends the run, with exit code 1.
"""

import argparse
import itertools
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import gfcode

if TYPE_CHECKING:
    from collections.abc import Callable

Shards = dict[int, Any]


@dataclass(frozen=True)
class Sample:
    """Data of one stripe, or of a batch, with all its shards by the oracle."""

    codec: gfcode.Codec
    data: Any
    shards: Shards
    content: bytes


@dataclass
class Result:
    """What a run came to."""

    calls: int = 0
    seconds: float = 0.0
    first_rss: int = 0
    last_rss: int = 0
    by_verb: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def samples() -> list[Sample]:
    """Make what is worked on."""
    made = []
    codes: list[tuple[Callable[[str | None], gfcode.Codec], int]] = [
        (lambda engine: gfcode.Codec(10, 4, engine=engine), 512),
        (lambda engine: gfcode.Codec(4, 2, layout="words", engine=engine), 1500),
        (lambda engine: gfcode.Codec(6, 3, w=16, layout="words", engine=engine), 600),
        (lambda engine: gfcode.Codec(20, 4, engine=engine), 512),
        (lambda engine: gfcode.Codec.preset("klauspost", 5, 3, engine=engine), 777),
    ]
    rng = np.random.default_rng(1)
    for make, length in codes:
        codec, oracle = make(None), make("numpy")
        for shape in ((codec.k, length), (codec.k, 3 * length), (3, codec.k, length)):
            data = rng.integers(0, 256, shape, np.uint8)
            blocks = np.concatenate([data, oracle.encode(data)], axis=-2)
            shards = {i: np.ascontiguousarray(blocks[..., i, :]) for i in range(codec.n)}
            made.append(Sample(codec, data, shards, data.tobytes()))
    return made


def survivors(sample: Sample, choice: random.Random) -> tuple[Shards, list[int]]:
    """Lose up to m shards, and give the others as one kind of buffer."""
    codec = sample.codec
    # Losses come again and again, as in life; plans that are kept for ever new ones would look like a leak at first.
    losses = random.Random(choice.randrange(24))
    lost = losses.sample(range(codec.n), losses.randint(0, codec.m))
    kind = choice.choice((np.asarray, bytes, bytearray)) if sample.data.ndim == 2 else np.asarray
    return {i: kind(block) for i, block in sample.shards.items() if i not in lost}, lost


def same(found: Any, wanted: Any) -> None:
    """Refuse any difference."""
    if not np.array_equal(found, wanted):
        raise AssertionError("wrong bytes")


def encode(sample: Sample, choice: random.Random) -> None:
    codec, data = sample.codec, sample.data
    parity = [sample.shards[i] for i in range(codec.k, codec.n)]
    out = np.empty((*data.shape[:-2], codec.m, data.shape[-1]), np.uint8) if choice.random() < 0.5 else None
    made = codec.encode(list(map(bytes, data)) if data.ndim == 2 and choice.random() < 0.3 else data, out)
    same(made, np.stack(parity, axis=-2))


def decode(sample: Sample, choice: random.Random) -> None:
    given, _ = survivors(sample, choice)
    out = np.empty_like(sample.data) if choice.random() < 0.5 else None
    same(sample.codec.decode(given, out), sample.data)


def reconstruct(sample: Sample, choice: random.Random) -> None:
    given, lost = survivors(sample, choice)
    for shard, made in sample.codec.reconstruct(given, lost).items():
        same(made, sample.shards[shard])


def decode_range(sample: Sample, choice: random.Random) -> None:
    given, _ = survivors(sample, choice)
    start = choice.randrange(len(sample.content))
    length = choice.randrange(len(sample.content) - start)
    same(sample.codec.decode_range(given, start, length), np.frombuffer(sample.content, np.uint8)[start:][:length])


def verify(sample: Sample, choice: random.Random) -> None:
    shards = dict(sample.shards)
    if choice.random() < 0.5:
        assert sample.codec.verify(shards)
        return
    wrong = choice.randrange(sample.codec.n)
    shards[wrong] = shards[wrong].copy()
    shards[wrong][..., choice.randrange(sample.data.shape[-1])] ^= 1
    assert sample.codec.verify(shards).wrong == (wrong,)


def update(sample: Sample, choice: random.Random) -> None:
    codec, data = sample.codec, sample.data
    parity = {i: sample.shards[i].copy() for i in range(codec.k, codec.n)}
    index, other = choice.randrange(codec.k), choice.randrange(codec.k)
    old, new = (np.ascontiguousarray(data[..., i, :]) for i in (index, other))
    codec.update(parity, index, old, new)
    codec.update(parity, index, new, old)
    for shard, block in parity.items():
        same(block, sample.shards[shard])


def progressive(sample: Sample, choice: random.Random) -> None:
    codec, data = sample.codec, sample.data
    encoder = codec.progressive(data.shape[-1], data.shape[0] if data.ndim == 3 else None)
    for index in choice.sample(range(codec.k), codec.k):
        encoder.add(index, sample.shards[index])
    for row in range(codec.m):
        same(encoder.parity[..., row, :], sample.shards[codec.k + row])


def split_and_join(sample: Sample, choice: random.Random) -> None:
    size = choice.randrange(1, len(sample.content))
    blocks = sample.codec.split(memoryview(sample.content)[:size])
    assert sample.codec.join(blocks, size) == sample.content[:size]


def refuse(sample: Sample, choice: random.Random) -> None:
    codec = sample.codec
    few = {i: sample.shards[i] for i in choice.sample(range(codec.n), codec.k - 1)}
    absent = next(i for i in range(codec.n) if i not in few)
    try:
        codec.reconstruct(few, [absent])
    except gfcode.UnrecoverableError:
        return
    raise AssertionError("made a shard from too few")


VERBS = (encode, decode, reconstruct, decode_range, verify, update, progressive, split_and_join, refuse)
#: Out of twenty calls; the dearest least.
WEIGHTS = (6, 4, 4, 2, 0.5, 0.5, 0.5, 1, 1.5)


def rss() -> int:
    """Bytes of memory that the process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(calls: int | None, seconds: float | None, threads: int, seed: int = 0) -> Result:
    """Call until so many calls are made, or so many seconds are over."""
    result, work = Result(), samples()
    counter, stop, started = itertools.count(), threading.Event(), time.monotonic()
    warm = max(1000 * len(VERBS), (calls or 0) // 10)
    counts: list[Counter[str]] = [Counter() for _ in range(threads)]

    def run(number: int) -> None:
        choice, mine = random.Random(seed * 1000 + number), counts[number]
        while not stop.is_set():
            call = next(counter)
            elapsed = time.monotonic() - started
            if (calls is not None and call >= calls) or (seconds is not None and elapsed >= seconds):
                return
            late = seconds is None or elapsed >= seconds / 10
            if not result.first_rss and call >= warm and late:
                result.first_rss = rss()
            verb, sample = choice.choices(VERBS, WEIGHTS)[0], choice.choice(work)
            try:
                verb(sample, choice)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the run has failed
                result.failures.append(f"{verb.__name__} of {sample.codec!r}: {error!r}")
                stop.set()
                return
            mine[verb.__name__] += 1

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for count in counts:
        result.by_verb += count
    result.calls, result.seconds = result.by_verb.total(), time.monotonic() - started
    result.last_rss = rss()
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long; 10 unless --calls is given")
    parser.add_argument("--calls", type=int, help="how many calls")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--growth", type=float, default=16.0, help="MiB by which memory may grow")
    options = parser.parse_args()
    minutes = 10.0 if options.minutes is None and options.calls is None else options.minutes
    result = soak(options.calls, None if minutes is None else 60 * minutes, options.threads)
    grown = (result.last_rss - (result.first_rss or result.last_rss)) / (1 << 20)
    if not result.first_rss:
        result.failures.append("too short a run to judge memory")
    if grown > options.growth:
        result.failures.append(f"memory grew by {grown:.1f} MiB")
    report = {
        "calls": result.calls,
        "seconds": round(result.seconds, 1),
        "threads": options.threads,
        "rss_mib": round(result.last_rss / (1 << 20), 1),
        "grown_mib": round(grown, 2),
        "by_verb": dict(result.by_verb),
        "failures": result.failures,
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
