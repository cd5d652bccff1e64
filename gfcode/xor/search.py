"""Search: parity matrices that take fewer XORs to encode with, certified MDS.

What a matrix costs is not known until its program has been compressed, and compressing well takes seconds. So the
search is a contest: many candidates are screened by their ones and one run of Paar's elimination; the best of a batch
are annealed briefly; the best of all are annealed again and again, each time for longer; their matrices are also what
further candidates are made from. In the end the winner's program is polished.
"""

import time
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from gfcode.errors import NotMDSError, ParameterError
from gfcode.gf.polynomials import format_polynomial
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.certificate import Certificate, certify
from gfcode.matrix.dense import Matrix
from gfcode.params import check_shard_counts
from gfcode.xor.candidates import Candidate, cauchy, mutate, polynomials, powers, stock
from gfcode.xor.compress import Annealer, generator, paar
from gfcode.xor.fuse import fuse
from gfcode.xor.interpret import matrix as matrix_of
from gfcode.xor.lower import horner, lower
from gfcode.xor.program import XorProgram
from gfcode.xor.schedule import schedule

__all__ = ["Found", "SearchReport", "search_codes"]

# Candidates screened in a round, and how many of them are annealed.
_BATCH = 24
_QUALIFIED = 2
# Entries kept from round to round, and those of them that are annealed further.
_KEPT = 8
_FINALISTS = 4
# Steps of the first annealing of an entry, and of the longest.
_FIRST = 400
_LONGEST = 6400


