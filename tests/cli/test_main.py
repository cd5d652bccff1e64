"""What holds for every command: help, exit codes, errors as one line, signals, closed pipes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gfcode.cli.exits import EXIT_CODES, Exit
from gfcode.cli.main import COMMANDS, root
from gfcode.errors import GFCodeError, UnrecoverableError
from tests.cli.conftest import PROGRAM, Runner

HEAVY = ("numpy", "numba", "llvmlite", "cupy", "rich", "xxhash", "blake3", "galois")


def test_help_and_version_load_nothing_heavy() -> None:
    """One fresh interpreter runs the help of every command; none of it may have loaded what takes long."""
    program = (
        "import sys; from gfcode.cli.main import COMMANDS, main;"
        "codes = [main([*a, '--help']) for a in ([], *([name] for name in COMMANDS))] + [main(['--version'])];"
        "print('\\n@', *sys.modules); sys.exit(any(codes))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    out, _, modules = done.stdout.rpartition("\n@ ")
    loaded = set(modules.split())
    assert out.count("Usage: gfcode") == 1 + len(COMMANDS)
    assert {"click", *(f"gfcode.cli.{name}" for name in COMMANDS)} <= loaded
    assert loaded.isdisjoint(HEAVY), loaded & set(HEAVY)


def test_help_names_commands_and_exit_codes(gfcode: Runner) -> None:
    done = gfcode("--help")
    assert done.code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", done.out, re.MULTILINE)
    for code, meaning in EXIT_CODES.items():
        assert re.search(rf"^  {int(code)} +{re.escape(meaning[:20])}", done.out, re.MULTILINE)
    assert max(map(len, done.out.splitlines())) <= 80


def leaves(command: click.Command | None) -> Iterator[click.Command]:
    """Yield a command, or those of a group."""
    assert command is not None
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from leaves(inner)
    else:
        yield command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    for command in leaves(root.get_command(click.Context(root), name)):
        assert command.help
        names = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--quiet"} <= names
        assert all(p.help for p in command.params if isinstance(p, click.Option)), command.name


def test_no_command_shows_help_and_is_wrong_usage(gfcode: Runner) -> None:
    done = gfcode()
    assert done.code == Exit.USAGE
    assert done.out == ""
    assert done.err.startswith("Usage: gfcode")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "nonsense"),
        (["encode"], "FILE"),
        (["decode"], "PATH"),
        (["--nonsense"], "--nonsense"),
        (["encode", "f", "-k", "ten"], "'ten'"),
        (["codes", "-k", "0"], "k must be at least 1, not 0"),
        (["codes", "-k", "250", "-m", "125"], "GF(2^8)"),
        (["codes", "--w", "40"], "40"),
        (["encode", "f", "--frame", "sixty"], "'sixty' is no size"),
        (["encode", "f", "--frame", "0.3KiB"], "no whole number of bytes"),
        (["encode", "f", "--threads", "0"], "0"),
        (["encode", "f", "--engine", "warp"], "'warp' is no engine; choose from simd, numba, numpy, cuda, auto"),
        (["decode", ".", "-o", "-", "--json"], "stdout"),
    ],
)
def test_wrong_usage_is_one_line_and_2(gfcode: Runner, arguments: list[str], words: str) -> None:
    done = gfcode(*arguments)
    assert done.code == 2
    assert words in done.error
    if "--json" not in arguments:
        assert done.out == ""
    done = gfcode(*arguments, "--json")
    assert done.code == 2
    assert done.json["exit_code"] == 2
    assert words in done.json["error"]


def test_engine_of_the_environment_is_checked_like_the_option(process: Runner) -> None:
    done = process("encode", "f", GFCODE_ENGINE="warp")
    assert done.code == 2
    assert "'warp' is no engine" in done.error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (GFCodeError("shard 3 of 'x': no"), 1, "shard 3 of 'x': no"),
        (GFCodeError("two\nlines\x1b[31m"), 1, r"two\nlines\x1b[31m"),
        (UnrecoverableError("stripes 3-4"), 4, "stripes 3-4"),
        (FileNotFoundError(2, "No such file or directory", "a\nb"), 1, r"a\nb: No such file or directory"),
        (OSError(18, "Invalid cross-device link", b"a", None, "b"), 1, "a -> b: Invalid cross-device link"),
        (OSError("odd"), 1, "odd"),
        (MemoryError(), 1, "out of memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            ZeroDivisionError("oops"),
            1,
            "ZeroDivisionError: oops: this is a bug in gfcode; please report it; set GFCODE_DEBUG=1 to see where",
        ),
    ],
)
def test_errors_are_one_line_and_a_code(
    gfcode: Runner, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def status() -> None:
        raise error

    monkeypatch.setattr("gfcode.engine.registry.status", status)
    done = gfcode("engines")
    assert (done.code, done.out, done.error) == (code, "", line)
    done = gfcode("engines", "--json")
    assert (done.code, done.error) == (code, line)
    assert done.json["exit_code"] == code
    monkeypatch.setenv("GFCODE_DEBUG", "1")
    done = gfcode("engines")
    assert done.code == code
    assert "Traceback" in done.err
    assert "in status" in done.err
    assert done.err.splitlines()[-1] == f"gfcode: error: {line}"


def test_a_closed_reader_is_no_error_message() -> None:
    """As `gfcode codes | true`: nothing on stderr, and the code that a SIGPIPE would have given."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*PROGRAM, "codes"], stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (Exit.READER_GONE, b"")


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("codes >&-", 0, ""),
        ("codes >&- 2>&-", 0, ""),
        ("nonsense >&- 2>&-", 2, ""),
        ("encode - --name x <&-", 1, "gfcode: error: stdin is closed\n"),
        ("decode . -o - >&-", 1, "gfcode: error: stdout is closed\n"),
    ],
)
def test_closed_standard_streams(tmp_path: Path, line: str, code: int, error: str) -> None:
    script = f'"{sys.executable}" -c "from gfcode.cli.main import run; run()" {line}'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, error)


