"""`make matrix`: interpreters are those that really run."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ensurepip", reason="this Python can make no environments: it has no ensurepip")

ROOT = Path(__file__).parents[2]
SYSTEM = ("/usr/bin", "/bin")
VERSION = "{}.{}".format(*sys.version_info)


def script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def listed(*folders: Path, options: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask which interpreters would be taken, with these folders in front on PATH."""
    path = os.pathsep.join([*map(str, folders), *SYSTEM])
    kept = {"PATH": path, "HOME": os.environ.get("HOME", "/")} | environment
    program = [str(ROOT / ".ci/matrix"), "--list", *options]
    return subprocess.run(program, env=kept, capture_output=True, text=True, check=False)


def test_a_shim_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    shims, real = tmp_path / "shims", tmp_path / "real"
    shims.mkdir()
    real.mkdir()
    for minor in range(11, 15):
        script(shims / f"python3.{minor}", f"echo 'python3.{minor}: command not found' >&2; exit 127")
    script(real / f"python{VERSION}", f'exec {shlex.quote(sys.executable)} "$@"')
    done = listed(shims, real)
    assert done.returncode == 0, done.stderr
    assert str(real / f"python{VERSION}") in done.stdout.splitlines()
    assert str(shims) not in done.stdout


def test_an_interpreter_of_another_version_is_not_taken_for_it(tmp_path: Path) -> None:
    other = "3.11" if VERSION != "3.11" else "3.12"
    script(tmp_path / f"python{other}", f'exec {shlex.quote(sys.executable)} "$@"')
    assert str(tmp_path / f"python{other}") not in listed(tmp_path).stdout.splitlines()


@pytest.mark.parametrize("place", [".pyenv/versions/{}.99/bin", ".local/share/uv/python/cpython-{}.99-linux/bin"])
def test_interpreters_that_managers_hold_are_found_behind_their_shims(tmp_path: Path, place: str) -> None:
    version = next(v for v in ("3.14", "3.13", "3.12") if not any(Path(d, f"python{v}").exists() for d in SYSTEM))
    shims, held = tmp_path / "shims", tmp_path / place.format(version)
    shims.mkdir()
    held.mkdir(parents=True)
    script(shims / f"python{version}", "exit 127")
    script(held / f"python{version}", "exit 0")  # whatever it is asked, it says yes
    assert str(held / f"python{version}") in listed(shims, HOME=str(tmp_path)).stdout.splitlines()


def test_a_version_that_is_left_out_is_said(tmp_path: Path) -> None:
    script(tmp_path / f"python{VERSION}", f'exec {shlex.quote(sys.executable)} "$@"')
    lines = listed(tmp_path, options=("--except", VERSION)).stdout.splitlines()
    assert f"python{VERSION}: left out" in lines
    assert str(tmp_path / f"python{VERSION}") not in lines


def test_an_option_that_there_is_not(tmp_path: Path) -> None:
    done = listed(tmp_path, options=("--fast",))
    assert done.returncode == 2
    assert "--fast: not understood" in done.stderr


@pytest.mark.parametrize("named", ["/bin/false", "/no/such/python"])
def test_named_interpreters_must_run(named: str) -> None:
    done = listed(PYTHONS=named)
    assert done.returncode == 1
    assert done.stderr == f"PYTHONS: {named} does not run, or cannot make environments\n"
    assert listed(PYTHONS=sys.executable).stdout == f"{sys.executable}\n"
