"""The counts go where the page wants them."""

import pytest

from tests.reliability.soak import BEGIN, END, PAGE, replace_counts


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
    assert all(f"| {campaign} |" in counts for campaign in ("Rot", "Crashes", "I/O faults", "Hostile shards"))
    assert "**0 wrong bytes with success**" in counts
