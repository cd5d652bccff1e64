"""The cuda engine on the GPU of this machine: `python -m bench.bench_gpu --out results.json`.

Every product is checked against the oracle first. Then, with marks in the stream, inputs several times the GPU's
cache, and medians: what the GPU can do at all (a device copy, matrix products of int8, bf16 and fp16), encode and
worst-case decode of usual codes by each kernel and by the plain baseline, a grouped decode, host blocks streamed
through, batches of all sizes, and what tuning gains. A figure is the bytes that a product reads and writes over its
time, and that rate over the rate of the device copy. It takes less than eight minutes; what does not fit into
`--seconds` or into the GPU's memory is left out and named, and what was measured is written even if a later step fails.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.gpu_checks import check, check_baseline, check_verbs
from bench.gpu_machine import GEMMS, CupyMachine, Machine, decode_product, encode_product, median_seconds, wanted
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.errors import EngineUnavailableError, GFCodeError
from gfcode.kernels.cuda.engine import CudaEngine, KernelName
from gfcode.kernels.cuda.matmul import multiply_bits
from gfcode.params import Layout

CODES: Final = ((4, 2), (6, 3), (8, 3), (10, 4), (16, 4), (20, 4), (50, 20))
KERNELS: Final[tuple[KernelName, ...]] = ("matrix", "horner", "program")
LAYOUTS: Final = (Layout("packets", 8), Layout("words", 8))


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes
    ----------
    data_bytes : int
        Data of one launch: several times the cache of any GPU.
    block_bytes : int
    runs : int
        Timings of which the median counts.
    codes : tuple of (int, int)
    usual : (int, int)
        The code of batches, streams and tuning.
    grouped : (int, int)
        Stripes and block bytes of the grouped decode.
    batches, batch_blocks : tuple of int
        Stripes and block bytes of the batches.
    host_bytes : int
        Data streamed from and to the host.
    seconds : float
        After so many, what is left is left out.
    """

    data_bytes: int = 1 << 30
    block_bytes: int = 1 << 20
    runs: int = 15
    codes: tuple[tuple[int, int], ...] = CODES
    usual: tuple[int, int] = (10, 4)
    grouped: tuple[int, int] = (10_000, 16 << 10)
    batches: tuple[int, ...] = (1, 10, 100, 1000, 10_000, 100_000)
    batch_blocks: tuple[int, ...] = (4 << 10, 64 << 10, 1 << 20)
    host_bytes: int = 1 << 30
    seconds: float = 420.0


#: What `main` measures.
PLAN: Final = Plan()


@dataclass
class Results:
    """What was found, row by row."""

    device: str
    ceilings: dict[str, float] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    checked: int = 0
    left_out: list[str] = field(default_factory=list)
    failed: str = ""

    def add(self, what: str, moved: int, data: int, seconds: float, **more: Any) -> None:
        """Keep and print a figure: bytes moved and bytes of data in `seconds`."""
        rate = moved / seconds / 1e9
        share = rate / self.ceilings["copy GB/s"]
        self.rows.append(
            {"what": what, "seconds": seconds, "data GB/s": data / seconds / 1e9, "moved GB/s": rate, "of copy": share}
            | more
        )
        print(f"{what:58} {data / seconds / 1e9:9.1f} GB/s of data {rate:9.1f} moved {share:6.2f} of copy", flush=True)

    def count(self, checked: int) -> None:
        """Count products that were compared with the oracle."""
        self.checked += checked

    def leave_out(self, what: str, error: BaseException | None = None) -> None:
        """Keep the name of what was not measured, and why."""
        reason = "for want of time" if error is None else str(error).strip().splitlines()[0] or type(error).__name__
        self.left_out.append(f"{what}: {reason}")


def fill(machine: Machine, array: Any, size: int) -> None:
    """Fill device memory with random bytes: a few MiB from the host, then copied on the device."""
    seed = np.random.default_rng(2).integers(0, 256, min(size, 8 << 20), dtype=np.uint8)
    first = machine.array(seed.size)
    machine.put(first, seed)
    stream, start = machine.device.current_stream(), machine.address(array)
    for at in range(0, size, seed.size):
        machine.device.copy(start + at, machine.address(first), min(seed.size, size - at), stream)
    machine.device.synchronize(machine.device.record(stream))