@dataclass(frozen=True, slots=True)
class Found:
    """A certified parity matrix and its program.

    Attributes
    ----------
    matrix : Matrix, shape (m, k)
    origin : str
        How it came about, in a few words.
    certificate : Certificate
    before : int
        XORs of the plain rows of the bit matrix.
    program : XorProgram
        Compressed and fused, that of the best matrix also scheduled; `program.xors` is the count after.
    """

    matrix: Matrix
    origin: str
    certificate: Certificate
    before: int
    program: XorProgram

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold, the program by its counts only."""
        return {
            "origin": self.origin,
            "polynomial": hex(self.matrix.field.polynomial),
            "matrix": self.matrix.values.tolist(),
            "certificate": {"method": self.certificate.method, "detail": self.certificate.detail},
            "xors_before": self.before,
            "xors_after": self.program.xors,
            "xors_per_data_bit": self.program.xors / self.program.inputs,
            "memory_accesses": self.program.memory_accesses,
            "live_registers": self.program.live_registers,
            "depth": self.program.depth,
        }

    def cells(self) -> tuple[str, ...]:
        """Return a row for `SearchReport.lines`."""
        after, bits = self.program.xors, self.program.inputs
        polynomial, method = hex(self.matrix.field.polynomial), self.certificate.method
        return str(self.before), str(after), f"{after / bits:.2f}", polynomial, method, self.origin


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What a search found.

    Attributes
    ----------
    k, m, w, seed : int
        As asked.
    rounds : int
        Rounds completed. With the same seed, rounds and polish the report is the same.
    polish : int
        Annealing steps spent on the winner at the end.
    candidates : int
        Matrices looked at.
    refused : int
        Of these, not MDS.
    best : Found
    found : tuple of Found
        The best, and those that came next, with the families' own matrices; by XORs after.
    """

    k: int
    m: int
    w: int
    seed: int
    rounds: int
    polish: int
    candidates: int
    refused: int
    best: Found
    found: tuple[Found, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        names = ("k", "m", "w", "seed", "rounds", "polish", "candidates", "refused")
        return {name: getattr(self, name) for name in names} | {"found": [found.to_dict() for found in self.found]}

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        header = ("before", "after", "a bit", "polynomial", "certificate", "origin")
        rows = [header, *(found.cells() for found in self.found)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        best = self.best
        return [
            f"({self.k},{self.m}), w = {self.w}: {self.candidates:,} matrices looked at, {self.refused:,} not MDS",
            f"{self.rounds} rounds and {self.polish:,} steps of polish from seed {self.seed}",
            "XORs to encode with, before and after compression, and after it a bit of data:",
            *(_line(row, widths) for row in rows),
            f"best: {best.program.xors} XORs, {best.program.memory_accesses} memory accesses",
            f"over {format_polynomial(best.matrix.field.polynomial)}, the parity matrix",
            *(" ".join(f"{element:>3}" for element in row) for row in best.matrix.values.tolist()),
        ]


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = zip(row, widths, strict=True)
    return "  ".join(
        cell.rjust(width) if i < 3 else cell.ljust(width) for i, (cell, width) in enumerate(cells)
    ).rstrip()


def search_codes(
    k: int,
    m: int,
    w: int = 8,
    *,
    seed: int = 0,
    seconds: float | None = None,
    rounds: int | None = None,
    polish: int = 0,
) -> SearchReport:
    """Look for a parity matrix that takes few XORs.

    Parameters
    ----------
    k, m, w : int
        w from 2 to 16.
    seed : int
        Of all chance. Equal seeds, rounds and polish give equal reports.
    seconds : float, optional
        Begin no further round after this time. A round takes a second or a few.
    rounds : int, optional
        Stop after so many rounds. One of `seconds` and `rounds` must be given; at least one round is made.
    polish : int
        Annealing steps for the winner at the end; it pays to give it as much time as the search. With (10,4), w = 8, a
        thousand take about a third of a second.

    Returns
    -------
    SearchReport

    Raises
    ------
    ParameterError
        For k, m and w that no code has, or no limit.
    """
    check_shard_counts(k, m, w)
    polynomials(w)  # refuses w
    if m < 1:
        raise ParameterError("there is no parity to search for with m = 0")
    if seconds is None and rounds is None:
        raise ParameterError("a search needs a limit: seconds or rounds")
    deadline = None if seconds is None else time.monotonic() + seconds
    contest = _Contest(k, m, w, seed)
    contest.start()
    done = 0
    while done == 0 or ((rounds is None or done < rounds) and (deadline is None or time.monotonic() < deadline)):
        done += 1
        contest.round(done)
    contest.champion.best.run(polish)
    entries = sorted({id(entry): entry for entry in (*contest.entries, *contest.stock)}.values(), key=_Entry.rank)
    found = [entry.found() for entry in entries]
    found[0] = replace(found[0], program=schedule(found[0].program, seed=seed))
    return SearchReport(k, m, w, seed, done, polish, contest.candidates, contest.refused, found[0], tuple(found))


@dataclass(slots=True)
class _Entry:
    """A matrix in the contest.

    Attributes
    ----------
    candidate : Candidate
    annealers : list of Annealer
        From different starting points; the one ahead after the first steps goes on.
    first : float
        Cost after the first steps, by which entries are compared: all of them have had as many.
    steps : int
        Steps of the next annealing.
    """

    candidate: Candidate
    annealers: list[Annealer]
    first: float = 0.0
    steps: int = _FIRST

    @property
    def best(self) -> Annealer:
        return min(self.annealers, key=lambda annealer: annealer.best)

    def rank(self) -> tuple[float, str]:
        return self.best.best, self.candidate.origin

    def anneal(self) -> None:
        for annealer in self.annealers:
            annealer.run(self.steps)
        self.annealers = [self.best]
        if self.steps == _FIRST:
            self.first = self.best.best
        self.steps = min(2 * self.steps, _LONGEST)

    def found(self) -> Found:
        matrix = self.candidate.matrix
        bits = expand(matrix)
        program = fuse(self.best.program())
        if not np.array_equal(matrix_of(program), bits):
            raise AssertionError(f"the program found does not compute {matrix}")
        return Found(matrix, self.candidate.origin, certify(matrix), lower(bits).xors, program)


class _Contest:
    """The state of a search between rounds."""

    def __init__(self, k: int, m: int, w: int, seed: int) -> None:
        self.k, self.m, self.w, self.seed = k, m, w, seed
        self.candidates = 0
        self.refused = 0
        self.stock: list[_Entry] = []
        self.entries: list[_Entry] = []
        self.waiting: list[Candidate] = []
        self.seen: set[Matrix] = set()

    @property
    def champion(self) -> _Entry:
        return min((*self.entries, *self.stock), key=_Entry.rank)

    def start(self) -> None:
        self.stock = [self.enter(candidate) for candidate in stock(self.k, self.m, self.w) if self.admit(candidate)]
        self.entries = list(self.stock)
        self.waiting = powers(self.k, self.m, self.w)[::-1]

    def admit(self, candidate: Candidate) -> bool:
        """Tell whether a matrix is new and MDS."""
        if candidate.matrix in self.seen:
            return False
        self.seen.add(candidate.matrix)
        self.candidates += 1
        try:
            certify(candidate.matrix)
        except NotMDSError:
            self.refused += 1
            return False
        return True

    def enter(self, candidate: Candidate) -> _Entry:
        """Anneal a matrix for the first time, from Paar's elimination and, if that is close, from Horner's rule."""
        starts = [self.screen(candidate)]
        try:
            by_rule = horner(candidate.matrix)
        except ParameterError:
            pass  # some element is no power of x
        else:
            if by_rule.xors <= 2 * starts[0].xors:
                starts.append(by_rule)
        entry = _Entry(candidate, [Annealer(start, self.seed) for start in starts])
        entry.anneal()
        return entry

    def screen(self, candidate: Candidate) -> XorProgram:
        return paar(lower(expand(candidate.matrix)), self.seed)

    def round(self, number: int) -> None:
        """Screen a batch, anneal the best of it, then one of the most promising entries for longer."""
        random = generator(self.seed * 1_000_003 + number)
        batch: list[Candidate] = []
        for draw in range(8 * _BATCH):
            candidate = self.draw(draw, random)
            if candidate is not None and self.admit(candidate):
                batch.append(candidate)
            if len(batch) == _BATCH:
                break
        batch.sort(key=lambda candidate: self.screen(candidate).xors)
        champion = self.champion
        self.entries += [self.enter(candidate) for candidate in batch[:_QUALIFIED]]
        self.entries.sort(key=lambda entry: entry.first)
        del self.entries[_KEPT:]
        if champion not in self.entries:
            self.entries.append(champion)
        min(self.entries[:_FINALISTS], key=lambda entry: entry.steps).anneal()

    def draw(self, number: int, random: Random) -> Candidate | None:
        """Draw the next candidate: of the powers, or Cauchy, or an entry's matrix with one or two changes."""
        if self.waiting and number % 2:
            return self.waiting.pop()
        if number % 8 == 0:
            return cauchy(self.k, self.m, self.w, random)
        candidate = random.choice(self.entries).candidate
        for _ in range(random.randint(1, 2)):
            candidate = mutate(candidate, random)
        return candidate
