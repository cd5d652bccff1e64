"""What a peer is to the tests: something else that encodes and rebuilds shards."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = [
    "Bytes",
    "Peer",
    "PeerError",
    "PeerMissingError",
    "Variant",
    "aligned",
    "complete",
    "debian_version",
    "filled",
    "program_cache",
]

Bytes = npt.NDArray[np.uint8]


class PeerMissingError(Exception):
    """The peer is not installed here; the message says what is missing and what would bring it."""


class PeerError(Exception):
    """The peer refuses these parameters; the message is the peer's own where it has one."""


class Peer(Protocol):
    """One code of one implementation."""

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call, for the golden vectors."""
        ...

    def encode(self, data: Bytes, m: int) -> Bytes:
        """Parity of shape (m, length) for data of shape (k, length).

        Raises
        ------
        PeerError
            If the peer refuses this k and m.
        """
        ...

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Return the lost shards from the others."""
        ...


@dataclass(frozen=True)
class Variant:
    """A preset beside the peer that is to agree with it.

    Parameters
    ----------
    preset : str
        Name of the preset.
    loaders : tuple of callable
        Each returns a peer, or raises `PeerMissingError`.
    options : dict
        Keyword arguments of the preset beyond k and m.
    shapes : tuple of (k, m)
        Shapes to compare, the largest that the peer takes last.
    refused : tuple of (k, m)
        Shapes that the peer refuses and the preset must refuse too.
    unit : int
        Bytes that lengths must be a multiple of on both sides.
    uncertified : tuple of (k, m)
        Shapes whose matrix is not MDS or not provably so.
    """

    preset: str
    loaders: tuple[Callable[[], Peer], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    shapes: tuple[tuple[int, int], ...] = ((4, 2), (6, 3), (10, 4))
    refused: tuple[tuple[int, int], ...] = ()
    unit: int = 1
    uncertified: tuple[tuple[int, int], ...] = ()

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths to compare: 64 and 4,096 bytes or the least multiples of `unit` above, and one odd or uneven."""
        short, long = (-(-length // self.unit) * self.unit for length in (64, 4096))
        return tuple(dict.fromkeys((short, long, 1021 if self.unit == 1 else 3 * self.unit)))

    def peers(self) -> tuple[list[Peer], list[str]]:
        """Return the peers that can be had here, and why the others cannot."""
        found: list[Peer] = []
        missing: list[str] = []
        for load in self.loaders:
            try:
                found.append(load())
            except PeerMissingError as error:
                missing.append(str(error))
        return found, missing

    @property
    def title(self) -> str:
        """The variant as a test id."""
        options = "".join(f",{name}={value}" for name, value in self.options.items())
        return f"{self.preset}{options}"


def filled(k: int, length: int, seed: int = 0) -> Bytes:
    """Make data shards of a linear congruential generator, the same in every language.

    Byte t of the row-major (k, length) array is the top byte of state t + 1 of
    x -> 1664525 · x + 1013904223 mod 2^32, started at `seed`.

    Parameters
    ----------
    k, length : int
        Shape.
    seed : int
        First state.

    Returns
    -------
    ndarray of uint8, shape (k, length)
    """
    count = k * length
    # x_t = a^t · x_0 + c · (1 + a + .. + a^(t-1)): powers and their sums, by wrapping products and a running sum.
    factors = np.full(count + 1, 1664525, np.uint32)
    factors[0] = 1
    powers = np.cumprod(factors, dtype=np.uint32)
    sums = np.cumsum(powers[:count], dtype=np.uint32)
    states = np.asarray(powers[1:] * np.uint32(seed) + sums * np.uint32(1013904223), np.uint32)
    return np.asarray(states >> np.uint32(24), np.uint8).reshape(k, length)


def aligned(count: int, length: int, alignment: int = 64) -> Bytes:
    """Make a zeroed (count, length) array whose rows are contiguous and start at multiples of `alignment`."""
    pitch = -(-max(length, 1) // alignment) * alignment
    raw = np.zeros(count * pitch + alignment, np.uint8)
    start = -raw.__array_interface__["data"][0] % alignment
    return raw[start : start + count * pitch].reshape(count, pitch)[:, :length]


def program_cache() -> str:
    """Folder for built peer programs, kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "gfcode-tests", "peers")
    os.makedirs(folder, exist_ok=True)
    return folder


def debian_version(package: str) -> str:
    """Version of an installed Debian package, or an empty string."""
    try:
        found = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout


def complete(k: int, m: int, shards: Mapping[int, Bytes], lost: Iterable[int]) -> list[Bytes]:
    """All n shards in order, the lost ones as zeros."""
    length = len(next(iter(shards.values())))
    gone = set(lost)
    return [np.zeros(length, np.uint8) if i in gone else shards[i] for i in range(k + m)]


if sys.maxsize < 2**63 - 1:  # pragma: no cover
    raise RuntimeError("the peers are driven on 64-bit machines only")