def ceilings(machine: Machine, plan: Plan, results: Results) -> None:
    """Measure what no kernel can beat: a copy on the device, and a matrix product of the library."""
    size = plan.data_bytes
    source, target = machine.array(size), machine.array(size)
    fill(machine, source, size)
    stream = machine.device.current_stream()

    def copy() -> None:
        machine.device.copy(machine.address(target), machine.address(source), size, stream)

    results.ceilings["copy GB/s"] = 2 * size / median_seconds(machine, copy, plan.runs) / 1e9
    side = 8192 if plan.data_bytes >= 1 << 30 else 64
    for kind in GEMMS:
        try:
            seconds = median_seconds(machine, machine.gemm(kind, side), plan.runs)
        except (ImportError, MemoryError, RuntimeError) as error:
            results.leave_out(f"matmul of {kind}", error)
        else:
            results.ceilings[f"{kind} matmul Tera-operations/s"] = 2 * side**3 / seconds / 1e12
    for name, value in results.ceilings.items():
        print(f"{name:30} {value:.1f}", flush=True)


def products(plan: Plan) -> Iterator[tuple[str, Product]]:
    """List encode and the decode of the first m data shards, for each code and layout."""
    for (k, m), layout in itertools.product(plan.codes, LAYOUTS):
        yield f"({k},{m}) {layout.name} encode", encode_product(k, m, layout)
        yield f"({k},{m}) {layout.name} decode", decode_product(k, m, layout, range(min(k, m)))[0]


