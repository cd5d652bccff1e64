"""The fenced blocks of a page, and how each language is run.

`sh`
    Commands, run line by line in one shell. A line that ends in `# exit code N` must exit with N, others with 0.
`console`
    Lines that begin with `$ ` are run as above, and what they print (stderr too) must be the lines that follow, in
    which `...` stands for anything.
`python`
    All blocks of a page are one program, run after the commands and in their folder.
`pycon`
    Interpreter sessions, checked by doctest; names of earlier blocks of the page stay.

In `sh` and `console`, `make` only says what it would do, and `pip install` of the project itself is tried without
installing it. Other languages are not run, and only the ones in `SHOWN` are known.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "SHOWN", "Block", "command_on_path", "fences", "run_doctests", "run_python", "run_shell"]

ROOT = Path(__file__).parents[2]
#: Languages of blocks that show something and are not run.
SHOWN = ("text", "json", "yaml", "toml", "ini")
#: Of an interpreter's session.
DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language (with whatever else follows the fence), its text, and the line it begins in."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A line of shell, its exit code, and what it must print; None where anything will do."""

    text: str
    code: int
    output: str | None


def fences(page: str) -> list[Block]:
    """Return all fenced blocks of a page in Markdown, those in lists and admonitions too."""
    found = re.finditer(r"^( *)```([^\n`]*)\n(.*?)^\1```$", page, re.MULTILINE | re.DOTALL)
    return [
        Block(match[2].strip(), re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE),
              page.count("\n", 0, match.start()) + 1)
        for match in found
    ]  # fmt: skip


def command_on_path(folder: Path) -> Path:
    """Make a folder that holds the command `gfcode` as an executable, whatever is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "gfcode"
    program.write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c 'from gfcode.cli.main import run; run()' \"$@\"\n"
    )
    program.chmod(0o755)
    (folder / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (folder / "python").chmod(0o755)
    return folder


def run_shell(blocks: Sequence[Block], folder: Path, binaries: Path) -> int:
    """Run the commands of `sh` and `console` blocks in one shell, and hold exit codes and output to the page.

    Returns
    -------
    int
        How many commands were run.
    """
    commands = [command for block in blocks for command in _commands(block)]
    script = _PRELUDE.format(root=shlex.quote(os.fspath(ROOT)))
    for number, command in enumerate(commands):
        script += f'{{ {command.text}\n}} >"$out/{number}" 2>&1\n'
        script += f"code=$?; [ $code -eq {command.code} ] || fail $code {number} {shlex.quote(command.text)}\n"
    outputs = binaries.parent / "outputs"
    outputs.mkdir()
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=_environment(binaries) | {"out": str(outputs)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for number, command in enumerate(commands):
        if command.output is not None:
            printed = (outputs / str(number)).read_text(encoding="utf-8")
            assert _matches(command.output, printed), f"$ {command.text}\nprints:\n{printed}not:\n{command.output}"
    return len(commands)


def run_python(blocks: Sequence[Block], folder: Path, binaries: Path) -> None:
    """Run all `python` blocks as one program."""
    program = "\n".join(block.text for block in blocks if block.language == "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=folder, env=_environment(binaries), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def run_doctests(blocks: Sequence[Block], name: str) -> int:
    """Check all `pycon` blocks, in one namespace; return how many examples there were."""
    session = "\n".join(block.text for block in blocks if block.language == "pycon")
    test = doctest.DocTestParser().get_doctest(session, {"__name__": "__main__"}, name, name, 0)
    messages: list[str] = []
    results = doctest.DocTestRunner(optionflags=DOCTEST_FLAGS).run(test, out=messages.append)
    assert results.failed == 0, "".join(messages)
    return results.attempted


#: `fail` names the line that went wrong; make and pip are asked what they would do.
_PRELUDE = """set -o pipefail
fail() {{ echo "exit code $1: $3" >&2; cat "$out/$2" >&2; exit 1; }}
make() {{ command make --no-print-directory -C {root} -n "$@"; }}
pip() {{ (cd {root} && python -m pip "$@" --dry-run --no-deps --no-build-isolation --quiet); }}
"""


def _commands(block: Block) -> list[Command]:
    """Read the commands of a block; a backslash at the end of a line continues it."""
    if block.language == "sh":
        lines = [line for line in block.text.replace("\\\n", "").splitlines() if line and not line.startswith("#")]
        return [Command(line, _exit_code(line), None) for line in lines]
    if block.language != "console":
        return []
    found = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.replace("\\\n", "").partition("\n")
        found.append(Command(line, _exit_code(line), output))
    return found


def _exit_code(line: str) -> int:
    named = re.search(r"# exit code (\d+)$", line)
    return int(named[1]) if named else 0


def _matches(wanted: str, printed: str) -> bool:
    """Compare output, but for the spaces at the ends of lines; `...` stands for anything."""
    wanted, printed = (re.sub(r"[ \t]+$", "", text.strip("\n"), flags=re.MULTILINE) for text in (wanted, printed))
    pattern = ".*".join(map(re.escape, wanted.split("...")))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def _environment(binaries: Path) -> dict[str, str]:
    """Return the environment of a user who has set nothing of gfcode's, with the command on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GFCODE_", "_GFCODE"))}
    return kept | {"PATH": f"{binaries}{os.pathsep}{kept['PATH']}"}
