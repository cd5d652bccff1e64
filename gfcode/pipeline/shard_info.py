"""What one shard file says about itself."""

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["ShardInfo"]


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What a shard file says about itself.

    Attributes
    ----------
    path : str
    index : int
        Shard number that its metadata frame names.
    metadata : dict
        The JSON object of the metadata frame.
    metadata_length, frame_length : int
        Bytes of the metadata frame and of every full frame.
    file_length : int
        Bytes of the file.
    expected_length : int or None
        Bytes that the file should have; None where the set was made from a stream.
    hash_name : str
        Checksum of the frames.
    check : str
        The same, and what it proves.
    """

    path: str
    index: int
    metadata: dict[str, Any] = field(hash=False)
    metadata_length: int
    frame_length: int
    file_length: int
    expected_length: int | None
    hash_name: str
    check: str

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, under the attributes' names."""
        return asdict(self)
