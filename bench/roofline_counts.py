"""What the kernels of the `simd` engine do for a product: instructions by kind, as often as they run.

Machine code says which instructions each block of a kernel has; how often a block runs depends on blocks, matrix and
length. So a copy of the kernel that counts the runs of each block does the product once, and both are put together by
the blocks' names, which the compiler keeps.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import addresses_of
from gfcode.engine.protocol import Product
from gfcode.kernels.simd import constants
from gfcode.kernels.simd.compiler import Kernel, object_code
from gfcode.kernels.simd.declarations import declarations
from gfcode.kernels.simd.plan import Planner, Way
from gfcode.kernels.simd.target import Target

__all__ = ["KINDS", "Counts", "count", "jit", "kinds"]

Bytes = npt.NDArray[np.uint8]

#: Kinds of instructions. `loads` takes every instruction that occupies a load port, prefetches and scalar loads too.
KINDS = ("xor", "ternary", "affine", "shuffle", "other", "loads", "stores", "instructions")

_CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
_LABEL = re.compile(r"([A-Za-z_][\w.]*):")
_FUNCTION = re.compile(r"define .*@([\w.]+)\(")
_BLOCK = re.compile(r"(?:# %bb\.\d+:|\.LBB\d+_\d+:)\s*(?:# %([\w.]+))?")
_ARITHMETIC = {
    "ternary": re.compile(r"vpternlog"),
    "xor": re.compile(r"v?(?:pxor|xorp)"),
    "affine": re.compile(r"v?gf2p8"),
    "shuffle": re.compile(r"v?(?:pshuf|perm|punpck|palignr|pack|shuf|insert|extract|pblend|blend)"),
}


@dataclass(frozen=True)
class Counts:
    """Instructions of one product.

    Attributes
    ----------
    by_kind : dict of str to int
        How many of each of `KINDS`.
    """

    by_kind: dict[str, int]

    def per_byte(self, vector_bytes: int, data_bytes: int) -> dict[str, float]:
        """Return vectors' bytes a byte of data, by kind; instructions are counted as vectors are."""
        return {kind: number * vector_bytes / data_bytes for kind, number in self.by_kind.items()}


def _machine(target: Target) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(cpu=target.cpu, features=target.features, opt=3, jit=True)


def _assembly(kernel: Kernel, target: Target) -> str:
    """Compile to assembly in which blocks have their names as comments."""
    module = llvm.parse_assembly(kernel.emit(target) + "\n" + declarations(target))
    module.triple = target.triple
    machine = _machine(target)
    machine.set_asm_verbosity(True)
    return str(machine.emit_assembly(module))


def jit(code: bytes, target: Target, symbols: tuple[str, ...]) -> tuple[Any, dict[str, int]]:
    """Load an object file; return what keeps it alive, and the addresses of functions."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, {symbol: engine.get_function_address(symbol) for symbol in symbols}


class _Counting:
    """A kernel that counts the runs of its blocks.

    Attributes
    ----------
    blocks : list of (str, str)
        Function and label of each block.
    runs : ndarray of int64
        How often each has run.
    """

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel, self.name, self.symbols = kernel, kernel.name, kernel.symbols
        text = kernel.emit(target)
        self.blocks: list[tuple[str, str]] = []
        self.runs = np.zeros(sum(_LABEL.fullmatch(line) is not None for line in text.splitlines()), np.int64)
        self._text = self._instrumented(text)
        self._engine, self.addresses = jit(object_code(self, target), target, (self.name, *self.symbols))

    def emit(self, _: Target) -> str:
        """Return the text that counts."""
        return self._text

    def _instrumented(self, text: str) -> str:
        lines: list[str] = []
        function, waiting = "", False
        for line in text.splitlines():
            if waiting and " phi " not in line:
                waiting = False
                number = len(self.blocks) - 1
                place = f"ptr inttoptr (i64 {self.runs.ctypes.data + 8 * number} to ptr)"
                lines += [
                    f"  %runs{number} = load i64, {place}, align 8",
                    f"  %more{number} = add i64 %runs{number}, 1",
                    f"  store i64 %more{number}, {place}, align 8",
                ]
            lines.append(line)
            if begin := _FUNCTION.match(line):
                function = begin[1]
            elif label := _LABEL.fullmatch(line):
                self.blocks.append((function, label[1]))
                waiting = True
        return "\n".join(lines)


def kinds(line: str) -> Counter[str]:
    """Say of which kinds an instruction is, as AT&T assembly has it."""
    mnemonic, _, rest = line.partition("\t")
    operands = re.split(r",\s*(?![^(]*\))", rest.split("#")[0].strip()) if rest else []
    found: Counter[str] = Counter(instructions=1)
    memory = ["(" in operand for operand in operands]
    vector = bool(re.search(r"%[xyz]mm", rest))
    moves = re.match(r"v?mov", mnemonic) is not None
    if mnemonic.startswith("prefetch"):
        found["loads"] += 1
    elif memory and memory[-1] and (moves or mnemonic.startswith("vextract")):
        found["stores"] += 1
    elif any(memory) and not mnemonic.startswith("lea"):
        found["loads"] += 1
    if vector and not moves and not re.match(r"vp?broadcast", mnemonic):
        kind = next((kind for kind, pattern in _ARITHMETIC.items() if pattern.match(mnemonic)), "other")
        # A register is cleared where it is renamed.
        if not (kind == "xor" and len(set(operands)) == 1):
            found[kind] += 1
    return found


def _by_block(text: str) -> dict[tuple[str, str], Counter[str]]:
    """Count the instructions of each block of assembly."""
    found: dict[tuple[str, str], Counter[str]] = {}
    function = label = ""
    for raw in text.splitlines():
        if block := _BLOCK.match(raw):
            label = block[1] or label
        elif (name := re.match(r"([A-Za-z_][\w.]*):", raw)) is not None:
            function, label = name[1], "entry"
        elif raw.startswith("\t") and not raw.startswith(("\t.", "\t#")):
            found.setdefault((function, label), Counter()).update(kinds(raw[1:]))
    return found


def count(product: Product, target: Target, way: Way, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> Counts:
    """Run a product by kernels that count, and return what all of them did; the outputs are right afterwards.

    Parameters
    ----------
    product : Product
    target : Target
        Must be able to run here.
    way : Way
    inputs, outputs : sequences of arrays of uint8
        One stripe; blocks are whole vectors. They lie as `way` says: for `Way.STREAMING`, outputs on cache lines.
    """
    steps = Planner(product, target).steps(way)
    counting: dict[str, _Counting] = {}
    bound: list[tuple[Callable[..., None], int]] = []
    kept: list[Any] = []
    for step in steps.steps:
        counted = counting.setdefault(step.kernel.name, _Counting(step.kernel, target))
        context = step.context
        if context is None:
            context = np.array(constants.bind(symbols=counted.addresses, **step.arguments), np.uint64).view(np.int64)
        kept.append(context)
        bound.append((_CALL(counted.addresses[step.kernel.name]), context.ctypes.data))
    row = np.array(addresses_of([*inputs, *outputs]), np.uint64)
    length = len(inputs[0])
    for begin in range(0, length, steps.piece):
        for call, place in bound:
            call(place, row.ctypes.data, begin, min(begin + steps.piece, length))
    total: Counter[str] = Counter()
    for counted in counting.values():
        inside = _by_block(_assembly(counted.kernel, target))
        for block, runs in zip(counted.blocks, counted.runs.tolist(), strict=True):
            for kind, number in inside.get(block, Counter()).items():
                total[kind] += number * runs
    return Counts({kind: total[kind] for kind in KINDS})
