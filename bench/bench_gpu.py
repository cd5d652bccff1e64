"""The cuda engine on the GPU of this machine: `python -m bench.bench_gpu --out results.json`.

Every product is checked against the oracle first. Then, with marks in the stream, inputs several times the GPU's
cache, and medians: what the GPU can do at all (a device copy, a matrix product), encode and worst-case decode of usual
codes by each kernel, a grouped decode, batches of all sizes, and host blocks streamed through. A figure is the bytes
that a product reads and writes over its time, and that rate over the rate of the device copy. It takes less than eight
minutes; what does not fit into `--seconds` is left out and named.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.gpu_machine import CupyMachine, Machine, decode_product, encode_product, median_seconds, wanted
from gfcode.engine.protocol import Blocks, Product
from gfcode.errors import EngineUnavailableError, GFCodeError
from gfcode.kernels.cuda.engine import CudaEngine, KernelName, load
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
    grouped: tuple[int, int] = (10_000, 16 << 10)
    batches: tuple[int, ...] = (1, 10, 100, 1000, 10_000, 100_000)
    batch_blocks: tuple[int, ...] = (4 << 10, 64 << 10, 1 << 20)
    host_bytes: int = 1 << 30
    seconds: float = 420.0


@dataclass
class Results:
    """What was found, row by row."""

    device: str
    ceilings: dict[str, float] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    checked: int = 0
    left_out: list[str] = field(default_factory=list)

    def add(self, what: str, moved: int, data: int, seconds: float, **more: Any) -> None:
        """Keep and print a figure: bytes moved and bytes of data in `seconds`."""
        rate = moved / seconds / 1e9
        share = rate / self.ceilings["copy GB/s"]
        self.rows.append(
            {"what": what, "seconds": seconds, "data GB/s": data / seconds / 1e9, "moved GB/s": rate, "of copy": share}
            | more
        )
        print(f"{what:58} {data / seconds / 1e9:9.1f} GB/s of data {rate:9.1f} moved {share:6.2f} of copy", flush=True)


def check(machine: Machine, product: Product, kernel: KernelName, results: Results) -> None:
    """Compare a kernel with the oracle on ragged blocks, or raise.

    Raises
    ------
    GFCodeError
        If the kernel cannot run the product.
    SystemExit
        If a byte differs.
    """
    operator = machine.engine.prepare(product, kernel)
    rng = np.random.default_rng(1)
    unit = product.layout.strip_bytes
    rows, columns = product.matrix.shape
    if product.layout.name == "packets":
        shapes = [(3, unit), (2, 5 * unit), (1, 41 * unit)]
    else:
        shapes = [(3, 16), (2, 16 * 129), (1, 16 * 257)]
        if (
            kernel != "program"
        ):  # unaligned blocks have kernels of their own, and those of programs take long to compile
            shapes += [(3, unit), (2, 129 * unit), (1, 4099 * unit)]
    for stripes, length in shapes:
        data = rng.integers(0, 256, (stripes, columns, length), dtype=np.uint8)
        source, target = machine.array(*data.shape), machine.array(stripes, rows, length)
        machine.put(source, data)
        operator.apply_device(source, target)
        if not np.array_equal(machine.get(target), wanted(product, data)):
            raise SystemExit(f"WRONG BYTES: {kernel} {product.layout} {product.matrix} length {length}")
        results.checked += 1


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
    xp = machine.xp
    left, right = xp.ones((side, side), "float16"), xp.ones((side, side), "float16")

    def product() -> None:
        xp.matmul(left, right)

    results.ceilings["fp16 matmul TFLOP/s"] = 2 * side**3 / median_seconds(machine, product, plan.runs) / 1e12
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
            check(machine, product, kernel, results)
            operator = machine.engine.prepare(product, kernel)
        except EngineUnavailableError as error:
            results.rows.append({"what": f"{name} {kernel}", "not run": str(error)})
            continue
        seconds = median_seconds(machine, lambda: operator.apply_device(source, target), plan.runs)  # noqa: B023
        results.add(f"{name} {kernel}", moved, data, seconds, kernel=kernel)
    few = max(1, stripes // 32)

    def baseline() -> None:
        multiply_bits(machine.xp, product, source[:few])

    if columns * product.layout.w <= 2048:
        seconds = median_seconds(machine, baseline, 3)
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
            results.checked += 1
        seconds = median_seconds(machine, lambda: operator.apply_device(shards, shards, which), plan.runs)  # noqa: B023
        name = f"(10,4) {layout.name} grouped decode, {stripes} stripes"
        results.add(name, stripes * 14 * size, stripes * 10 * size, seconds, kernel="matrix")


def _ten_sources(product: Product, used: tuple[int, ...], lost: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Write a product over ten shards of the fourteen, with columns of zeros for those that it does not read."""
    spare = [shard for shard in range(14) if shard not in used and shard not in lost]
    sources = tuple(sorted((*used, *spare[: 10 - len(used)])))
    values = np.zeros((product.matrix.shape[0], 10), product.matrix.values.dtype)
    values[:, [sources.index(shard) for shard in used]] = product.matrix.values
    return type(product.matrix)(product.matrix.field, values), sources


