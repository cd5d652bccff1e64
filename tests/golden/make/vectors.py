"""Make the golden vectors of the presets from the peers that are installed.

Run from the repository root: ``python -m tests.golden.make.vectors [TITLE ...]``. Nothing of gfcode is used: matrices
and parities are the peers' own. Where several peers carry a preset they must agree, and all are named. Peers that are
not installed by packages are named by environment variables, see `tests/peers`.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.peers.base import Bytes, Peer, Variant, filled
from tests.peers.variants import VARIANTS

FOLDER = Path(__file__).resolve().parent.parent / "vectors"
#: The data, in words: `tests.peers.base.filled`.
RULE = (
    "bytes in row-major (k, length) order, byte t (from 0) = x_(t+1) >> 24, "
    "x_0 = seed, x_(t+1) = (1664525 x_t + 1013904223) mod 2^32"
)
#: Matrices up to this many elements are written out, larger ones hashed.
SMALL = 64


def bit_rows(peer: Peer, variant: Variant, k: int, m: int) -> "np.ndarray[Any, Any]":
    """Return the parity matrix as the peer's encoder shows it.

    Byte-wise codes: parity of unit vectors. Others: the peer's own matrix function.
    """
    matrix = getattr(peer, "elements", None) if variant.preset.startswith("jerasure-cauchy") else None
    if matrix is None and variant.preset.startswith("jerasure"):
        matrix = peer.matrix  # type: ignore[attr-defined]
    if matrix is not None:
        found: np.ndarray[Any, Any] = np.asarray(matrix(k, m)).astype(np.int64) % 2**32
        return found
    unit = variant.unit
    data = np.zeros((k, k * unit), np.uint8)
    for j in range(k):
        data[j, j * unit] = 1
    return peer.encode(data, m)[:, ::unit]


def rows(values: "np.ndarray[Any, Any]") -> dict[str, Any]:
    """Write a matrix as hexadecimal rows or as the SHA-256 of those."""
    lines = [" ".join(f"{int(value):x}" for value in row) for row in values]
    if values.size <= SMALL:
        return {"matrix": lines}
    return {"matrix_sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def parities(parity: Bytes) -> list[str]:
    """SHA-256 of each parity shard."""
    return [hashlib.sha256(row.tobytes()).hexdigest() for row in parity]


def cases(variant: Variant, peers: list[Peer]) -> Iterator[dict[str, Any]]:
    """Yield the cases of a variant."""
    for k, m in variant.shapes:
        yield {
            "k": k,
            "m": m,
            **rows(bit_rows(peers[0], variant, k, m)),
            "parity_sha256": {str(length): agreed(variant, peers, k, m, length) for length in variant.lengths},
        }


def agreed(variant: Variant, peers: list[Peer], k: int, m: int, length: int) -> list[str]:
    """Parities by every peer, which must be the same."""
    data = filled(k, length, seed=length)
    found = [parities(peer.encode(data, m)) for peer in peers]
    if any(other != found[0] for other in found):
        raise SystemExit(f"{variant.title}: peers differ at k={k} m={m} length {length}")
    return found[0]


def vector(variant: Variant) -> dict[str, Any]:
    """Make the file of a variant."""
    peers, missing = variant.peers()
    if not peers:
        raise SystemExit(f"{variant.title}: {'; '.join(missing)}")
    for reason in missing:
        print(f"{variant.title}: without one peer: {reason}", file=sys.stderr)
    return {
        "preset": variant.preset,
        "options": dict(variant.options),
        "provenance": [peer.provenance for peer in peers],
        "made_by": "tests/golden/make/vectors.py",
        "data": RULE,
        "seed": "the length",
        "cases": list(cases(variant, peers)),
    }


def file_name(variant: Variant) -> str:
    """Name of a variant's file."""
    return variant.title.replace(",", "-").replace("=", "") + ".json"


def main(titles: list[str]) -> None:
    """Make the vectors of these variants, or of all."""
    FOLDER.mkdir(exist_ok=True)
    for title in titles or VARIANTS:
        variant = VARIANTS[title]
        text = json.dumps(vector(variant), indent=1, ensure_ascii=False)
        (FOLDER / file_name(variant)).write_text(text + "\n", encoding="utf-8")
        print(title)


if __name__ == "__main__":
    main(sys.argv[1:])
