"""PyPI's zfec."""

from collections.abc import Mapping, Sequence
from importlib import metadata

import numpy as np

from tests.peers.base import Bytes, PeerError, PeerMissingError

__all__ = ["Zfec"]


class Zfec:
    """zfec's Encoder and Decoder (whose `m` is the total number of shards)."""

    def __init__(self) -> None:
        try:
            import zfec
        except ImportError as error:
            raise PeerMissingError(f"zfec is not installed: pip install zfec ({error})") from error
        self.zfec = zfec

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return {"library": "zfec", "version": f"PyPI {metadata.version('zfec')}", "call": "Encoder(k, n).encode"}

    def encode(self, data: Bytes, m: int) -> Bytes:
        """Parity by `Encoder(k, n)`."""
        k = data.shape[0]
        try:
            encoder = self.zfec.Encoder(k, k + m)
        except self.zfec.Error as error:
            raise PeerError(str(error)) from error
        blocks = encoder.encode([row.tobytes() for row in data])
        return np.stack([np.frombuffer(block, np.uint8) for block in blocks[k:]])

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Return data by `Decoder(k, n)`; lost parity by encoding that again."""
        sources = sorted(set(shards) - set(lost))[:k]
        found = self.zfec.Decoder(k, k + m).decode([shards[i].tobytes() for i in sources], sources)
        data = np.stack([np.frombuffer(block, np.uint8) for block in found])
        parity = self.encode(data, m)
        return {i: data[i] if i < k else parity[i - k] for i in lost}
