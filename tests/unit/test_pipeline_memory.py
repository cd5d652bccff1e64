"""Memory does not grow with the file."""

import subprocess
import sys
from pathlib import Path

RUN = """
import sys
from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
import os
source, out, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(source, "wb") as file:
    file.truncate(size)
encode_file(source, out=out, durable=False, threads=4)
os.unlink(out + "/sparse.001.gfs")
assert decode_file(out, source + ".back", durable=False, threads=4).size == size
os.unlink(source + ".back")
assert repair_set(out, durable=False, threads=4).state == "intact"
with open("/proc/self/status") as status:  # ru_maxrss would start with what the parent had resident
    print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""


def peak(directory: Path, size: int) -> float:
    """Return the MiB that encoding, decoding and repairing a sparse file of `size` bytes takes in a new process."""
    directory.mkdir()
    arguments = [str(directory / "sparse"), str(directory / "s"), str(size)]
    result = subprocess.run([sys.executable, "-c", RUN, *arguments], check=True, capture_output=True, text=True)
    return int(result.stdout) / 1024


def test_peak_memory(tmp_path: Path) -> None:
    # Both are many batches long; what a file needs beyond that would show 12 times as large in the second.
    small, large = peak(tmp_path / "small", 32 << 20), peak(tmp_path / "large", 384 << 20)
    assert large < 300
    assert large < small + 60
