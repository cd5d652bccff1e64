"""The tree and pyproject.toml say the same: packages, links, package data."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from gfcode.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]


def source_folders() -> dict[str, Path]:
    """Every package that stands in the tree, by its dotted name, links followed."""
    found = {}
    for folder, names, files in os.walk(ROOT / "gfcode", followlinks=True):
        names[:] = [name for name in names if name != "__pycache__"]
        if any(name.endswith(".py") for name in files):
            found[".".join(Path(folder).relative_to(ROOT).parts)] = Path(folder)
    return found


def test_package_list_is_the_tree() -> None:
    assert sorted(SETUPTOOLS["packages"]) == sorted(source_folders())


def test_every_package_has_an_init() -> None:
    assert [name for name, folder in source_folders().items() if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("name", ["kernels", "cli"])
def test_links(name: str) -> None:
    link = ROOT / "gfcode" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert SETUPTOOLS["package-dir"][f"gfcode.{name}"] == name


def test_package_data_covers_what_is_no_python() -> None:
    """Each file in a package that is no Python source is shipped by a pattern of its package."""
    folders = source_folders()
    shipped = {
        path
        for package, patterns in SETUPTOOLS["package-data"].items()
        for pattern in patterns
        for path in folders[package].glob(pattern)
    }
    data = set()
    for folder in folders.values():
        for path in [*folder.iterdir(), *folder.glob("src/**/*")]:
            if path.is_file() and path.suffix not in {".py", ".pyc"}:
                data.add(path)
    assert {path.relative_to(ROOT) for path in data} == {path.relative_to(ROOT) for path in shipped}
    assert ROOT / "gfcode/py.typed" in data


def test_script_is_there() -> None:
    module, _, function = PROJECT["project"]["scripts"]["gfcode"].partition(":")
    assert module.startswith("gfcode.cli.")
    assert f"def {function}(" in (ROOT / "cli" / f"{module.rpartition('.')[2]}.py").read_text()


def test_change_fragments_are_named_by_kind() -> None:
    kinds = {"added", "changed", "fixed"}
    odd = [p.name for p in (ROOT / "changes").glob("*") if p.suffix != ".md" or p.stem.rpartition(".")[2] not in kinds]
    assert odd == []


def test_issue_templates_name_commands_that_exist() -> None:
    templates = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"))
    assert len(templates) == 3
    for path in templates:
        text = path.read_text(encoding="utf-8")
        head = dict(line.split(": ", 1) for line in text.split("---\n")[1].splitlines())
        assert set(head) == {"name", "about", "labels"}
        assert set(re.findall(r"`gfcode ([a-z]+)", text)) <= set(COMMANDS)


def test_devcontainer_sets_up_as_contributing_says() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert container["postCreateCommand"] == "make setup"
    assert "make setup" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
