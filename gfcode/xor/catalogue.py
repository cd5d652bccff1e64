"""The catalogue: the cheapest parity matrices found for common codes, with their programs.

Kept in `catalogue.json` beside this file. Every entry says how it was found: the same search finds it again.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from gfcode.errors import ParameterError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.xor.program import XorProgram

if TYPE_CHECKING:
    from gfcode.xor.search import SearchReport

__all__ = ["Entry", "dump", "entries", "entry_of", "find", "lookup"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A matrix of the catalogue.

    Attributes
    ----------
    matrix : Matrix, shape (m, k)
        Over the field of its own polynomial, which is not always the default one.
    origin : str
        What kind of matrix it is, in a few words.
    method : str
        How it is certified MDS: `Certificate.method`.
    before, after : int
        XORs of the plain rows of the bit matrix, and of the program.
    program : XorProgram
        Encodes: inputs are the k · w packets of a strip of the data shards, outputs the m · w of the parity shards.
    command : str
        Finds it again.
    """

    matrix: Matrix
    origin: str
    method: str
    before: int
    after: int
    program: XorProgram
    command: str

    @property
    def key(self) -> tuple[int, int, int]:
        """The code it is for: k, m, w."""
        m, k = self.matrix.shape
        return k, m, self.matrix.field.w

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads."""
        k, m, w = self.key
        return {
            "k": k,
            "m": m,
            "w": w,
            "polynomial": hex(self.matrix.field.polynomial),
            "matrix": self.matrix.values.tolist(),
            "origin": self.origin,
            "certificate": self.method,
            "xors_before": self.before,
            "xors_after": self.after,
            "command": self.command,
            "program": self.program.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Entry":
        """Read what `to_dict` wrote.

        Raises
        ------
        ParameterError
            If it is no entry.
        """
        try:
            matrix = Matrix(GF(data["w"], int(data["polynomial"], 16)), data["matrix"])
            program = XorProgram.from_dict(data["program"])
            counts = data["xors_before"], data["xors_after"]
            entry = cls(matrix, data["origin"], data["certificate"], *counts, program, data["command"])
        except (KeyError, TypeError) as error:
            raise ParameterError(f"not an entry of a catalogue of matrices: {error!r}") from None
        k, m, w = entry.key
        if (data["k"], data["m"]) != (k, m) or (program.inputs, len(program.outputs)) != (k * w, m * w):
            raise ParameterError(f"entry ({data['k']},{data['m']}) of the catalogue does not fit its matrix or program")
        return entry


def entry_of(report: "SearchReport") -> Entry:
    """Make an entry of what a search found."""
    best = report.best
    command = (
        f"gfcode codes --search -k {report.k} -m {report.m} --w {report.w} "
        f"--seed {report.seed} --rounds {report.rounds} --polish {report.polish}"
    )
    return Entry(
        best.matrix, best.origin, best.certificate.method, best.before, best.program.xors, best.program, command
    )


def dump(entries: list[Entry]) -> str:
    """Return a catalogue as JSON text, one line an entry."""
    lines = [
        json.dumps(entry.to_dict(), separators=(",", ":")) for entry in sorted(entries, key=lambda entry: entry.key)
    ]
    return f'{{"format":{_FORMAT},"entries":[\n' + ",\n".join(lines) + "\n]}\n"


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """Return the entries of the catalogue, by k, m and w."""
    text = resources.files("gfcode.xor").joinpath("catalogue.json").read_text(encoding="utf-8")
    data = json.loads(text)
    if data["format"] != _FORMAT:
        raise ParameterError(f"the catalogue of matrices has format {data['format']}, but {_FORMAT} is known")
    return tuple(Entry.from_dict(entry) for entry in data["entries"])


def find(k: int, m: int, w: int) -> Entry | None:
    """Return the entry of a code; None if there is none."""
    return next((entry for entry in entries() if entry.key == (k, m, w)), None)


def lookup(k: int, m: int, w: int) -> Matrix | None:
    """Return the cheapest parity matrix known for a code; None if none is kept.

    Not certified anew: `certify` it before use, as every matrix. Mind that its field may not be the default one.
    """
    entry = find(k, m, w)
    return None if entry is None else entry.matrix
