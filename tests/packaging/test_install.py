"""What a user installs: sdist and wheel are built, and the wheel works in an environment that has nothing else."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command with nothing of this interpreter's environment but PATH, HOME and pip's settings; its stdout."""
    kept = {
        name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR"} or name[:4] == "PIP_"
    }
    done = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a folder with the sdist, and with the wheel that was built from the sdist."""
    source = tmp_path_factory.mktemp("source")
    for name in ("gfcode", "kernels", "cli", "share"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "build", "--no-isolation", ".", cwd=source)
    return source / "dist"


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def source_files() -> set[str]:
    """Names, inside an installation, of all files of the packages in the tree."""
    folders = {"gfcode": "gfcode", "kernels": "gfcode/kernels", "cli": "gfcode/cli"}
    found = set()
    for folder, installed in folders.items():
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT / folder)
            linked = folder == "gfcode" and inside.parts[0] in {"kernels", "cli"}
            if path.is_file() and "__pycache__" not in path.parts and not linked:
                found.add(f"{installed}/{inside}")
    return found


def shared_files() -> set[str]:
    """Names, inside an installation, of the manual page and the completions."""
    return {str(path.relative_to(ROOT)) for path in (ROOT / "share").rglob("*") if path.is_file()}


def test_wheel_has_every_file_and_one_top_level_name(built: Path) -> None:
    with zipfile.ZipFile(only(built, "*.whl")) as wheel:
        names = set(wheel.namelist())
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith((".dist-info", ".data"))} == {"gfcode"}
    shared = {name.partition(".data/data/")[2] for name in names if ".data/" in name}
    assert shared == shared_files()
    assert {name for name in names if name.startswith("gfcode/")} == source_files()
    assert {"gfcode/py.typed", "gfcode/cli/main.py", "gfcode/kernels/__init__.py"} <= names


def test_sdist_has_the_sources_readme_and_licence(built: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "gfcode/py.typed", "cli/main.py", "kernels/__init__.py"} <= names
    assert shared_files() <= names


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the bin folder of an environment that holds the wheel and what it depends on, without a compiler."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin/python", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-compile", "--only-binary", ":all:", only(built, "*.whl"), cwd=folder)
    yield folder / "bin"
    shutil.rmtree(folder)


def test_installed_command_and_library_work(installed: Path, tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(installed / "gfcode", "--version", cwd=tmp_path).split()[:2] == ["gfcode", version]
    assert "Usage: gfcode" in run(installed / "gfcode", "--help", cwd=tmp_path)
    check = (
        "import gfcode, importlib.util as u, sys;"
        "print(gfcode.__version__, gfcode.__file__);"
        "sys.exit(any(u.find_spec(name) for name in ('cli', 'kernels', 'tests', 'bench')))"
    )
    found = run(installed / "python", "-c", check, cwd=tmp_path).split()
    assert found[0] == version
    assert Path(found[1]).is_relative_to(installed.parent)


def test_manual_page_and_completions_are_installed(installed: Path, tmp_path: Path) -> None:
    prefix = installed.parent
    for name in shared_files():
        assert (prefix / name).read_bytes() == (ROOT / name).read_bytes()
    bare = run(installed / "gfcode", "man", cwd=tmp_path)
    assert (prefix / "share/man/man1/gfcode.1").read_text(encoding="utf-8").partition("\n")[2] == bare
    if shutil.which("bash"):
        # bash-completion reads a file by the command's name; what it then offers comes from the installed command.
        script = (
            f"source {prefix}/share/bash-completion/completions/gfcode; COMP_WORDS=(gfcode re); COMP_CWORD=1\n"
            'name=$(complete -p gfcode | sed "s/.*-F \\([^ ]*\\) .*/\\1/"); "$name" gfcode; echo "${COMPREPLY[@]}"'
        )
        path = f"{installed}{os.pathsep}{os.environ['PATH']}"
        assert run("bash", "-c", script, cwd=tmp_path, PATH=path) == "repair\n"


def test_installed_command_codes_a_file(installed: Path, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "data").write_bytes(content)
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    run(installed / "gfcode", "encode", "data", "-k", "4", "-m", "2", "--out", "shards", cwd=tmp_path, **home)
    for index in (0, 3):
        (tmp_path / f"shards/data.00{index}.gfs").unlink()
    run(installed / "gfcode", "decode", "shards", "-o", "back", cwd=tmp_path, **home)
    assert (tmp_path / "back").read_bytes() == content
