"""Every page: its commands, code and sessions run as they stand, its links lead somewhere."""

import re
from pathlib import Path

import pytest

from gfcode.cli.exits import EXIT_CODES
from tests.docs.fences import ROOT, SHOWN, Block, fences, run_doctests, run_python, run_shell

DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md"))


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, *languages: str) -> list[Block]:
    return [block for block in fences(text(page)) if block.language in languages]


def having(*languages: str) -> list[str]:
    """Return the pages with blocks of these languages."""
    return [page for page in PAGES if blocks(page, *languages)]


@pytest.mark.parametrize("page", having("sh", "console", "python"))
def test_commands_and_code(page: str, scratch: Path, binaries: Path) -> None:
    commands = blocks(page, "sh", "console")
    assert run_shell(commands, scratch, binaries) >= len(commands)
    code = blocks(page, "python")
    if code:
        run_python(code, scratch, binaries)


@pytest.mark.parametrize("page", having("pycon"))
def test_sessions(page: str) -> None:
    sessions = blocks(page, "pycon")
    assert run_doctests(sessions, page) >= len(sessions)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_that_is_run_or_only_shown(page: str) -> None:
    known = {"sh", "console", "python", "pycon", *SHOWN}
    assert [f"{page}:{block.line}" for block in fences(text(page)) if block.language not in known] == []
    # No command hides in an indented block.
    indented = re.findall(r"^ {4}(?:\$ |gfcode |python |pip |make |>>> |import |from ).*", text(page), re.MULTILINE)
    inside = "\n".join(block.text for block in fences(text(page)))
    assert [line for line in indented if line.strip() not in inside] == []


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    """Files exist, and headings have the names that links give them; builds of the site check it once more."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, heading = target.partition("#")
        found = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert found.is_file(), f"{page}: {target}"
        if heading:
            names = [slug(title) for title in re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)]
            assert heading in names, f"{page}: {target}"


def slug(title: str) -> str:
    """Return a heading's name in links, as Python-Markdown makes it."""
    plain = re.sub(r"[^\w\s-]", "", title.replace("`", "").encode("ascii", "ignore").decode()).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def test_exit_codes_are_the_program_s() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", text("docs/command-line.md"), re.MULTILINE)
    assert rows == [(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(page: str) -> None:
    """A path into the project, in backquotes, is that of a file or folder, or of one that is made."""
    named = re.findall(r"`((?:tests|bench|gfcode|kernels|cli|docs|changes|\.ci)/[\w./-]*)`", text(page))
    assert [path for path in named if not (ROOT / path).exists()] == []