def measure_batches(machine: Machine, plan: Plan, results: Results) -> None:
    """Encode (10,4) in `packets` in batches of all sizes that fit the device."""
    layout = LAYOUTS[0]
    product = encode_product(10, 4, layout)
    for block, stripes in itertools.product(plan.batch_blocks, plan.batches):
        length = block // layout.strip_bytes * layout.strip_bytes
        if stripes * 14 * length <= min(machine.free_bytes() // 2, 8 << 30):
            measure_batch(machine, plan, results, product, stripes, length)
            machine.release()


def measure_batch(machine: Machine, plan: Plan, results: Results, product: Product, stripes: int, length: int) -> None:
    """Encode one batch by the matrix-product kernel and by the one that the engine chooses."""
    rows, columns = product.matrix.shape
    source, target = machine.array(stripes, columns, length), machine.array(stripes, rows, length)
    data, moved = stripes * columns * length, stripes * (columns + rows) * length
    fill(machine, source, data)
    kernels: tuple[KernelName, ...] = ("matrix", "auto")
    for kernel in kernels:
        operator = machine.engine.prepare(product, kernel)
        seconds = median_seconds(machine, lambda: operator.apply_device(source, target), plan.runs)  # noqa: B023
        name = f"({columns},{rows}) packets encode {stripes} x {length} {operator.kernel}"
        results.add(name, moved, data, seconds, kernel=operator.kernel, stripes=stripes)


def measure_host(machine: Machine, plan: Plan, results: Results) -> None:
    """Stream (10,4) from and to the host, against the transfer alone."""
    layout = LAYOUTS[0]
    product = encode_product(10, 4, layout)
    length = plan.block_bytes // layout.strip_bytes * layout.strip_bytes
    stripes = max(1, plan.host_bytes // (10 * length))
    device = machine.device
    pinned, pinned_out = machine.pinned(stripes, 10, length), machine.pinned(stripes, 4, length)
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
        seconds = median_seconds(machine, lambda: operator(inputs, outputs), 5, host=True)  # noqa: B023
        if not np.array_equal(target[:1], wanted(product, source[:1])):
            raise SystemExit(f"WRONG BYTES: streamed from {name} memory")
        share = slower / seconds
        moved = source.size + target.size
        results.add(
            f"(10,4) packets encode, host to host, {name}", moved, source.size, seconds, **{"of transfer": share}
        )
        print(f"{'':58} {share:6.2f} of the slower direction's transfer rate", flush=True)


def measure(machine: Machine, plan: Plan) -> Results:
    """Check and measure everything, as long as there is time."""
    started = time.monotonic()
    results = Results(machine.engine.detail)
    ceilings(machine, plan, results)
    steps: list[tuple[str, Callable[[], None]]] = [
        (name, lambda name=name, product=product: measure_product(machine, plan, results, name, product))  # type: ignore[misc]
        for name, product in products(plan)
    ]
    steps.insert(4, ("grouped decode", lambda: measure_grouped(machine, plan, results)))
    steps.insert(5, ("host to host", lambda: measure_host(machine, plan, results)))
    steps.append(("batches", lambda: measure_batches(machine, plan, results)))
    for name, step in steps:
        if time.monotonic() - started > plan.seconds:
            results.left_out.append(name)
            continue
        step()
        machine.release()
    return results


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 0 if it ran (or there is no GPU and no results were asked for)."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.bench_gpu", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--out", type=Path, help="write the results there, as JSON")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="start nothing new after so many")
    options = parser.parse_args(arguments)
    try:
        engine = load()
    except EngineUnavailableError as error:
        print(f"not measured: {error}")
        return 1 if options.out else 0
    assert isinstance(engine, CudaEngine)
    print(engine.detail)
    try:
        results = measure(CupyMachine(engine), Plan(seconds=options.seconds))
    except GFCodeError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    if options.out:
        options.out.write_text(json.dumps(vars(results), indent=1) + "\n")
    for name in results.left_out:
        print(f"left out, for want of time: {name}")
    print(f"{results.checked} products checked against the oracle")
    return 0


if __name__ == "__main__":
    sys.exit(main())
