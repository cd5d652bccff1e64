"""What the kernels of the `simd` engine do for a product: instructions by kind, as often as they run.

Machine code says which instructions each block of a kernel has; how often a block runs depends on blocks, matrix and
length. So a copy of the kernel that counts the runs of each block does the product once, and both are put together by
the blocks' names, which the compiler keeps.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Blocks, Product
from gfcode.kernels.simd.compiler import Compiler, Kernel, object_code
from gfcode.kernels.simd.declarations import declarations
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.target import Target

__all__ = ["KINDS", "Counts", "count", "jit", "kinds"]

Bytes = npt.NDArray[np.uint8]

#: Kinds of instructions. `loads` takes every instruction that occupies a load port, prefetches and scalar loads too.
KINDS = ("xor", "ternary", "affine", "shuffle", "other", "loads", "stores", "instructions")

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
    kernels : frozenset of str
        Names of the kernels that were there.
    """

    by_kind: dict[str, int]
    kernels: frozenset[str] = frozenset()

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


class _CountingCompiler(Compiler):
    """Makes kernels that count; none of them is kept, or tested."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.made: dict[str, _Counting] = {}

    def symbols(self, kernel: Kernel) -> dict[str, int]:
        """Addresses of the functions of a kernel that counts."""
        if kernel.name not in self.made:
            self.made[kernel.name] = _Counting(kernel, self.target)
        return self.made[kernel.name].addresses

    def untested(self) -> list[Kernel]:
        """Nothing is to be tested: what counts does what is tested elsewhere."""
        return []


class _CountingEngine(SimdEngine):
    """The engine with kernels that count."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.counting = self._compiler = _CountingCompiler(target)


def count(product: Product, target: Target, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> Counts:
    """Run a product by kernels that count, and return what all of them did; the outputs are right afterwards.

    Parameters
    ----------
    product : Product
    target : Target
        Must be able to run here.
    inputs, outputs : sequences of arrays of uint8
        One stripe.
    """
    engine = _CountingEngine(target)
    operator = engine.prepare(product)
    for counted in engine.counting.made.values():
        counted.runs[...] = 0
    operator(Blocks.of_buffers(inputs), Blocks.of_buffers(outputs, writable=True))
    total: Counter[str] = Counter()
    for counted in engine.counting.made.values():
        inside = _by_block(_assembly(counted.kernel, target))
        for block, runs in zip(counted.blocks, counted.runs.tolist(), strict=True):
            for kind, number in inside.get(block, Counter()).items():
                total[kind] += number * runs
    return Counts({kind: total[kind] for kind in KINDS}, frozenset(engine.counting.made))
