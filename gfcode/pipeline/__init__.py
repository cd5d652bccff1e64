"""Shard files: encode, decode, verify and repair them, with bounded memory and nothing written that is not so.

All of it is imported at first use: who verifies a sound set needs neither a codec nor NumPy.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gfcode.pipeline.decode import decode_file
    from gfcode.pipeline.encode import encode_file
    from gfcode.pipeline.probe import inspect_shard
    from gfcode.pipeline.reader import SetReader, open_set
    from gfcode.pipeline.repair import repair_set
    from gfcode.pipeline.stream_steps import StreamReport
    from gfcode.pipeline.streams import decode_stream, encode_stream
    from gfcode.pipeline.tree_encode import encode_tree
    from gfcode.pipeline.verify import verify_set

__all__ = [
    "SetReader",
    "StreamReport",
    "decode_file",
    "decode_stream",
    "encode_file",
    "encode_stream",
    "encode_tree",
    "inspect_shard",
    "open_set",
    "repair_set",
    "verify_set",
]

# Where the names are.
_MODULES = {
    "SetReader": "reader",
    "StreamReport": "stream_steps",
    "decode_file": "decode",
    "decode_stream": "streams",
    "encode_file": "encode",
    "encode_stream": "streams",
    "encode_tree": "tree_encode",
    "inspect_shard": "probe",
    "open_set": "reader",
    "repair_set": "repair",
    "verify_set": "verify",
}


if not TYPE_CHECKING:  # checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, and none of the modules and helpers behind them."""
    return sorted(__all__)
