"""Latency of single calls, beside the kernel alone and beside the installed PyECLib: ``python -m bench.bench_latency``.

All calls of a case run in turn, each once, so that what else the machine does meets all of them; a case is repeated in
rounds, and the figures are medians over the rounds of each round's p50 and p99, in µs. `overhead` is the median over
the rounds of the difference between a call's p50 and that of the kernel: the engine's operator on addresses that are
there already, so that nothing is looked at. PyECLib's calls include its headers and copies, which its user gets.
The result is JSON.
"""

import argparse
import gc
import importlib
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import numpy as np

import gfcode
from bench.harness import environment, pin
from gfcode.engine.protocol import Blocks

#: Bytes of data of a stripe, as asked for; blocks are the shortest whole strips that hold them.
STRIPES = (4 << 10, 64 << 10, 1 << 20)
K, M = 10, 4
#: Arrays that a call gets in turn, where it is not to get the same each time.
STRIPES_IN_TURN = 64
#: What another library's call is compared with.
PEERS = {"pyeclib encode": "encode, new array", "pyeclib decode, 1 lost": "degraded read, bytes"}


def kernel(operator: Any, inputs: Blocks, outputs: Blocks) -> Callable[[], object]:
    """Return a call of an operator on bare addresses, where it takes them."""
    run = getattr(operator, "run", None)
    arguments = inputs.address, 0, outputs.address, 0, outputs.length
    if run is None or not run(*arguments):
        return lambda: operator(inputs, outputs)
    return lambda: (run(*arguments), inputs, outputs)


def calls_of(size: int, peer: Any) -> dict[str, Callable[[], object]]:
    """Return what is measured for stripes of this size, kernels first."""
    codec = gfcode.Codec(K, M)
    block = -(-size // (K * codec.block_multiple)) * codec.block_multiple
    data = np.random.default_rng(1).integers(0, 256, (K, block), np.uint8)
    parity = codec.encode(data)
    out = np.empty_like(parity)
    stripe, made = Blocks.of_array(data), Blocks.of_array(out)
    arrays = {**{shard: data[shard] for shard in range(1, K)}, K: parity[0]}
    buffers = {shard: bytes(array) for shard, array in arrays.items()}
    plan = codec.plan(arrays, [0])
    survivors = Blocks.of_buffers([arrays[shard] for shard in plan.sources])
    read = Blocks.of_array(np.empty((1, block), np.uint8))
    rows = [bytes(row) for row in data]
    patched, new = codec.encode(data), data[1].copy()
    many = [np.random.default_rng(seed).integers(0, 256, (K, block), np.uint8) for seed in range(STRIPES_IN_TURN)]
    turn = itertools.cycle(many)
    calls: dict[str, Callable[[], object]] = {
        "kernel encode": kernel(codec.encoder(), stripe, made),
        "kernel degraded read": kernel(plan.operator, survivors, read),
        "encode_into": lambda: codec.encode_into(data, out),
        "encode, new array": lambda: codec.encode(data),
        "encode, one of many stripes": lambda: codec.encode(next(turn)),
        "encode, bytes": lambda: codec.encode(rows),
        "degraded read, arrays": lambda: codec.reconstruct(arrays, [0]),
        "degraded read, bytes": lambda: codec.reconstruct(buffers, [0]),
        "update": lambda: codec.update(patched, 0, data[0], new),
    }
    if peer is not None:
        driver = peer.ECDriver(k=K, m=M, ec_type="isa_l_rs_vand")
        content = data.tobytes()
        fragments = driver.encode(content)
        calls["pyeclib encode"] = lambda: driver.encode(content)
        calls["pyeclib decode, 1 lost"] = lambda: driver.decode(fragments[1 : K + 1])
    return calls


def measure(calls: Mapping[str, Callable[[], object]], rounds: int, count: int) -> dict[str, dict[str, float]]:
    """Time every call `count` times in each round, in turns."""
    clock = time.perf_counter_ns
    p50: dict[str, list[float]] = {name: [] for name in calls}
    p99: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(20):
            call()
    gc.disable()
    try:
        for _ in range(rounds):
            taken: dict[str, list[int]] = {name: [] for name in calls}
            for _ in range(count):
                for name, call in calls.items():
                    call()  # its own data and code, once more into the caches that the others used
                    start = clock()
                    call()
                    taken[name].append(clock() - start)
            for name, durations in taken.items():
                durations.sort()
                p50[name].append(durations[count // 2] / 1e3)
                p99[name].append(durations[min(count - 1, count * 99 // 100)] / 1e3)
    finally:
        gc.enable()
    figures = {}
    for name in calls:
        figures[name] = {"p50": statistics.median(p50[name]), "p99": statistics.median(p99[name])}
        kernel = "kernel encode" if name.startswith("encode") else "kernel degraded read"
        if name.startswith(("encode", "degraded")):
            figures[name]["overhead"] = statistics.median(
                mine - its for mine, its in zip(p50[name], p50[kernel], strict=True)
            )
        if name in PEERS:
            mine = p50[PEERS[name]]
            figures[name]["ratio"] = statistics.median(its / our for its, our in zip(p50[name], mine, strict=True))
    return {name: {key: round(value, 2) for key, value in figure.items()} for name, figure in figures.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=400, help="calls of each kind in a round")
    options = parser.parse_args()
    peer: Any = None
    try:
        peer = importlib.import_module("pyeclib.ec_iface")
        version = metadata.version("pyeclib")
    except ImportError as error:
        version = f"not installed: {error}"
    pin()
    clock = min(abs(time.perf_counter_ns() - time.perf_counter_ns()) for _ in range(1000)) / 1e3
    result: dict[str, Any] = {
        "code": f"k = {K}, m = {M}, w = 8, packets",
        "unit": "µs",
        "clock": clock,
        "environment": {**environment(), "pyeclib": version},
        "stripes": {},
    }
    for size in STRIPES:
        count = options.count if size < 1 << 20 else max(20, options.count // 8)
        result["stripes"][f"{size >> 10} KiB"] = measure(calls_of(size, peer), options.rounds, count)
    json.dump(result, sys.stdout, indent=2, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
