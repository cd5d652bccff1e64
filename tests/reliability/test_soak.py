"""The counts go where the page wants them, and each piece of the campaigns is run once."""

import time
from collections import Counter

import pytest

from tests.reliability.soak import (
    BEGIN,
    CAMPAIGNS,
    END,
    PAGE,
    Done,
    Piece,
    pieces_of,
    replace_counts,
    report,
    run_pieces,
)


def test_counts_are_replaced_between_the_marks() -> None:
    page = f"above\n{BEGIN}\nold\n{END}\nbelow\n"
    once = replace_counts(page, "new")
    assert once == f"above\n{BEGIN}\n\nnew\n\n{END}\nbelow\n"
    assert replace_counts(once, "new") == once
    with pytest.raises(ValueError, match="the page has no"):
        replace_counts("above", "new")


def test_the_page_has_counts() -> None:
    page = PAGE.read_text()
    counts = page.partition(BEGIN)[2].partition(END)[0]
    assert all(f"| {campaign} |" in counts for campaign in CAMPAIGNS)
    assert "**0 wrong bytes with success**" in counts


def test_the_pieces_make_the_whole() -> None:
    pieces = pieces_of(1, 7)
    trials: Counter[str] = Counter()
    for piece in pieces:
        trials[piece.campaign] += piece.trials
    assert (trials["Rot"], trials["Hostile shards"]) == (100_000, 4_000)
    # Scenes: 300 runs for each of three signals, and 60 for each of 15 faults.
    assert (trials["Crashes"], trials["I/O faults"]) == (11 * 300 * 3, 11 * 60 * 15)
    assert len({piece.name for piece in pieces}) == len(pieces)
    half = [piece for piece in pieces if piece.place < 0.5]
    assert {piece.campaign for piece in half} == set(CAMPAIGNS)
    assert pieces[: len(half)] == half
    assert sum(piece.trials for piece in pieces_of(0.01, 7, ("Rot",))) == 1000


def count_of(index: int) -> Counter[str]:
    return Counter(intact=index)


def test_pieces_are_run_once_and_counted_by_commit() -> None:
    pieces = [Piece("Rot", f"Rot {index}", 500, index / 4, count_of, (index,), {}) for index in range(4)]
    results: list[Done] = []

    def tell(piece: Piece, counts: Counter[str], seconds: float) -> None:
        results.append(Done(piece.name, piece.campaign, piece.trials, "abc", 7, dict(counts), seconds))

    run_pieces(pieces, known={"Rot 2"}, until=time.monotonic() + 60, tell=tell)
    assert {done.name: done.counts for done in results} == {
        f"Rot {index}": {"intact": index} for index in (0, 1, 3)
    }  # fmt: skip
    run_pieces(pieces, known=(), until=time.monotonic(), tell=tell)
    assert len(results) == 3
    table = report([*results, Done("x", "Hostile shards", 400, "def", 8, {"intact": 400}, 1.0)])
    assert "(abc)" in table
    assert "| Rot | 2% | 4 damaged sets | 4 found intact, " in table
    assert "| Hostile shards | 10% | 400 sets" in table
