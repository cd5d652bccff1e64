"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest

import gfcode
from examples.shard_store.demo import K, M, Nodes, run
from examples.shard_store.store import Store


def test_the_shard_store(tmp_path: Path) -> None:
    """Put, get with two nodes killed, repair in the background, degraded reads while a writer updates."""
    lines: list[str] = []
    counts = run(tmp_path, seconds=0.5, say=lines.append)
    assert len(lines) == 4
    assert counts["repaired"] == 8
    assert counts["degraded"] > 0
    assert counts["updates"] > 0


def test_a_node_that_gives_wrong_bytes_and_too_few_nodes(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, K + M)
    store = Store(nodes.addresses, K)
    try:
        store.put("object", bytes(range(256)) * 100)
        (shard,) = [path for path in (tmp_path / "node0").iterdir() if not path.name.startswith("index")]
        shard.write_bytes(bytes(len(shard.read_bytes())))
        assert store.get("object") == bytes(range(256)) * 100
        assert store.missing(0, ["object"]) == ["object"]
        assert store.repair(0, ["object"]) == 1
        assert store.missing(0, ["object"]) == []
        for number in (1, 2, 3):
            nodes.kill(number)
        with pytest.raises(gfcode.UnrecoverableError):
            store.get("object")
        with pytest.raises(OSError, match="only 3 nodes took other"):
            store.put("other", b"1")
        with pytest.raises(KeyError):
            store.get("other")
    finally:
        store.close()
        nodes.close()


def test_nodes_end_with_who_started_them(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "examples.shard_store.node", str(tmp_path / "node")], cwd=root, input="", text=True,
        capture_output=True, timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert 0 < int(done.stdout) < 65536
