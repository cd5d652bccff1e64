"""Completion in a real shell, set up as the manual says."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.fences import ROOT, command_on_path

#: What a user's ~/.bashrc gets; docs/command-line.md says so.
SETUP = 'eval "$(_GFCODE_COMPLETE=bash_source gfcode)"'


def complete(folder: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    line = " ".join(f"'{word}'" for word in words)
    # The function is found by the name that completion is registered under, as bash itself finds it.
    binaries = command_on_path(folder / "bin")
    script = (
        f"PATH={shlex.quote(str(binaries))}:$PATH\n{SETUP}\n"
        'name=$(complete -p gfcode | sed "s/.*-F \\([^ ]*\\) .*/\\1/")\n'
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\n"
        '"$name" gfcode; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not here")
def test_bash(tmp_path: Path) -> None:
    assert complete(tmp_path, "gfcode", "re") == ["repair"]
    assert complete(tmp_path, "gfcode", "encode", "--lay") == ["--layout"]
    assert complete(tmp_path, "gfcode", "encode", "--layout", "") == ["packets", "words"]


def test_the_manual_says_how() -> None:
    assert SETUP in (ROOT / "docs/command-line.md").read_text(encoding="utf-8")


def test_other_shells(tmp_path: Path) -> None:
    for shell, word in (("zsh", "#compdef gfcode"), ("fish", "complete --no-files --command gfcode")):
        program = [command_on_path(tmp_path) / "gfcode"]
        environment = os.environ | {"_GFCODE_COMPLETE": f"{shell}_source"}
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
        assert word in done.stdout
