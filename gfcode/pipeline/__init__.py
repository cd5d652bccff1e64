"""Shard files: encode, decode, verify and repair them, with bounded memory and nothing written that is not so."""

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
