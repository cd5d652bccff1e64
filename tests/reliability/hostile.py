"""Hostile shards: metadata and headers that lie, with right checksums, and files that are no files.

Whoever makes such files can compute every checksum that needs no key. Commands must end with one of gfcode's errors or
an answer, in memory that the real size of the files bounds, and write only where they were told to.
"""

import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from gfcode.errors import GFCodeError
from gfcode.pipeline import decode_file, repair_set, verify_set
from gfcode.pipeline.frame import HEADER_BYTES, XXH3, FrameHeader, seal
from gfcode.pipeline.probe import inspect_shard
from tests.reliability.samples import Sample, samples, scratch_directory
from tests.reliability.scene import BrokenPromiseError, Tree, require

__all__ = ["MEMORY", "hostile_campaign", "hostile_trial", "metadata_frame"]

#: Bytes of address space that trials may take beyond what the process had before them: two buffers for a stripe of
#: 64 MiB, the most that a set may have, and what is kept of each of 65,536 shards.
MEMORY = 256 << 20
_HUGE = (2**15, 2**16, 2**16 + 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30)
_SMALL = (-1, 0, 1, 2, 3, 5, 64, 255, 256, 512, 4096)
_MANY = ((30_000, 30_000), (1, 65_535), (65_535, 1))
_NAMES = ("..", ".", "", "/etc/passwd", "../up", "a/b", "a\0b", "x" * 300, "x" * 5000, "\udcff", "\n", "-rf", "é" * 130)


def _value(rng: random.Random) -> Any:
    """Return something to stand in a JSON field."""
    match rng.randrange(8):
        case 0 | 1 | 2:
            return rng.choice(_HUGE)
        case 3 | 4:
            return rng.choice(_SMALL)
        case 5:
            return rng.choice(_NAMES)
        case 6:
            return rng.choice((None, True, 1.5, 1e308, float("nan"), float("inf"), [], {}, [[]], "0" * 32))
        case _:
            nested: Any = 0
            for _ in range(rng.choice((3, 50, 900))):
                nested = [nested] if rng.random() < 0.9 else {"a": nested}
            return nested


