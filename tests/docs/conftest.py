"""A place for the commands of pages."""

from pathlib import Path

import pytest

from tests.docs.fences import command_on_path


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """Make a folder with the command `gfcode`, to be put on the path."""
    return command_on_path(tmp_path / "bin")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Make an empty folder to work in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
