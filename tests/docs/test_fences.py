"""The runner of pages itself: what is wrong on a page is found."""

from pathlib import Path

import pytest

from tests.docs.fences import Block, fences, run_doctests, run_python, run_shell


def page(language: str, text: str) -> list[Block]:
    return fences(f"# A page\n\n```{language}\n{text}\n```\n")


def test_fences_are_found_with_their_lines_and_without_their_indentation() -> None:
    found = fences("a\n\n```sh\nls\n```\n\n* b\n\n    ```text\n    c\n      d\n    ```\n")
    assert found == [Block("sh", "ls\n", 3), Block("text", "c\n  d\n", 9)]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "true\nfalse"),
        ("sh", "true  # exit code 3"),
        ("sh", "false | true"),
        ("sh", "gfcode nonsense"),
        ("sh", "make no-such-target"),
        ("console", "$ echo one\ntwo"),
        ("console", "$ printf 'one\\ntwo\\n'\none"),
        ("console", "$ echo one"),
        ("console", "$ false\n"),
    ],
)
def test_what_a_page_says_wrongly_fails(language: str, text: str, scratch: Path, binaries: Path) -> None:
    with pytest.raises(AssertionError):
        run_shell(page(language, text), scratch, binaries)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "false  # exit code 1\ncd /\n[ $PWD = / ]\nx=1\n[ $x = 1 ]\ngfcode codes \\\n  -k 3\nmake test"),
        ("console", "$ echo one; echo two >&2\none\ntwo\n$ seq 9\n1\n...\n9\n$ true"),
        ("console", "$ exit 3 | true  # exit code 3\n"),
    ],
)
def test_what_a_page_says_rightly_passes(language: str, text: str, scratch: Path, binaries: Path) -> None:
    assert run_shell(page(language, text), scratch, binaries) > 0


def test_code_and_sessions_that_fail(scratch: Path, binaries: Path) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_python(page("python", "1 / 0"), scratch, binaries)
    with pytest.raises(AssertionError, match="Got"):
        run_doctests(page("pycon", ">>> 1 + 1\n3"), "page")
    assert run_doctests(page("pycon", ">>> 1 + 1\n2"), "page") == 1
