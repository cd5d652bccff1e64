"""Make `fragments.json` with the installed PyECLib: ``python -m tests.compat.make_vectors``."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.compat.peer import start
from tests.compat.shapes import SHAPES, options
from tests.peers.base import filled

__all__ = ["CASES", "FILE", "LENGTHS", "data_of", "digest"]

FILE = Path(__file__).with_name("fragments.json")
LENGTHS = (1, 1021, 65_536)
#: Checksum type, and whether the legacy CRC is written.
CASES = (("none", False), ("inline_crc32", False), ("inline_crc32", True))


def data_of(length: int) -> bytes:
    """Return bytes of the generator of the golden vectors."""
    return filled(1, length).tobytes()


def digest(fragments: list[bytes]) -> str:
    """SHA-256 of all fragments of a stripe, one behind the other."""
    return hashlib.sha256(b"".join(fragments)).hexdigest()


def main() -> None:
    peer = start()
    vectors: list[dict[str, Any]] = []
    for ec_type, shapes in SHAPES.items():
        for k, m in shapes:
            for checksum, legacy in CASES if (k, m) in shapes[:2] else CASES[:1]:
                keywords = options(ec_type, k, m, checksum)
                digests = {
                    str(length): digest(peer.call(keywords, "encode", data_of(length), legacy=legacy))
                    for length in LENGTHS
                }
                vectors.append({"options": keywords, "legacy": legacy, "sha256": digests})
    peer.close()
    provenance = {
        "library": f"PyECLib {peer.version} of PyPI with its liberasurecode and ISA-L; Debian's libjerasure2",
        "data": "the top bytes of x -> 1664525 x + 1013904223 mod 2^32 from 0, after each step",
        "sha256": "of all fragments of encode(data) with their headers, one behind the other, by bytes of data",
    }
    text = json.dumps({"provenance": provenance, "vectors": vectors}, indent=1)
    FILE.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
