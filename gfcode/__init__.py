"""Erasure-coded storage over Galois fields.

All but the errors is imported at first use, so that ``import gfcode`` loads neither NumPy nor any engine.
"""

import importlib
from typing import TYPE_CHECKING, Any

from gfcode import errors
from gfcode.engine.locks import LOADING
from gfcode.errors import *  # noqa: F403 - errors are listed once, where they are defined

if TYPE_CHECKING:
    from gfcode.codec import Codec, Plan, ProgressiveEncoder, RepairPlan, VerifyReport
    from gfcode.gf import GF, Field
    from gfcode.matrix.dense import Matrix
    from gfcode.pipeline import (
        SetReader,
        StreamReport,
        decode_file,
        decode_stream,
        encode_file,
        encode_stream,
        encode_tree,
        open_set,
        repair_set,
        verify_set,
    )
    from gfcode.pipeline.streams_async import decode_stream_async, encode_stream_async

    __version__: str

__all__ = [
    "GF",
    "Codec",
    "Field",
    "Matrix",
    "Plan",
    "ProgressiveEncoder",
    "RepairPlan",
    "SetReader",
    "StreamReport",
    "VerifyReport",
    "__version__",
    "decode_file",
    "decode_stream",
    "decode_stream_async",
    "encode_file",
    "encode_stream",
    "encode_stream_async",
    "encode_tree",
    "open_set",
    "repair_set",
    "verify_set",
]
__all__ += errors.__all__

# Where the names are that are imported at first use.
_MODULES = {
    "GF": "gfcode.gf",
    "Codec": "gfcode.codec",
    "Field": "gfcode.gf",
    "Matrix": "gfcode.matrix.dense",
    "Plan": "gfcode.codec",
    "ProgressiveEncoder": "gfcode.codec",
    "RepairPlan": "gfcode.codec",
    "SetReader": "gfcode.pipeline",
    "StreamReport": "gfcode.pipeline",
    "VerifyReport": "gfcode.codec",
    "decode_file": "gfcode.pipeline",
    "decode_stream": "gfcode.pipeline",
    "decode_stream_async": "gfcode.pipeline.streams_async",
    "encode_file": "gfcode.pipeline",
    "encode_stream": "gfcode.pipeline",
    "encode_stream_async": "gfcode.pipeline.streams_async",
    "encode_tree": "gfcode.pipeline",
    "open_set": "gfcode.pipeline",
    "repair_set": "gfcode.pipeline",
    "verify_set": "gfcode.pipeline",
}


def _version() -> str:
    """Return the version that was installed; the name of the package's record tells, where it lies beside it."""
    import os

    beside = os.path.dirname(os.path.dirname(__file__))
    records = [name for name in os.listdir(beside) if name.startswith("gfcode-") and name.endswith(".dist-info")]
    if len(records) == 1:
        return records[0].removeprefix("gfcode-").removesuffix(".dist-info")
    from importlib.metadata import version  # slower than all else that a short command does

    return version("gfcode")


if not TYPE_CHECKING:  # checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value: Any = _version()
        elif name in _MODULES:
            with LOADING:
                value = getattr(importlib.import_module(_MODULES[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, and none of the modules and helpers behind them."""
    return sorted(__all__)
