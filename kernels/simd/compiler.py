"""From LLVM text to callable machine code, kept on disk between processes.

LLVM's pass pipeline stays off: its reassociation pass rebuilds XOR chains, which undoes the order of a kernel and
doubles the spills. Instruction selection, scheduling and register allocation are all that is wanted of it.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import llvmlite
import llvmlite.binding as llvm

from gfcode.engine.diskcache import DiskCache
from gfcode.engine.locks import COMPILING
from gfcode.kernels.simd.declarations import declarations
from gfcode.kernels.simd.target import Target

__all__ = ["Compiler", "Kernel", "assembly", "object_code"]

_initialized: set[str] = set()


class Kernel(Protocol):
    """What can be compiled."""

    @property
    def name(self) -> str:
        """Symbol of the kernel; it names the kernel among all of its target."""
        ...

    @property
    def symbols(self) -> tuple[str, ...]:
        """Further functions whose addresses are needed."""
        ...

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        ...


def _initialize(*, every: bool = False) -> None:
    """Start LLVM's code generators: the native one, or every one."""
    if every and "every" not in _initialized:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _initialized.add("every")
    if "native" not in _initialized:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        _initialized.add("native")


def _machine(target: Target) -> Any:
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, jit=True
    )


def _module(kernel: Kernel, target: Target) -> Any:
    text = kernel.emit(target)
    if target.attributes:
        text = re.sub(r"^(define .*) \{$", rf"\1 {target.attributes} {{", text, flags=re.MULTILINE)
    module = llvm.parse_assembly(text + "\n" + declarations(target))
    module.triple = target.triple
    module.verify()
    return module


def object_code(kernel: Kernel, target: Target) -> bytes:
    """Compile a kernel to an object file."""
    with COMPILING:
        _initialize()
        return bytes(_machine(target).emit_object(_module(kernel, target)))


def assembly(kernel: Kernel, target: Target) -> str:
    """Compile a kernel, for any target that LLVM knows, to assembly text."""
    with COMPILING:
        _initialize(every=not target.x86)
        return str(_machine(target).emit_assembly(_module(kernel, target)))


@cache
def _source_digest() -> str:
    """Digest of this package: objects made by other sources are not found in the cache."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class Compiler:
    """Compiled kernels of one target, each made (or read from disk) when it is first asked for.

    A fresh kernel is not kept on disk before `trust` says that it has passed its test.

    Safe to use from many threads. Code lives as long as the process.

    Parameters
    ----------
    target : Target
        Must be able to run here.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._disk = DiskCache("simd")
        self._symbols: dict[str, dict[str, int]] = {}
        self._untested: dict[str, tuple[Kernel, bytes]] = {}
        self._engines: list[Any] = []

    def symbols(self, kernel: Kernel) -> dict[str, int]:
        """Addresses of the functions of a kernel, by symbol."""
        known = self._symbols.get(kernel.name)
        if known is not None:
            return known
        with COMPILING:
            if kernel.name not in self._symbols:
                code = self._disk.load(self._key(kernel))
                if code is None:
                    code = object_code(kernel, self.target)
                    self._untested[kernel.name] = kernel, code
                self._load(kernel, code)
            return self._symbols[kernel.name]

    def address(self, kernel: Kernel) -> int:
        """Address of the kernel's entry."""
        return self.symbols(kernel)[kernel.name]

    def untested(self) -> list[Kernel]:
        """Kernels compiled by this process that have not yet been trusted."""
        return [kernel for kernel, _ in list(self._untested.values())]

    def trust(self, kernel: Kernel) -> None:
        """Keep a kernel on disk for other processes: it gives right results."""
        entry = self._untested.pop(kernel.name, None)
        if entry is not None:
            self._disk.store(self._key(kernel), entry[1])

    def _key(self, kernel: Kernel) -> bytes:
        parts = (kernel.name, self.target, _source_digest(), llvmlite.__version__, llvm.llvm_version_info)
        return repr(parts).encode()

    def _load(self, kernel: Kernel, code: bytes) -> None:
        _initialize()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(self.target))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = {symbol: engine.get_function_address(symbol) for symbol in (kernel.name, *kernel.symbols)}
        if missing := [symbol for symbol, address in addresses.items() if not address]:
            raise RuntimeError(f"the compiled kernel {kernel.name} lacks {missing[0]}")
        self._engines.append(engine)
        self._symbols[kernel.name] = addresses
