"""A user's program passes type checkers in their strictest mode, and a wrong one does not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = Path(__file__).parents[2]
PYRIGHT = shutil.which("pyright") or shutil.which("basedpyright")

WRONG = """
import gfcode

codec = gfcode.Codec("10", 4)
codec.encode(7)
codec.decode([b"1"])
gfcode.encode_file(3)
gfcode.no_such_name
"""


def mypy(*files: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy", reason="mypy is not installed")
    # Errors in gfcode itself are those of the project's own run; here only what its user sees counts.
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports", "silent",
         "--cache-dir", str(ROOT / ".mypy_cache" / "user"), *map(str, files)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_program_runs() -> None:
    done = subprocess.run([sys.executable, "-W", "error", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_mypy_accepts_it_and_refuses_a_wrong_one(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    done = mypy(PROGRAM, wrong)
    lines = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line for line in lines if "user_program" in line] == []
    assert {line.split(":")[1] for line in lines} == {"4", "5", "6", "7", "8"}, done.stdout + done.stderr


@pytest.mark.skipif(PYRIGHT is None, reason="neither pyright nor basedpyright is installed")
def test_pyright_accepts_it_and_refuses_a_wrong_one(tmp_path: Path) -> None:
    assert PYRIGHT is not None
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    settings = {"include": [str(PROGRAM), str(wrong)], "typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [PYRIGHT, "--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    found = [entry for entry in json.loads(done.stdout)["generalDiagnostics"] if entry["severity"] == "error"]
    assert [entry for entry in found if "user_program" in entry["file"]] == []
    assert {entry["range"]["start"]["line"] + 1 for entry in found} == {4, 5, 6, 7, 8}
