"""A user's program, which type checkers in their strictest mode must accept; it also runs."""

import asyncio
import io
import mmap
import tempfile
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import gfcode

Bytes = npt.NDArray[np.uint8]


def blocks() -> None:
    codec = gfcode.Codec(4, 2)
    length: int = codec.block_multiple * 2
    data = np.zeros((4, length), np.uint8)
    parity = assert_type(codec.encode(data), Bytes)
    buffers = [bytearray(length) for _ in range(2)]
    assert_type(codec.encode([bytes(length), memoryview(bytes(length)), data[0], mmap.mmap(-1, length)]), Bytes)
    assert_type(codec.encode(data, out=buffers), list[bytearray])
    codec.encode_into(data, parity)
    shards: dict[int, Bytes | bytes] = {0: data[0], 2: bytes(length), 4: parity[0], 5: parity[1]}
    assert_type(codec.decode(shards), Bytes)
    made = assert_type(codec.reconstruct(shards, want=[1, 3]), dict[int, Bytes])
    print(made[1].sum())
    report: gfcode.VerifyReport = codec.verify(dict(enumerate([*data, *parity])))
    print(report.consistent, report.wrong, report.located)
    plan: gfcode.Plan = codec.plan(available=[0, 2, 4, 5], want=[1])
    repair: gfcode.RepairPlan = codec.repair_plan([1], length, within=(0, 100))
    print(plan.sources, [(read.shard, read.offset, read.length) for read in repair.reads], repair.bytes_read)
    progressive: gfcode.ProgressiveEncoder = codec.progressive(length)
    for index in progressive.missing:
        progressive.add(index, data[index])
    codec.update(parity, 0, data[0], data[1])
    print(codec.join(codec.split(b"some data"), 9), codec.decode_range(shards, 0, 9))
    field: gfcode.Field = gfcode.GF(8)
    matrix: gfcode.Matrix = codec.parity
    print(field.w, matrix.shape)
    preset: gfcode.Codec = gfcode.Codec.preset("klauspost", 4, 2)
    print(preset)
    try:
        codec.decode({0: data[0]})
    except gfcode.UnrecoverableError as error:
        print(error)
    except gfcode.GFCodeError:
        raise


def files(folder: Path) -> None:
    source = folder / "source"
    source.write_bytes(b"content" * 1000)
    encoded = gfcode.encode_file(source, k=4, m=2, out=folder / "shards", durable=False)
    print(encoded.size, gfcode.verify_set(folder / "shards").summary())
    gfcode.repair_set(folder / "shards")
    gfcode.decode_file(folder / "shards", folder / "decoded", durable=False)
    with gfcode.open_set(folder / "shards") as reader, io.BufferedReader(reader) as buffered:
        assert_type(reader, gfcode.SetReader)
        print(buffered.read(10), reader.read_at(5, 3))


def streams() -> None:
    outputs = [io.BytesIO() for _ in range(6)]
    report: gfcode.StreamReport = gfcode.encode_stream(io.BytesIO(b"content"), outputs, k=4)
    target = io.BytesIO()
    gfcode.decode_stream([io.BytesIO(output.getvalue()) for output in outputs[:4]], target)
    print(report.size, target.getvalue())


async def in_a_loop(
    reader: asyncio.StreamReader, writers: list[asyncio.StreamWriter | None], back: asyncio.StreamWriter
) -> None:
    await gfcode.encode_stream_async(reader, writers, k=4)
    await gfcode.decode_stream_async([reader, None], back)


if __name__ == "__main__":
    blocks()
    with tempfile.TemporaryDirectory() as name:
        files(Path(name))
    streams()
