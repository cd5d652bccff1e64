"""How fast this machine does what stands beside the products: arithmetic, matrices, XOR programs, whole files."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gfcode.gf import GF
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.generator import FAMILIES, generator_matrix, parity_matrix
from gfcode.measure.harness import Figure, interleave
from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
from gfcode.xor.compress import paar
from gfcode.xor.fuse import fuse
from gfcode.xor.lower import lower
from gfcode.xor.schedule import schedule

__all__ = ["AREAS", "Line", "measure"]

#: Elements of one call of a field's arithmetic.
_ELEMENTS = 1 << 16
Calls = Mapping[str, tuple[Callable[[], object], float]]


@dataclass(frozen=True)
class Line:
    """What was measured.

    Attributes
    ----------
    area : str
        Of `AREAS`.
    name : str
    unit : str
    figure : Figure
        Its rates are in that unit.
    """

    area: str
    name: str
    unit: str
    figure: Figure

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "name": self.name,
            "unit": self.unit,
            "rates": list(self.figure.rates),
            "median": self.figure.median,
        }


def _fields() -> Calls:
    """Prepare products and quotients of arrays of elements."""
    found: dict[str, tuple[Callable[[], object], float]] = {}
    chance = np.random.default_rng(0)
    for w in (4, 8, 16, 32):
        field = GF(w)
        left, right = (field.check(chance.integers(1, field.order, _ELEMENTS)) for _ in range(2))
        found[f"GF(2^{w}) products"] = partial(field.mul, left, right), _ELEMENTS / 1e6
        if w <= 16:
            found[f"GF(2^{w}) quotients"] = partial(field.div, left, right), _ELEMENTS / 1e6
    return found


def _matrices() -> Calls:
    """Prepare what a new loss pattern takes, the inverse of what is left, and bit matrices."""
    parity = parity_matrix("cauchy-good", GF(8), 10, 4)
    generator = generator_matrix(parity)
    left = generator.rows(range(4, 14))
    wide = generator_matrix(parity_matrix("cauchy", GF(8), 50, 20)).rows(range(20, 70))
    return {
        "(10,4): inverse after four losses": (left.inverse, 1.0),
        "(50,20): inverse after twenty losses": (wide.inverse, 1.0),
        # `parity_matrix` itself keeps what it has made.
        "(10,4): parity matrix, cauchy-good": (partial(FAMILIES["cauchy-good"], GF(8), 10, 4), 1.0),
        "(10,4): bit matrix": (partial(expand, parity), 1.0),
    }


def _programs() -> Calls:
    """Prepare the passes that make an XOR program of a bit matrix."""
    plain = lower(expand(parity_matrix("cauchy-good", GF(8), 10, 4)))
    compressed = paar(plain, 0)
    return {
        "(10,4): compress": (partial(paar, plain, 0), 1.0),
        "(10,4): fuse and schedule": (lambda: schedule(fuse(compressed)), 1.0),
    }


def _files(folder: str, size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with a file and its shards, in an order in which it can be done again and again."""
    source, shards, again = (os.path.join(folder, name) for name in ("data", "shards", "again"))
    with open(source, "wb") as file:
        file.write(np.random.default_rng(0).bytes(size))
    lost = os.path.join(shards, "data.001.gfs")

    def repair() -> None:
        os.unlink(lost)
        repair_set(shards, durable=False)

    yield "(10,4): encode a file", partial(encode_file, source, out=shards, force=True, durable=False)
    yield "(10,4): verify its shards", partial(verify_set, shards)
    yield "(10,4): decode it", partial(decode_file, shards, again, force=True, durable=False)
    yield "(10,4): repair one shard", repair


#: What is measured, in which unit; files are measured apart.
AREAS: Mapping[str, tuple[str, Callable[[], Calls] | None]] = {
    "fields": ("million elements/s", _fields),
    "matrices": ("a second", _matrices),
    "programs": ("a second", _programs),
    "files": ("GB/s", None),
}


def measure(area: str, *, rounds: int, file_bytes: int) -> Iterator[Line]:
    """Measure one area.

    Parameters
    ----------
    area : str
        Of `AREAS`.
    rounds : int
    file_bytes : int
        Bytes of the file for "files", which is written to the folder for temporary files and not flushed to the device.
    """
    unit, prepare = AREAS[area]
    if prepare is not None:
        found = prepare()
        # The harness takes bytes and gives GB a second: whatever is counted, it is given as that many billions.
        sizes = {name: round(amount * 1e9) for name, (_, amount) in found.items()}
        figures = interleave({name: call for name, (call, _) in found.items()}, sizes, rounds=rounds)
    else:
        with tempfile.TemporaryDirectory(prefix="gfcode-bench-") as folder:
            figures = interleave(dict(_files(folder, file_bytes)), file_bytes, rounds=rounds, window=0)
    for name, figure in figures.items():
        yield Line(area, name, unit, figure)
