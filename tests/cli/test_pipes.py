"""Whole processes: pipes, memory, progress on a terminal and none in a pipe."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Runner

#: What the name `gfcode` means in a shell line.
SHELL_NAME = f'gfcode() {{ "{sys.executable}" -c "from gfcode.cli.main import run; run()" "$@"; }}\n'


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which any failing command of a pipe counts."""
    return subprocess.run(
        ["bash", "-c", "set -o pipefail\n" + SHELL_NAME + line], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_the_pipe_of_the_manual(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(os.urandom(3_000_000))
    done = shell(
        "cat f | gfcode encode - --name f --out d && gfcode decode d -o - | cmp - f && rm d/f.00[1346].gfs"
        " && gfcode decode d -o - | cmp - f && gfcode repair d -q && gfcode decode d -o - | cmp - f && gfcode verify d",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "intact"
    assert sorted(os.listdir(tmp_path / "d")) == [f"f.{index:03}.gfs" for index in range(14)]
    # Only the damaged decode has something to say, on stderr; there is no progress in a pipe.
    assert [line for line in done.stderr.splitlines() if "rebuilt" not in line] == [
        "no file holds shards 1, 3, 4, 6",
        "run `gfcode verify` to see all damage, `gfcode repair` to repair it",
    ]


def test_a_stream_needs_a_name(process: Runner) -> None:
    done = process("encode", "-")
    assert done.code == 2
    assert "--name" in done.error


def test_nothing_of_a_stream_that_is_beyond_repair(tmp_path: Path) -> None:
    """The reader is told by the exit code, and no byte that isn't certain is written."""
    content = os.urandom(300_000)
    (tmp_path / "f").write_bytes(content)
    assert shell("gfcode encode f -k 4 -m 1 --frame 4KiB --out d", tmp_path).returncode == 0
    for index in (0, 1):
        path = tmp_path / f"d/f.00{index}.gfs"
        shard = bytearray(path.read_bytes())
        shard[4096 + 15 * 4096 + 600] ^= 1
        path.write_bytes(shard)
    done = subprocess.run([*PROGRAM, "decode", tmp_path / "d", "-o", "-"], capture_output=True, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith(b"gfcode: error: 1 of 21 stripes of 'f' are beyond repair (stripe 15)")
    assert content.startswith(done.stdout)
    assert len(done.stdout) <= 15 * 4 * 3584


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(30_000_000))
    done = shell("gfcode encode f -q --out d && gfcode decode d -o - | head -c 10 | wc -c", tmp_path)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (141, "10", "")


def run_on_terminal(*arguments: str | Path, cwd: Path) -> tuple[int, str, str]:
    """Run the command with its stderr on a terminal; exit code, stdout, and what the terminal got."""
    leader, follower = pty.openpty()
    try:
        with subprocess.Popen(
            [*PROGRAM, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}, text=True,
        ) as child:  # fmt: skip
            os.close(follower)
            shown = b""
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                if select.select([leader], [], [], 0.05)[0]:
                    try:
                        piece = os.read(leader, 65536)
                    except OSError:  # the last holder of the terminal has left
                        break
                    if not piece:
                        break
                    shown += piece
            out = child.stdout.read() if child.stdout else ""
        return child.returncode, out, shown.decode()
    finally:
        os.close(leader)


def test_progress_on_a_terminal_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(os.urandom(60_000_000))
    code, out, shown = run_on_terminal("encode", "f", "--out", "d", cwd=tmp_path)
    assert code == 0
    assert out.startswith("f: 57.2 MiB in 10 + 4 shards")
    assert "encode" in shown
    assert "100%" in shown
    assert re.search(r"57\.2/57\.2 MiB", shown)
    assert re.search(r"[\d.]+ [kMG]B/s", shown)
    for silent in ("--json", "-q"):
        code, out, shown = run_on_terminal("verify", "d", silent, cwd=tmp_path)
        assert (code, shown) == (0, "")
    assert out == ""


def peak_memory(*arguments: str | Path, cwd: Path) -> int:
    """Bytes of memory that a command had resident at most (of its own address space, whoever started it)."""
    program = (
        "import sys; from gfcode.cli.main import main; code = main(sys.argv[1:]);"
        "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]) * 1024


@pytest.mark.parametrize(
    "gigabytes",
    [
        1,
        pytest.param(
            4,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(os.environ.get("GFCODE_SLOW") != "1", reason="takes 40 s; GFCODE_SLOW=1 runs it"),
            ],
        ),
    ],
)
def test_memory_is_bounded_whatever_the_size(tmp_path: Path, gigabytes: int) -> None:
    size, limit = gigabytes << 30, 300 << 20
    if shutil.disk_usage(tmp_path).free < 3 * size:
        pytest.skip(f"needs {3 * gigabytes} GiB of free disk in {tmp_path}")
    os.truncate(os.open(tmp_path / "f", os.O_CREAT | os.O_WRONLY), size)
    try:
        assert peak_memory("encode", "f", "--out", "d", cwd=tmp_path) < limit
        for index in (0, 7):
            (tmp_path / f"d/f.00{index}.gfs").unlink()
        assert peak_memory("decode", "d", "-o", "back", cwd=tmp_path) < limit
        assert (tmp_path / "back").stat().st_size == size
    finally:
        shutil.rmtree(tmp_path)
