"""Targets for fuzzing: what reads bytes that others have written. Each raises where more than a typed error comes out.

`python -m tests.reliability.fuzz TARGET SECONDS` runs one under atheris (`pip install atheris`), which is guided by
coverage, from the seeds here; without atheris, `test_fuzz.py` gives each target random changes of the same seeds.
"""

import contextlib
import importlib
import io
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["SEEDS", "TARGETS", "mutated"]

atheris: Any = importlib.import_module("atheris") if __name__ == "__main__" else None
if __name__ == "__main__":
    hooks: Any = atheris.instrument_imports(include=["gfcode.pipeline"])
else:
    hooks = contextlib.nullcontext()
with hooks:
    from gfcode.errors import GFCodeError, ParameterError, ShardFormatError
    from gfcode.pipeline import decode_file, verify_set
    from gfcode.pipeline.frame import COVER, HASHES, HEADER_BYTES, XXH3, parse_header, seal
    from gfcode.pipeline.metadata import parse_metadata
    from gfcode.pipeline.probe import metadata_frame
    from gfcode.pipeline.scrub_state import ScrubState
    from tests.reliability.hostile import metadata_frame as framed
    from tests.reliability.samples import make_sample, scratch_directory
    from tests.reliability.scene import require

#: Largest code whose matrix is built: larger ones take longer than they tell.
_MOST = 40
_SAMPLE = make_sample(2, 1, 2_500, 3, {"frame": 1024})


def header(data: bytes) -> None:
    """Read a frame header: it is refused, or says just what its bytes say."""
    try:
        parsed = parse_header(data)
    except ShardFormatError:
        return
    packed = parsed.pack()
    require(packed[COVER:] == data[COVER:HEADER_BYTES], "a header that was read says something else")


def metadata(data: bytes) -> None:
    """Read the text of a metadata frame: it is refused, or its frame reads back, and its codec is built or refused."""
    try:
        parsed = parse_metadata(data)
        frame = bytearray(parsed.frame(parsed.n - 1))
        require(metadata_frame(frame, {}, HASHES) == (parsed, parsed.n - 1), "a metadata frame reads back otherwise")
        if parsed.n <= _MOST:
            parsed.codec("numpy")
    except ShardFormatError as error:
        require("\n" not in str(error), "an error of several lines")


def frame(data: bytes) -> None:
    """Read a metadata frame with a right checksum."""
    whole = bytearray(data[: len(data) // 512 * 512])
    if len(whole) >= HEADER_BYTES:
        seal(whole, XXH3)
    with contextlib.suppress(ShardFormatError):
        metadata_frame(whole, {}, HASHES)


def shards(data: bytes) -> None:
    """Verify and decode three files of a set: metadata up to a zero byte, then frames of 1 KiB with right checksums."""
    text, _, rest = data.partition(b"\0")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    with scratch_directory() as base:
        for shard in range(3):
            whole = framed(fields, shard, random.Random(0)) if type(fields) is dict else text
            for start in range(0, min(len(rest), 1 << 14), 1024):
                part = bytearray(rest[start : start + 1024])
                if len(part) == 1024:
                    part[48:52] = shard.to_bytes(4, "little")
                    seal(part, XXH3)
                whole += bytes(part)
            (base / f"file.{shard:03d}.gfs").write_bytes(whole)
        for run in (lambda: verify_set(base, threads=1), lambda: decode_file(base, io.BytesIO(), threads=1)):
            try:
                run()
            except GFCodeError as error:
                require("\n" not in str(error) and len(str(error)) < 20_000, "an error of several lines, or endless")


def state(data: bytes) -> None:
    """Read the state file of a scrub: it is refused, or is the same when it was saved and read again."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            loaded = ScrubState.load(file.name, "/")
        except ParameterError:
            return
        loaded.save(file.name)
        require(ScrubState.load(file.name, "/") == loaded, "a state reads back otherwise")


_TEXT = _SAMPLE.shards[0][HEADER_BYTES : _SAMPLE.starts[1]].rstrip(b"\0")
_STATE = ScrubState("/", started="2026-01-01", cursor="0" * 32, worst="intact", last={"sets": 1})

TARGETS: dict[str, Callable[[bytes], None]] = {
    "header": header, "metadata": metadata, "frame": frame, "shards": shards, "state": state,
}  # fmt: skip
SEEDS: dict[str, tuple[bytes, ...]] = {
    "header": (_SAMPLE.frame(0, -1)[:512], _SAMPLE.frame(2, 1)[:512]),
    "metadata": (_TEXT,),
    "frame": (_SAMPLE.frame(1, -1),),
    "shards": (_TEXT + b"\0" + b"".join(_SAMPLE.frame(0, stripe) for stripe in range(_SAMPLE.stripes)),),
    "state": (json.dumps({"version": 1, **{key: getattr(_STATE, key) for key in _STATE.__slots__}}).encode(),),
}


def mutated(seed: bytes, rng: random.Random) -> bytes:
    """Return a seed with a few changes, where numbers, names and structure are."""
    data = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = rng.randbytes(1)
            case 1:
                del data[at : at + rng.choice((1, 4, 40))]
            case 2:
                data[at:at] = rng.choice((b"9" * 30, b"-", b"[", b'"', b"\0", b"null", b"1e9", rng.randbytes(4)))
            case 3:
                data[at : at + 4] = rng.choice((b"\xff" * 4, bytes(4), b"\1\0\0\0", b"true", b"2147"))
            case _:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.choice((1, 8, 200))]
    return bytes(data)


def _main(name: str, seconds: str) -> None:
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="gfcode-fuzz-") as directory:
        corpus = Path(directory) / "corpus"
        corpus.mkdir()
        for number, seed in enumerate(SEEDS[name]):
            (corpus / str(number)).write_bytes(seed)
        words = {f'"{key}"' for key in json.loads(_TEXT)} | {f'"{key}"' for key in _STATE.__slots__}
        words |= {"null", "true", "[]", "GFSHARD1", "blake3", "words", "explicit", "cauchy", "9223372036854775807"}
        dictionary = Path(directory) / "words"
        dictionary.write_text("".join(json.dumps(word) + "\n" for word in sorted(words)))
        options = [f"-max_total_time={seconds}", "-max_len=16384", "-rss_limit_mb=1024", "-timeout=20"]
        atheris.Setup(
            [sys.argv[0], *options, f"-dict={dictionary}", f"-artifact_prefix={os.getcwd()}/", str(corpus)], target
        )
        atheris.Fuzz()


if __name__ == "__main__":
    _main(*sys.argv[1:3])
