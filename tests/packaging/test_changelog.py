"""`make changelog`: fragments become a section of the changelog, and are gone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".ci/changelog.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with a changelog, two fragments, and the program."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/changelog.py").write_bytes(PROGRAM.read_bytes())
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nWords.\n\n## 1.1.0 (2020-01-01)\n\n* Old.\n")
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/slow-disks.fixed.md").write_text("It waits\nfor slow disks.\n")
    (tmp_path / "changes/a-b.added.md").write_text("A thing.\n")
    return tmp_path


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program: list[str | Path] = [sys.executable, project / ".ci/changelog.py", *options]
    return subprocess.run(program, capture_output=True, text=True, check=False)


SECTION = "## 1.2.0 (2021-02-03)\n\n### Added\n\n* A thing.\n\n### Fixed\n\n* It waits\n  for slow disks.\n"


def test_draft_changes_nothing(project: Path) -> None:
    before = (project / "CHANGELOG.md").read_bytes()
    done = run(project, "--draft", "--date", "2021-02-03")
    assert (done.returncode, done.stdout, done.stderr) == (0, SECTION, "")
    assert (project / "CHANGELOG.md").read_bytes() == before
    assert len(list((project / "changes").iterdir())) == 2


def test_the_newest_release_comes_first_and_fragments_go(project: Path) -> None:
    assert run(project, "--date", "2021-02-03").returncode == 0
    text = (project / "CHANGELOG.md").read_text()
    assert text == f"# Changelog\n\nWords.\n\n{SECTION}\n## 1.1.0 (2020-01-01)\n\n* Old.\n"
    assert list((project / "changes").iterdir()) == []
    done = run(project)
    assert done.returncode == 1
    assert "no fragments" in done.stderr


def test_a_version_is_released_once(project: Path) -> None:
    assert run(project).returncode == 0
    (project / "changes/more.changed.md").write_text("More.\n")
    done = run(project)
    assert done.returncode == 1
    assert "has a section 1.2.0 already" in done.stderr


@pytest.mark.parametrize(("name", "text"), [("thing.md", "x"), ("thing.broken.md", "x"), ("thing.added.md", "\n")])
def test_odd_fragments_are_refused(project: Path, name: str, text: str) -> None:
    (project / "changes" / name).write_text(text)
    done = run(project)
    assert done.returncode == 1
    assert name in done.stderr
    assert len(list((project / "changes").iterdir())) == 3


def test_the_fragments_of_this_project_make_a_section() -> None:
    if any((ROOT / "changes").glob("*.md")):
        done = run(ROOT, "--draft")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("## ")