def test_what_follows_the_end_of_options_is_no_option(gfcode: Runner) -> None:
    done = gfcode("verify", "--", "--json")
    assert (done.code, done.out) == (1, "")
    assert "--json" in done.error


def test_a_full_disk_behind_stdout_is_an_error() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*PROGRAM, "codes"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "gfcode: error: stdout: No space left on device\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_signals_leave_nothing_behind(tmp_path: Path, number: signal.Signals, code: Exit) -> None:
    """An encoding of a stream that has not ended is stopped: no shard has its name, no temporary is left."""
    with subprocess.Popen(
        [*PROGRAM, "encode", "-", "--name", "x", "--out", tmp_path / "shards"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as encoder:  # fmt: skip
        assert encoder.stdin is not None
        encoder.stdin.write(os.urandom(3_000_000))
        encoder.stdin.flush()
        deadline = time.monotonic() + 60
        while not any((tmp_path / "shards").glob("*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert any((tmp_path / "shards").glob("*")), "no temporary was ever seen"
        encoder.send_signal(number)
        out, err = encoder.communicate(timeout=60)
    assert encoder.returncode == code
    assert out == b""
    assert b"Traceback" not in err
    assert list((tmp_path / "shards").glob("*")) == []


def test_warnings_are_one_line(process: Runner, tmp_path: Path) -> None:
    """A cache folder that cannot be made is a warning of the engine, not a page of Python."""
    (tmp_path / "file").touch()
    done = process("engines", "--json", GFCODE_CACHE_DIR=str(tmp_path / "file/cache"))
    assert done.code == 0
    assert json.loads(done.out)
    assert all(line.startswith("gfcode: warning: ") for line in done.err.splitlines())


def test_completion_script_is_offered(process: Runner) -> None:
    done = process(_GFCODE_COMPLETE="bash_source")
    assert done.code == 0
    assert "_GFCODE_COMPLETE=bash_complete" in done.out
