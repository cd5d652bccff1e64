"""gfcode's driver beside the installed PyECLib: ``python -m bench.bench_pyeclib``.

Calls of both are interleaved, so that what else the machine does meets both; figures are medians in µs.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from gfcode.compat.pyeclib import ECDriver

CODES = (
    ("isa_l_rs_vand", 10, 4),
    ("isa_l_rs_cauchy", 8, 4),
    ("liberasurecode_rs_vand", 10, 4),
    ("flat_xor_hd_4", 10, 5),
)
SIZES = (4096, 65_536, 1 << 20)


def interleaved(calls: tuple[Callable[[], object], ...], seconds: float) -> list[float]:
    """Median duration of each call, in µs, over so many seconds of turns."""
    durations: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(durations[0]) < 5:
        for call, taken in zip(calls, durations, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) * 1e6 for taken in durations]


def operations(driver: Any, data: bytes, fragments: list[bytes]) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    k = driver.k
    return {
        "encode": lambda: driver.encode(data),
        "decode, nothing lost": lambda: driver.decode(fragments[:k]),
        "decode, 1 lost": lambda: driver.decode(fragments[1:]),
        "decode, 3 lost": lambda: driver.decode(fragments[3:]),
        "reconstruct 1": lambda: driver.reconstruct(fragments[1:], [0]),
        "get_metadata": lambda: driver.get_metadata(fragments[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each comparison")
    seconds = parser.parse_args().seconds
    try:
        import pyeclib.ec_iface as peer
    except ImportError as error:
        print(f"PyECLib is not installed: pip install pyeclib ({error})")
        return 0
    print("| data | code | checksum | operation | PyECLib, µs | gfcode, µs | ratio |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        data = os.urandom(size)
        for ec_type, k, m in CODES:
            for checksum in ("none", "inline_crc32"):
                options: dict[str, Any] = {"ec_type": ec_type, "k": k, "m": m, "chksum_type": checksum}
                theirs, ours = peer.ECDriver(**options), ECDriver(**options)
                fragments = ours.encode(data)
                if theirs.encode(data) != fragments:
                    raise SystemExit(f"{options}: fragments differ")
                both = zip(
                    operations(theirs, data, fragments).items(), operations(ours, data, fragments).values(), strict=True
                )
                for (name, their), our in both:
                    slow, fast = interleaved((their, our), seconds)
                    code = f"{ec_type} ({k},{m})"
                    print(f"| {size} | {code} | {checksum} | {name} | {slow:.1f} | {fast:.1f} | {slow / fast:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
