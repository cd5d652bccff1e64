"""Early write-back: a hint for all that a durable run writes, and never more than one."""

from pathlib import Path
from typing import Any

import pytest

from gfcode import decode_file, encode_file, repair_set
from gfcode.pipeline import encode, repair, sink, writeback
from tests.unit.shard_files import random_bytes


@pytest.fixture
def hinted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Collect offsets and lengths."""
    calls: list[tuple[int, int]] = []
    for module in (encode, repair, sink):
        monkeypatch.setattr(module, "start_write_back", lambda _, offset, length: calls.append((offset, length)))
    return calls


@pytest.mark.parametrize("durable", [True, False])
def test_all_that_is_written_is_hinted_at_if_it_is_to_be_durable(
    tmp_path: Path, hinted: list[tuple[int, int]], durable: bool
) -> None:
    source = tmp_path / "source"
    source.write_bytes(random_bytes(300_000))
    report = encode_file(source, k=3, m=2, frame=4096, out=tmp_path / "set", durable=durable, threads=1)
    lengths = [sum(length for _, length in hinted)]
    hinted.clear()
    decode_file(tmp_path / "set", tmp_path / "back", durable=durable)
    lengths.append(sum(length for _, length in hinted))
    hinted.clear()
    Path(report.paths[0]).unlink()
    repair_set(tmp_path / "set", durable=durable)
    lengths.append(sum(length for _, length in hinted))
    frames = report.bytes_written - 5 * 4096  # all but the metadata frames
    assert lengths == ([frames, 300_000, frames // 5] if durable else [0, 0, 0])


def test_a_hint_fails_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "f").open("wb") as file:
        writeback.start_write_back(file.fileno(), 0, 1 << 30)
        writeback.start_write_back(file.fileno(), -1, 1 << 30)
    writeback.start_write_back(-1, 0, 1 << 30)
    asked: list[Any] = []
    monkeypatch.setattr(writeback, "_sync_file_range", lambda: asked.append(1))
    writeback.start_write_back(0, 0, 1 << 30)
    assert asked