def metadata_frame(fields: dict[str, Any], shard: int, rng: random.Random) -> bytes:
    """Return a metadata frame with a right checksum around any JSON; its header says what the JSON says, if it can."""
    text = json.dumps(fields).encode()
    length = -(-(HEADER_BYTES + len(text)) // 4096) * 4096

    def number(key: str, most: int) -> int:
        value = fields.get(key)
        return value if type(value) is int and 0 <= value <= most else rng.randrange(1, 9)

    try:
        set_id = bytes.fromhex(str(fields.get("set")))
    except ValueError:
        set_id = b""
    set_id = set_id[:16].ljust(16, b"\0")
    header = FrameHeader(
        1, set_id, shard, number("k", 2**32 - 1), number("m", 2**32 - 1), number("w", 2**16 - 1), 0,
        length - HEADER_BYTES, len(text),
    )  # fmt: skip
    frame = bytearray(header.pack() + text + bytes(length - HEADER_BYTES - len(text)))
    seal(frame, XXH3)
    return bytes(frame)


def _lying_fields(rng: random.Random, sample: Sample) -> dict[str, Any]:
    text = sample.shards[0][HEADER_BYTES : sample.starts[1]].rstrip(b"\0")
    fields: dict[str, Any] = json.loads(text)
    for key in rng.choices(sorted(fields), k=rng.choice((0, 1, 1, 2, 4))):
        fields[key] = _value(rng)
    way = rng.randrange(6)
    if way == 0:  # more shards than there are, in bounds
        fields["k"], fields["m"] = rng.choice((rng.choice(_MANY), (200, 50), (7, 1), (3, 1000), (1000, 3)))
        fields["w"], fields["polynomial"] = 16, 0x1100B
        fields["layout"], fields["packet_bytes"], fields["block_length"] = "words", 0, 64
        del fields["parity"]
        fields["parity_digest"], fields["family"] = (
            "0" * 32,
            rng.choice(("cauchy", "vandermonde", "powers", "fft", "?")),
        )
    elif way == 1:
        fields["size"] = rng.choice((2**20, 2**34, 2**45, 2**62, 2**63 - 1, None))
    elif way == 2:
        fields["block_length"] = rng.choice((512, 2**16, 2**20, 2**22 - 512))
        fields["size"] = rng.choice((fields["size"], 2**40, None))
    elif way == 3 and isinstance(fields.get("parity"), list):
        order = rng.choice((2, 255, 256, 2**16))
        fields["parity"] = [[rng.randrange(order) for _ in range(sample.k)] for _ in range(sample.m)]
    elif way == 4:
        fields["polynomial"] = rng.choice((256, 257, 283, 285, 511, 2**32 + 1))
    return fields


def _lying_frame(rng: random.Random, frame: bytearray) -> None:
    """Change fields of a frame's header, and make its checksum right again."""
    for _ in range(rng.choice((1, 1, 3))):
        at, count = rng.choice(
            ((26, 2), (28, 4), (32, 16), (48, 4), (52, 4), (56, 4), (60, 2), (64, 8), (72, 8), (80, 8))
        )
        frame[at : at + count] = rng.choice(
            (rng.randbytes(count), b"\xff" * count, bytes(count), b"\1" + bytes(count - 1))
        )
    seal(frame, XXH3)


def _write_shards(rng: random.Random, directory: Path) -> None:
    sample, _ = rng.choice([pair for pair in samples() if b'"xxh3-128"' in pair[0].shards[0]])
    fields = _lying_fields(rng, sample) if rng.random() < 0.8 else None
    everywhere = rng.random() < 0.7
    for shard in range(sample.n):
        frames = [bytearray(sample.frame(shard, stripe)) for stripe in range(-1, sample.stripes)]
        if fields is not None and (everywhere or shard == 0):
            frames[0] = bytearray(metadata_frame(fields, shard, rng))
        for frame in frames[1:]:
            if rng.random() < 0.1:
                _lying_frame(rng, frame)
        (directory / sample.name(shard)).write_bytes(b"".join(frames))
    if rng.random() < 0.3:
        _no_files(rng, directory)


def _no_files(rng: random.Random, directory: Path) -> None:
    """Put something in the place of a shard that is no regular file, or beside it under a hidden name."""
    victim = rng.choice(sorted(directory.iterdir()))
    if rng.random() < 0.5:
        victim = victim.with_name(f".{victim.name}.{rng.randrange(16**16):016x}.tmp")
    victim.unlink(missing_ok=True)
    match rng.randrange(6):
        case 0:
            os.mkfifo(victim)
        case 1:
            victim.symlink_to(
                rng.choice(("/dev/zero", "/dev/tty", "/dev/null", "/proc/self/mem", victim.name, "nowhere"))
            )
        case 2:
            victim.mkdir()
        case 3:
            with socket.socket(socket.AF_UNIX) as listener:
                os.chdir(directory)
                listener.bind(victim.name[-90:])
        case 4:
            with victim.open("wb") as file:
                file.truncate(rng.choice((2**20, 2**23)))  # sparse
        case _:
            victim.write_bytes(b"GFSHARD1" + rng.randbytes(rng.choice((0, 100, 504, 9000))))


def hostile_trial(seed: int, number: int, base: Path) -> str:
    """Run every command on a hostile set.

    Returns
    -------
    str
        What verify said.

    Raises
    ------
    BrokenPromiseError
        If an error is none of gfcode's, or something was written where nobody said so.
    """
    rng = random.Random(f"hostile {seed}/{number}")
    for entry in os.scandir(base):
        shutil.rmtree(entry.path)
    shards, here = base / "up" / "s", base / "up" / "here"
    shards.mkdir(parents=True)
    here.mkdir()
    (base / "up" / "passwd").write_bytes(b"precious")
    _write_shards(rng, shards)
    os.chdir(here)
    before = _files(base)
    named: Any = rng.choice((shards, shards, sorted(shards.iterdir())))
    result = "no shard"
    for name, run in (
        ("info", lambda: [inspect_shard(path) for path in sorted(shards.iterdir()) if not path.is_dir()]),
        ("verify", lambda: verify_set(named, threads=1)),
        ("decode", lambda: decode_file(named, threads=1, durable=False)),
        ("repair --out", lambda: repair_set(named, out=here / "fixed", threads=1, durable=False)),
        ("repair", lambda: repair_set(named, threads=1, durable=False)),
    ):
        try:
            report: Any = run()
        except GFCodeError as error:
            require(
                "\n" not in str(error) and len(str(error)) < 20_000, f"{name}: an error of several lines, or endless"
            )
            report = error
        except FileNotFoundError:
            require(name == "info", f"{name}: FileNotFoundError")
        except OSError as error:
            require(name in {"info", "decode", "repair", "repair --out"}, f"{name}: {error!r}")
        except Exception as error:
            raise BrokenPromiseError(f"trial {number} of seed {seed}, {name}: {error!r:.500}") from error
        if name == "verify":
            result = getattr(report, "state", type(report).__name__)
        after = _files(base)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        allowed = ("up/s/",) if name == "repair" else ("up/here/",) if name in {"decode", "repair --out"} else ()
        stray = [path for path in changed if not path.startswith(allowed)] if allowed else sorted(changed)
        require(not stray, f"trial {number} of seed {seed}, {name} wrote {stray}")
        before = after
    return result


def _files(base: Path) -> Tree:
    """Return regular files, and of sparse ones their length only."""
    found = {}
    for path in base.rglob("*"):
        if path.is_file() and not path.is_symlink():
            size = path.stat().st_size
            found[str(path.relative_to(base))] = path.read_bytes() if size < 2**19 else str(size).encode()
    return found


def hostile_campaign(count: int, seed: int, *, first: int = 0) -> Counter[str]:
    """Run trials in a process of bounded address space; count what verify said of each set."""
    command = [sys.executable, "-m", "tests.reliability.hostile", str(count), str(seed), str(first)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    if done.returncode:
        raise BrokenPromiseError(done.stderr.strip()[-2000:])
    return Counter(json.loads(done.stdout))


def _main(count: int, seed: int, first: int) -> None:
    counts: Counter[str] = Counter()
    with scratch_directory() as base:
        trials = base / "t"
        trials.mkdir()
        for number in range(-20, 0):  # what trials need once, kept apart from what they need each time
            hostile_trial(seed, number, trials)
        with open("/proc/self/statm") as file:
            limit = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for number in range(first, first + count):
            counts[hostile_trial(seed, number, trials)] += 1
        os.chdir("/")
    print(json.dumps(counts))


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:4]))
