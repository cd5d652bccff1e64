"""Shards in a GPU's memory: they stay there, and the cuda engine works on them whatever engine the code has."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gfcode.codec.plan import Plan
from gfcode.engine.arrays import is_device_array
from gfcode.engine.protocol import Product
from gfcode.engine.registry import get_engine
from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.params import Layout

__all__ = ["holds_device_arrays", "is_device_array", "multiply", "reconstruct"]

#: `Codec.plan`: from available and wanted shards to a plan.
PlanOf = Callable[[Iterable[int], Iterable[int]], Plan]


@runtime_checkable
class _DeviceEngine(Protocol):
    """An engine that works on arrays where they are."""

    def multiply(self, product: Product, data: object, out: Any = None) -> Any:
        """Enqueue matrix · data on the current stream."""
        ...


def multiply(product: Product, data: object, out: Any = None) -> Any:
    """Enqueue matrix · data on the caller's current CuPy stream; return `out`, or a new array.

    Raises
    ------
    EngineUnavailableError
        If there is no cuda engine here, with the reason.
    BlockError, DeviceMemoryError, DeviceError
    """
    engine = get_engine("cuda")
    if not isinstance(engine, _DeviceEngine):
        raise EngineUnavailableError(f"the engine {engine.name!r} cannot work on device arrays")
    return engine.multiply(product, data, out)


def holds_device_arrays(shards: object) -> bool:
    """Tell whether shards are in device memory. The first one tells, so that the question costs nothing.

    Raises
    ------
    BlockError
        If the first one is and another is not.
    """
    if not isinstance(shards, Mapping):
        return False  # whoever looks at the blocks refuses it
    first = next(iter(shards.values()), None)
    if isinstance(first, np.ndarray) or not is_device_array(first):
        return False
    for index, shard in shards.items():
        if not is_device_array(shard):
            raise BlockError(f"shard {index} is not in device memory, as others are; copy one to where the others are")
    return True


def reconstruct(
    plan_of: PlanOf, layout: Layout, shards: Mapping[int, Any], want: Iterable[int], out: Any = None
) -> dict[int, Any]:
    """Make wanted shards from others in device memory, on the caller's current CuPy stream.

    Parameters
    ----------
    plan_of : callable
    layout : Layout
    shards : mapping of shard index to device array
        Each of shape (length,) or (stripes, length).
    want : iterable of int
    out : list of device arrays, optional
        Where to put those of `want` that are not given, in that order.

    Returns
    -------
    dict of int to device array
        In the order of `want`; a wanted shard that was given is returned as it was given.
    """
    wanted = list(want)
    absent = [shard for shard in wanted if shard not in shards]
    new: dict[int, Any] = {}
    if absent:
        plan = plan_of(shards, absent)
        made = multiply(Product(plan.matrix, layout), [shards[shard] for shard in plan.sources], out)
        rows = made if out is not None else [made[..., i, :] for i in range(len(absent))]
        new = dict(zip(absent, rows, strict=True))
    return {shard: new[shard] if shard in new else shards[shard] for shard in wanted}
