"""The client of the nodes: puts objects, gets them back whole or in part, and repairs nodes."""

import http.client
import json
import secrets
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

import xxhash

import gfcode

_T = TypeVar("_T")
_TIMEOUT = 2.0


@dataclass(frozen=True)
class Version:
    """What the index says of an object.

    Attributes
    ----------
    name, key : str
        Name of the object, and of its shards on the nodes.
    number : int
        Of the version; the highest is current.
    size : int
        Bytes.
    block : int
        Bytes of a shard.
    checksums : tuple of str
        XXH3-128 of each shard.
    """

    name: str
    key: str
    number: int
    size: int
    block: int
    checksums: tuple[str, ...]


class Store:
    """A store over n = k + m nodes.

    Parameters
    ----------
    addresses : list of (host, port)
        Of the nodes; node i has shard i of every object. May be changed when a node comes back elsewhere.
    k : int
        Data shards; the others are parity.
    """

    def __init__(self, addresses: list[tuple[str, int]], k: int) -> None:
        self.addresses = addresses
        self.codec = gfcode.Codec(k, len(addresses) - k)
        self._pool = ThreadPoolExecutor(2 * len(addresses), "nodes")
        self._writing = threading.Lock()

    def close(self) -> None:
        """End the threads that talk to nodes."""
        self._pool.shutdown()

    def put(self, name: str, data: bytes) -> int:
        """Store an object, or a new version of it; return how many nodes have it.

        Raises
        ------
        OSError
            If fewer than k nodes took it: the version before it stays current.
        """
        codec = self.codec
        with self._writing:
            blocks = codec.split(data)
            shards = [*blocks, *codec.encode(blocks)]
            before = self._index(name)
            checksums = tuple(xxhash.xxh3_128_hexdigest(shard) for shard in shards)
            version = Version(
                name, secrets.token_hex(8), before.number + 1 if before else 1, len(data), len(shards[0]), checksums
            )
            took = self._everywhere(lambda node: self._put(node, version.key, bytes(shards[node])))
            if len(took) < codec.k:
                raise OSError(f"only {len(took)} nodes took {name}, and k = {codec.k} are needed")
            entry = json.dumps(asdict(version)).encode()
            self._everywhere(lambda node: self._put(node, f"index.{name}", entry))
            return len(took)

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return an object or a part of it, of one version, from whichever nodes answer.

        Raises
        ------
        KeyError
            If there is none.
        gfcode.UnrecoverableError
            If fewer than k nodes have sound shards.
        """
        version = self._index(name)
        if version is None:
            raise KeyError(name)
        stop = version.size if length is None else min(version.size, offset + length)
        if offset == 0 and stop == version.size:
            return self._whole(version)
        return self._part(version, offset, stop)

    def _whole(self, version: Version) -> bytes:
        codec = self.codec
        shards = self._fetch(version, range(codec.k))
        if len(shards) < codec.k:
            shards |= self._fetch(version, range(codec.k, codec.n))
        data: bytes = codec.join(codec.decode(shards), version.size)
        return data

    def _part(self, version: Version, offset: int, stop: int) -> bytes:
        """Fetch only the strips of a part. The checksums are of whole shards: what nodes give here is trusted."""
        block = version.block
        pieces = []
        while offset < stop:
            shard, low = divmod(offset, block)
            high = min(block, low + stop - offset)
            pieces.append(self._strips(version, shard, low, high))
            offset += high - low
        return b"".join(pieces)

    def _strips(self, version: Version, shard: int, low: int, high: int) -> bytes:
        """Return some bytes of one data shard: its node's, or else made from others'."""
        found = self._try(lambda: self._range(shard, version.key, low, high))
        if found is not None:
            return found
        down = {shard}
        while True:
            available = [node for node in range(self.codec.n) if node not in down]
            plan = self.codec.repair_plan([shard], version.block, available=available, within=(low, high))
            end = plan.offset + plan.length
            parts = self._everywhere(partial(self._range, name=version.key, start=plan.offset, stop=end), plan.sources)
            if len(parts) == len(plan.sources):
                made = self.codec.reconstruct(parts, [shard])[shard]
                return bytes(made[low - plan.offset : high - plan.offset])
            down.update(node for node in plan.sources if node not in parts)

    def missing(self, node: int, names: Iterable[str]) -> list[str]:
        """Return the objects of which a node has no sound shard."""
        found = []
        for name in names:
            version = self._index(name)
            if version is not None and node not in self._fetch(version, [node]):
                found.append(name)
        return found

    def repair(self, node: int, names: Iterable[str]) -> int:
        """Make what a node lacks, from any k others; return how many shards."""
        made = 0
        for name in self.missing(node, names):
            version = self._index(name)
            if version is None:
                continue
            plan = self.codec.repair_plan([node], version.block)
            shards = self._fetch(version, plan.sources)
            if len(shards) < len(plan.sources):
                shards |= self._fetch(version, (other for other in range(self.codec.n) if other != node))
            block = bytes(self.codec.reconstruct(shards, [node])[node])
            if xxhash.xxh3_128_hexdigest(block) != version.checksums[node]:
                raise gfcode.UnrecoverableError(f"shard {node} of {name} came out wrong")
            self._put(node, version.key, block)
            self._put(node, f"index.{name}", json.dumps(asdict(version)).encode())
            made += 1
        return made

    def _index(self, name: str) -> Version | None:
        """Return the newest version that any node knows."""
        entries = self._everywhere(lambda node: self._get(node, f"index.{name}")).values()
        newest = max(map(json.loads, entries), key=lambda fields: fields["number"], default=None)
        return None if newest is None else Version(**{**newest, "checksums": tuple(newest["checksums"])})

    def _fetch(self, version: Version, nodes: Iterable[int]) -> dict[int, bytes]:
        """Return the sound shards that these nodes have."""
        shards = self._everywhere(lambda node: self._get(node, version.key), nodes)
        return {
            node: shard for node, shard in shards.items() if xxhash.xxh3_128_hexdigest(shard) == version.checksums[node]
        }

    # HTTP

    def _everywhere(self, call: Callable[[int], _T], nodes: Iterable[int] | None = None) -> dict[int, _T]:
        """Ask nodes at once, all of them by default; return the answers of those that had one."""
        asked = range(self.codec.n) if nodes is None else list(nodes)
        answers = self._pool.map(lambda node: self._try(lambda: call(node)), asked)
        return {node: answer for node, answer in zip(asked, answers, strict=True) if answer is not None}

    @staticmethod
    def _try(call: Callable[[], _T]) -> _T | None:
        try:
            return call()
        except (OSError, http.client.HTTPException):
            return None

    def _request(self, node: int, method: str, name: str, body: bytes | None = None, **headers: str) -> bytes:
        connection = http.client.HTTPConnection(*self.addresses[node], timeout=_TIMEOUT)
        try:
            connection.request(method, f"/{name}", body, headers)
            answer = connection.getresponse()
            data = answer.read()
            if answer.status >= 300:
                raise OSError(f"node {node} answers {answer.status} for {name}")
            return data
        finally:
            connection.close()

    def _put(self, node: int, name: str, data: bytes) -> bool:
        self._request(node, "PUT", name, data)
        return True

    def _get(self, node: int, name: str) -> bytes:
        return self._request(node, "GET", name)

    def _range(self, node: int, name: str, start: int, stop: int) -> bytes:
        data = self._request(node, "GET", name, None, Range=f"bytes={start}-{stop - 1}")
        if len(data) != stop - start:
            raise OSError(f"node {node} has {len(data)} bytes of {name}, not {stop - start}")
        return data
