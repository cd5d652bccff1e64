"""Compute the blocks of a batch that are not there from those that are."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gfcode.pipeline.batch import Batch
from gfcode.pipeline.metadata import Metadata

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gfcode.codec import Codec

__all__ = ["LazyCodec", "Restorable", "rebuild", "short_slots"]


class LazyCodec:
    """The codec of a set, built when the first block has to be computed: reading a sound set needs none.

    Parameters
    ----------
    metadata : Metadata
    engine : str or None
        An engine that is asked for by name is looked for at once, whether it will be needed or not.
    """

    def __init__(self, metadata: Metadata, engine: str | None) -> None:
        self._metadata, self._engine = metadata, engine
        self._lock = threading.Lock()
        self._codec = metadata.codec(engine) if engine is not None else None

    def get(self) -> "Codec":
        """Return the codec."""
        with self._lock:
            if self._codec is None:
                self._codec = self._metadata.codec(self._engine)
            return self._codec


class Restorable(Protocol):
    """A batch of which it is known what is there: a `Loader`, or what else has read frames."""

    @property
    def batch(self) -> Batch:
        """The frames."""
        ...

    @property
    def good(self) -> "npt.NDArray[np.bool_]":
        """Whether a sound frame stands in the batch, shape (n, S)."""
        ...


def short_slots(loader: Restorable) -> list[int]:
    """Return the slots of the loader's batch with fewer than k sound frames."""
    batch = loader.batch
    return _places(loader.good[:, : batch.count].sum(axis=0) < batch.k)


def rebuild(loader: Restorable, codec: LazyCodec, shards: Sequence[int]) -> int:
    """Compute those blocks of some shards that are not there. Every slot must have k sound frames.

    Returns
    -------
    int
        Blocks computed.

    Raises
    ------
    UnrecoverableError
        If a slot has fewer.
    """
    batch = loader.batch
    good = loader.good[:, : batch.count]
    lacking = ~good[list(shards)].all(axis=0)
    groups: dict[bytes, list[int]] = {}
    for slot in _places(lacking):
        groups.setdefault(good[:, slot].tobytes(), []).append(slot)
    computed = 0
    for slots in groups.values():
        pattern = good[:, slots[0]]
        want = [shard for shard in shards if not pattern[shard]]
        plan = codec.get().plan(_places(pattern), want)
        batch.apply(plan.operator, plan.sources, want, slots)
        computed += len(want) * len(slots)
    return computed


def _places(marked: Any) -> list[int]:
    """Return where an array of bool, shape (slots,), is true."""
    numbers: list[int] = marked.nonzero()[0].tolist()
    return numbers
