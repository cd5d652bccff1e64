"""Six nodes, two of them killed; a repair in the background; reads while a writer replaces an object."""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from examples.shard_store.store import Store

K, M = 4, 2


class Nodes:
    """Processes of nodes. They end with this process, at the latest."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []
        self.addresses: list[tuple[str, int]] = []
        for number in range(count):
            process, address = self._start(number)
            self.processes.append(process)
            self.addresses.append(address)

    def _start(self, number: int) -> tuple["subprocess.Popen[str]", tuple[str, int]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "examples.shard_store.node", str(self.folder / f"node{number}")],
            cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        return process, ("127.0.0.1", int(process.stdout.readline()))

    def kill(self, number: int) -> None:
        """End a node without warning."""
        self.processes[number].kill()
        self._reap(self.processes[number])

    def return_empty(self, number: int) -> None:
        """Start a node again, its disk new."""
        shutil.rmtree(self.folder / f"node{number}")
        self.processes[number], self.addresses[number] = self._start(number)

    def close(self) -> None:
        """End all nodes."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
            self._reap(process)

    @staticmethod
    def _reap(process: "subprocess.Popen[str]") -> None:
        process.wait(10)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


class Background:
    """Threads whose failures are not lost."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def start(self, work: Callable[[], None]) -> threading.Thread:
        """Run a function in a thread; if it fails, all stop."""

        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised again by `finish`
                self._failures.append(error)
                self.stop.set()

        thread = threading.Thread(target=guarded)
        self._threads.append(thread)
        thread.start()
        return thread

    def finish(self) -> None:
        """Stop, wait for all, and raise what went wrong."""
        self.stop.set()
        for thread in self._threads:
            thread.join(30)
        if self._failures:
            raise self._failures[0]


def read_with_nodes_killed(store: Store, objects: dict[str, bytes], choice: random.Random) -> int:
    """Read all objects, and parts of them; return how many parts."""
    parts = 0
    for name, data in objects.items():
        assert store.get(name) == data
        for _ in range(3):
            start = choice.randrange(len(data))
            length = choice.randrange(1, 5000)
            assert store.get(name, start, length) == data[start : start + length]
            parts += 1
    return parts


def read_while_written(store: Store, objects: dict[str, bytes], node: int, seconds: float) -> dict[str, int]:
    """Repair a node in the background, and read an object that a writer replaces again and again."""
    counts = {"degraded": 0, "updates": 0, "repaired": 0}
    versions = [bytes([65 + i % 26]) * (50_000 + 1000 * i) for i in range(1000)]
    store.put("changing", versions[0])
    background = Background()

    def repair() -> None:
        counts["repaired"] = store.repair(node, objects)

    def write() -> None:
        for data in versions[1:]:
            if background.stop.is_set():
                return
            assert store.put("changing", data) == K + M - 1
            counts["updates"] += 1

    repairing = background.start(repair)
    background.start(write)
    end, last = time.monotonic() + seconds, 0
    while not background.stop.is_set() and (time.monotonic() < end or not counts["updates"]):
        found = store.get("changing")
        assert found in versions[last:], "a read mixes versions, or goes back"
        last = versions.index(found)
        counts["degraded"] += 1
    repairing.join(30)
    background.finish()
    return counts


def run(folder: Path, seconds: float, say: Callable[[str], object] = print) -> dict[str, int]:
    """Run the scenes; return what was counted. Raises AssertionError at the first wrong byte."""
    choice = random.Random(7)
    objects = {f"object{i}": choice.randbytes(choice.choice((1, 1000, 70_000, 300_000))) for i in range(8)}
    nodes = Nodes(folder, K + M)
    store = Store(nodes.addresses, K)
    try:
        for name, data in objects.items():
            assert store.put(name, data) == K + M
        say(f"put {len(objects)} objects on {K + M} nodes")
        nodes.kill(1)
        nodes.kill(4)
        parts = read_with_nodes_killed(store, objects, choice)
        say("got all of them, and parts of them, with nodes 1 and 4 killed")
        nodes.return_empty(1)
        assert sorted(store.missing(1, objects)) == sorted(objects)
        counts = read_while_written(store, objects, 1, seconds)
        assert store.missing(1, objects) == []
        say(f"read {counts['degraded']} times while {counts['updates']} versions were written; node 1 is repaired")
        nodes.kill(0)  # with 4 still gone, node 1's new shards are needed
        for name, data in objects.items():
            assert store.get(name) == data
        say("got all of them from the repaired node and three others")
        return {"parts": parts, **counts}
    finally:
        store.close()
        nodes.close()


def main() -> None:
    """Run in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of reads while a writer updates")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        print(run(Path(folder), seconds))


if __name__ == "__main__":
    main()