def measure_product(machine: Machine, plan: Plan, results: Results, name: str, product: Product) -> None:
    """Time all kernels that can run a product, and the plain baseline."""
    rows, columns = product.matrix.shape
    length = plan.block_bytes // product.layout.strip_bytes * product.layout.strip_bytes
    stripes = max(1, plan.data_bytes // (columns * length))
    source, target = machine.array(stripes, columns, length), machine.array(stripes, rows, length)
    fill(machine, source, stripes * columns * length)
    moved, data = stripes * (columns + rows) * length, stripes * columns * length
    for kernel in KERNELS:
        try:
            results.count(check(machine, product, kernel))
            operator = machine.engine.prepare(product, kernel)
        except EngineUnavailableError as error:
            results.rows.append({"what": f"{name} {kernel}", "not run": str(error)})
            continue
        seconds = median_seconds(machine, partial(operator.apply_device, source, target), plan.runs)
        results.add(f"{name} {kernel}", moved, data, seconds, kernel=kernel)
    few = max(1, stripes // 32)
    if columns * product.layout.w > 2048:
        return  # more than numbers of 16 bits count
    try:
        results.count(check_baseline(machine, product))
        seconds = median_seconds(machine, lambda: multiply_bits(machine.xp, product, source[:few]), 3)
    except (ImportError, MemoryError, RuntimeError) as error:
        results.leave_out(f"{name} plain matmul", error)
    else:
        results.add(f"{name} plain matmul", moved * few // stripes, data * few // stripes, seconds, kernel="matmul")


def measure_grouped(machine: Machine, plan: Plan, results: Results) -> None:
    """Rebuild stripes of (10,4) in place, each with one of all 1,001 patterns of four lost shards, in one launch."""
    stripes, length = plan.grouped
    for layout in LAYOUTS:
        size = length // layout.strip_bytes * layout.strip_bytes
        patterns = list(itertools.combinations(range(14), 4))[: max(1, stripes)]
        plans = [decode_product(10, 4, layout, lost) for lost in patterns]
        # A pattern that needs fewer than ten shards is written with ten, so that all have one shape.
        matrices, sources = zip(
            *(_ten_sources(product, used, lost) for (product, used), lost in zip(plans, patterns, strict=True)),
            strict=True,
        )
        operator = machine.engine.prepare_grouped(matrices, layout, np.array(sources), np.array(patterns))
        which = np.arange(stripes) % len(patterns)
        shards = machine.array(stripes, 14, size)
        few = min(stripes, 50)
        data = np.random.default_rng(3).integers(0, 256, (few, 14, size), dtype=np.uint8)
        fill(machine, shards, stripes * 14 * size)
        machine.put(shards[:few], data)
        operator.apply_device(shards[:few], shards[:few], which[:few])
        made = machine.get(shards[:few])
        for stripe in range(few):
            product = Product(matrices[which[stripe]], layout)
            expected = wanted(product, data[stripe][list(sources[which[stripe]])][None])[0]
            if not np.array_equal(made[stripe][list(patterns[which[stripe]])], expected):
                raise SystemExit(f"WRONG BYTES: grouped {layout.name} pattern {patterns[which[stripe]]}")
            results.count(1)
        seconds = median_seconds(machine, partial(operator.apply_device, shards, shards, which), plan.runs)
        name = f"(10,4) {layout.name} grouped decode, {stripes} stripes"
        results.add(name, stripes * 14 * size, stripes * 10 * size, seconds, kernel="matrix")


def _ten_sources(product: Product, used: tuple[int, ...], lost: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Write a product over ten shards of the fourteen, with columns of zeros for those that it does not read."""
    spare = [shard for shard in range(14) if shard not in used and shard not in lost]
    sources = tuple(sorted((*used, *spare[: 10 - len(used)])))
    values = np.zeros((product.matrix.shape[0], 10), product.matrix.values.dtype)
    values[:, [sources.index(shard) for shard in used]] = product.matrix.values
    return type(product.matrix)(product.matrix.field, values), sources


def batches(plan: Plan) -> Iterator[tuple[int, int]]:
    """List stripes and block bytes of the batches, shortest first."""
    sizes = ((stripes, block) for block in plan.batch_blocks for stripes in plan.batches)
    return iter(sorted(sizes, key=lambda size: size[0] * size[1]))


def measure_batch(machine: Machine, plan: Plan, results: Results, stripes: int, block: int) -> None:
    """Encode one batch of the usual code in `packets` by the matrix-product kernel and by the engine's own choice."""
    (k, m), layout = plan.usual, LAYOUTS[0]
    length = block // layout.strip_bytes * layout.strip_bytes
    if stripes * (k + m) * length > machine.free_bytes() * 3 // 4:
        results.left_out.append(f"a batch of {stripes} x {length}: the GPU has no room")
        return
    product = encode_product(*plan.usual, layout)
    source, target = machine.array(stripes, k, length), machine.array(stripes, m, length)
    data, moved = stripes * k * length, stripes * (k + m) * length
    fill(machine, source, data)
    kernels: tuple[KernelName, ...] = ("matrix", "auto")
    for kernel in kernels:
        operator = machine.engine.prepare(product, kernel)
        seconds = median_seconds(machine, partial(operator.apply_device, source, target), plan.runs)
        name = f"({k},{m}) packets encode {stripes} x {length} {operator.kernel}"
        results.add(name, moved, data, seconds, kernel=operator.kernel, stripes=stripes)


def measure_tuned(machine: Machine, plan: Plan, results: Results, layout: Layout) -> None:
    """Tune the kernels for encoding with the usual code, and time them again; what is found is kept for later calls."""
    (k, m), product = plan.usual, encode_product(*plan.usual, layout)
    length = plan.block_bytes // layout.strip_bytes * layout.strip_bytes
    stripes = max(1, plan.data_bytes // (k * length))
    for kernel in KERNELS:
        try:
            operator = machine.engine.prepare(product, kernel)
        except EngineUnavailableError:
            continue  # named with the untuned ones
        tuning = operator.tune(stripes, length)
        source, target = machine.array(stripes, k, length), machine.array(stripes, m, length)
        fill(machine, source, stripes * k * length)
        results.count(check(machine, product, kernel))
        seconds = median_seconds(machine, partial(operator.apply_device, source, target), plan.runs)
        name = f"({k},{m}) {layout.name} encode {kernel} tuned"
        moved, data = stripes * (k + m) * length, stripes * k * length
        results.add(name, moved, data, seconds, kernel=kernel, tuning=asdict(tuning))


def measure_host(machine: Machine, plan: Plan, results: Results) -> None:
    """Stream the usual code from and to the host, against the transfer alone."""
    (k, m), layout = plan.usual, LAYOUTS[0]
    product = encode_product(*plan.usual, layout)
    length = plan.block_bytes // layout.strip_bytes * layout.strip_bytes
    stripes = max(1, plan.host_bytes // (k * length))
    device = machine.device
    pinned, pinned_out = machine.pinned(stripes, k, length), machine.pinned(stripes, m, length)
    pinned[:] = np.random.default_rng(4).integers(0, 256, pinned.shape, dtype=np.uint8)
    on_device = machine.array(pinned.size)
    place, stream = machine.address(on_device), device.current_stream()

    def rate(action: Callable[[], None]) -> float:
        return pinned.size / median_seconds(machine, action, 5) / 1e9

    incoming = rate(lambda: device.copy(place, int(pinned.ctypes.data), pinned.size, stream))
    outgoing = rate(lambda: device.copy(int(pinned.ctypes.data), place, pinned.size, stream))
    results.ceilings |= {"to device GB/s": incoming, "from device GB/s": outgoing}
    slower = max(pinned.size / incoming, pinned_out.size / outgoing) / 1e9
    operator = machine.engine.prepare(product)
    for name, source, target in (
        ("page-locked", pinned, pinned_out),
        ("ordinary", pinned.copy(), np.zeros(pinned_out.shape, np.uint8)),
    ):
        inputs, outputs = Blocks.of_array(source), Blocks.of_array(target, writable=True)
        seconds = median_seconds(machine, partial(operator, inputs, outputs), 5, host=True)
        if not np.array_equal(target[:1], wanted(product, source[:1])):
            raise SystemExit(f"WRONG BYTES: streamed from {name} memory")
        share = slower / seconds
        moved = source.size + target.size
        results.add(
            f"({k},{m}) packets encode, host to host, {name}", moved, source.size, seconds, **{"of transfer": share}
        )
        print(f"{'':58} {share:6.2f} of the slower direction's transfer rate", flush=True)


def measure(machine: Machine, plan: Plan, results: Results) -> None:
    """Check and measure everything, as long as there is time."""
    started = time.monotonic()
    steps: list[tuple[str, Callable[[], None]]] = [
        ("verbs of codecs", lambda: results.count(check_verbs(machine, LAYOUTS, *plan.usual))),
        ("ceilings", lambda: ceilings(machine, plan, results)),
    ]
    for name, product in products(plan):
        steps.append((name, partial(measure_product, machine, plan, results, name, product)))
    # These two go before the wide codes, which matter less, should time run out.
    steps.insert(6, ("grouped decode", lambda: measure_grouped(machine, plan, results)))
    steps.insert(7, ("host to host", lambda: measure_host(machine, plan, results)))
    for stripes, block in batches(plan):
        name = f"a batch of {stripes} x {block}"
        steps.append((name, partial(measure_batch, machine, plan, results, stripes, block)))
    steps.extend((f"tuning in {one.name}", partial(measure_tuned, machine, plan, results, one)) for one in LAYOUTS)
    for name, step in steps:
        if time.monotonic() - started > plan.seconds:
            results.leave_out(name)
            continue
        try:
            step()
        except MemoryError as error:  # CuPy's own and ours
            results.leave_out(name, error)
        machine.release()


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 0 if it ran (or there is no GPU and no results were asked for)."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.bench_gpu", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--out", type=Path, help="write the results there, as JSON")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="start nothing new after so many")
    options = parser.parse_args(arguments)
    try:
        engine = get_engine("cuda")
    except EngineUnavailableError as error:
        print(f"not measured: {error}")
        return 1 if options.out else 0
    assert isinstance(engine, CudaEngine)
    return run(CupyMachine(engine), replace(PLAN, seconds=options.seconds), options.out)


def run(machine: Machine, plan: Plan, out: Path | None) -> int:
    """Measure, write what was found (also if something fails on the way), and say what was left out."""
    print(machine.engine.detail)
    results = Results(machine.engine.detail)
    try:
        measure(machine, plan, results)
    except GFCodeError as error:
        results.failed = str(error)
    except BaseException as error:
        results.failed = str(error) or type(error).__name__
        raise
    finally:  # what was measured until then is kept all the same
        if out:
            out.write_text(json.dumps(vars(results), indent=1) + "\n")
        for name in results.left_out:
            print(f"left out: {name}")
        print(f"{results.checked} products checked against the oracle")
        if results.failed:
            print(f"failed: {results.failed}", file=sys.stderr)
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
