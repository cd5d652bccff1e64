"""The cases of `bench.bench_codec`: our codec and everyone else's on the same blocks, checked before they are measured.

A batch of small blocks is one call, on both sides: ours over a table of addresses, ISA-L's in a compiled loop. Peers
that take a stripe at a time are called for one. `Calls` says how many bytes of data each call handles.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from bench.harness import Case, place
from bench.isal import ISAS, Isal
from bench.peers import floors
from gfcode.codec import Codec
from gfcode.engine.protocol import Blocks, Engine
from gfcode.engine.registry import get_engine
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.target import Target, host_variants
from gfcode.matrix import searched
from gfcode.params import LayoutName

__all__ = ["LAYOUTS", "OPERATIONS", "Calls", "Subject", "engine_at", "target_at"]

Bytes = npt.NDArray[np.uint8]
Call = Callable[[], object]

LAYOUTS: tuple[LayoutName, ...] = ("packets", "words")
#: Bytes of data that a call handles at least, by repeating stripes.
AT_LEAST = 4 << 20
#: Parities from which the family `fft` is measured too.
WIDE = 8
#: Work, in bytes of data times parities, above which peers that take whole seconds for it are left out.
PATIENCE = 2 << 30

#: Names of `host_variants`, width of the vectors and kind of products, by instruction set.
_TARGETS = {
    "sse": ("sse", 16, "shuffle86"),
    "avx2": ("avx2", 32, "shuffle86"),
    "avx512": ("no-gfni", 64, "shuffle86"),
    "avx2-gfni": ("avx2-gfni", 32, "affine"),
    "avx512-gfni": ("host", 64, "affine"),
}


def target_at(isa: str) -> Target:
    """Return the target that has these instructions and no others of this CPU's.

    Raises
    ------
    LookupError
        If this CPU does not have them.
    """
    assert isa in ISAS
    variants = host_variants()
    name, width, product = ("host", 0, "") if isa == "native" else _TARGETS[isa]
    target = variants.get(name)
    if target is None or (width and (target.vector_bytes, target.product) != (width, product)):
        raise LookupError(f"this CPU ({llvm.get_host_cpu_name()}) has no {isa}")
    return target


def engine_at(name: str, isa: str) -> Engine:
    """Return our engine, held to an instruction set."""
    return get_engine(name) if isa == "native" else SimdEngine(target_at(isa))


@dataclass
class Calls:
    """What is measured against each other.

    Attributes
    ----------
    calls : dict of str to callable
    sizes : dict of str to int
        Bytes of data that each handles.
    left_out : dict of str to str
        Who is not measured, and why.
    """

    calls: dict[str, Call] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, call: Call, size: int) -> None:
        """Add one."""
        self.calls[name], self.sizes[name] = call, size


def repeated(blocks: Blocks, times: int) -> Blocks:
    """Return the same stripe several times over."""
    return Blocks(np.tile(blocks.table, (times, 1)), blocks.length, blocks.owners)


class Subject:
    """Codecs and peers on the blocks of one shape, length and place.

    Parameters
    ----------
    case : Case
        Its operation does not matter.
    engine : Engine
    peers : dict
        As `bench.peers.peers_here` returns them.
    target : Target
        Whose vectors the floors use.
    """

    def __init__(self, case: Case, engine: Engine, peers: dict[str, Any], target: Target) -> None:
        self.case, self.target = case, target
        k, m = case.k, case.m
        self.data, self.parity, self.out, self.theirs = place((k, m, m, m), case.length, case.where)
        self.times = max(1, AT_LEAST // (k * case.length))
        self.codecs: dict[str, Codec] = {name: Codec(k, m, layout=name, engine=engine) for name in LAYOUTS}
        if m >= WIDE:
            self.codecs["words, fft"] = Codec(k, m, matrix="fft", layout="words", engine=engine)
        # A kernel compiled for the matrix or the loss, and for encoding a matrix of few XORs.
        self.compiled = {"packets, prepared": Codec(k, m, engine=engine)}
        if (k, m, 8) in searched.codes():
            self.compiled["packets, searched, prepared"] = Codec(k, m, matrix="searched", engine=engine)
        self.isals: dict[str, Isal] = {name: peer for name, peer in peers.items() if isinstance(peer, Isal)}
        self.others = {name: peer for name, peer in peers.items() if name not in self.isals}

    @property
    def stripe(self) -> int:
        """Bytes of data of a stripe."""
        return self.case.k * self.case.length

    def batch(self) -> tuple[Blocks, Blocks]:
        """Return data and parity, as often as a call handles them."""
        inputs, outputs = Blocks.of_array(self.data), Blocks.of_array(self.parity, writable=True)
        return repeated(inputs, self.times), repeated(outputs, self.times)

    def encode(self) -> Calls:
        """Make all parity from all data."""
        made = Calls()
        inputs, outputs = Blocks.of_array(self.data), Blocks.of_array(self.parity, writable=True)
        many = self.batch()
        for name, codec in self.codecs.items():
            operator = codec.encoder()
            operator(inputs, outputs)
            if name == "words":
                self._isal(made, codec.parity.values, list(self.data), list(self.out), list(self.parity))
            made.add(name, partial(operator, *many), self.times * self.stripe)
        for name, codec in self.compiled.items():
            if codec.prepare():
                made.add(name, partial(codec.encoder(), *many), self.times * self.stripe)
        self._others(made, lambda peer: peer.encode(list(self.data), list(self.theirs)))
        for name, call in floors(list(self.data), list(self.out), self.times, self.target).items():
            made.add(name, call, self.times * self.stripe)
        return made

    def decode(self) -> Calls:
        """Rebuild the first m data blocks from the rest."""
        lost = list(range(min(self.case.m, self.case.k)))
        return self._rebuild(lost, lost)

    def repair(self) -> Calls:
        """Rebuild one data block from the others and parity 0, which is a plain sum in these codes."""
        made = self._rebuild([0], [0])
        self.codecs["words"].encoder()(Blocks.of_array(self.data), Blocks.of_array(self.parity, writable=True))
        for name, isal in self.isals.items():
            xor = isal.xor([*self.data[1:], self.parity[0]], self.out[0], self.times)
            if xor is not None:
                xor()
                assert (self.out[0] == self.data[0]).all(), "xor_gen gives wrong bytes"
                made.add(f"{name} xor_gen", xor, self.times * self.stripe)
        return made

    def repair_general(self) -> Calls:
        """Rebuild one data block while parity 0 is lost too."""
        return self._rebuild([0, self.case.k], [0])

    def update(self) -> Calls:
        """Patch all parity after one data block has changed, as a user calls it."""
        made = Calls()
        old, new = self.data[0], self.data[1]
        for name, codec in self.codecs.items():
            if name == "words":
                self._check_update(codec, old, new)
            made.add(name, partial(codec.update, self.parity, 0, old, new), self.case.length)
        for name, isal in self.isals.items():
            call = isal.update(self.codecs["words"].parity.values, 0, old, new, list(self.out))
            made.add(name, call, self.case.length)
        return made

    def _check_update(self, codec: Codec, old: Bytes, new: Bytes) -> None:
        right = self.parity.copy()
        codec.update(right, 0, old, new)
        for isal in self.isals.values():
            self.out[...] = self.parity
            isal.update(codec.parity.values, 0, old, new, list(self.out))()
            assert (self.out == right).all(), "ISA-L and gfcode disagree"

    def _rebuild(self, lost: list[int], want: list[int]) -> Calls:
        k, m = self.case.k, self.case.m
        shards = [*self.data, *self.parity]
        right = [self.data[index] for index in want]
        made = Calls()
        for name, codec in (self.codecs | self.compiled).items():
            if name in self.compiled and not codec.prepare(lost):
                continue
            codec.encoder()(Blocks.of_array(self.data), Blocks.of_array(self.parity, writable=True))
            plan = codec.plan([index for index in range(k + m) if index not in lost], want)
            sources = [shards[index] for index in plan.sources]
            outputs = list(self.out[: len(want)])
            inputs, targets = Blocks.of_buffers(sources), Blocks.of_buffers(outputs, writable=True)
            plan.operator(inputs, targets)
            _check(outputs, right, name)
            if name == "words":
                self._isal(made, plan.matrix.values, sources, outputs, right)
            many = repeated(inputs, self.times), repeated(targets, self.times)
            made.add(name, partial(plan.operator, *many), self.times * self.stripe)
        if lost == want:
            self._others(made, lambda peer: peer.rebuild(list(self.data), list(self.theirs), lost))
        return made

    def _isal(
        self, made: Calls, matrix: Any, inputs: list[Bytes], outputs: list[Bytes], right: Sequence[Bytes]
    ) -> None:
        for name, isal in self.isals.items():
            isal.product(matrix, inputs, outputs, 1)()
            _check(outputs, right, name)
            made.add(name, isal.product(matrix, inputs, outputs, self.times), self.times * self.stripe)

    def _others(self, made: Calls, make: Callable[[Any], Call]) -> None:
        """Add peers that take a stripe at a time."""
        for name, peer in self.others.items():
            if not peer.takes(self.case.k, self.case.m):
                made.left_out[name] = "has no such code"
            elif self.stripe * self.case.m > PATIENCE:
                made.left_out[name] = "takes seconds"
            else:
                made.add(name, make(peer), self.stripe)


def _check(outputs: Sequence[Bytes], right: Sequence[Bytes], name: str) -> None:
    same = all((block == other).all() for block, other in zip(outputs, right, strict=True))
    assert same, f"{name} gives wrong bytes"
    for block in outputs:
        block[...] = 0


OPERATIONS: dict[str, Callable[[Subject], Calls]] = {
    "encode": Subject.encode,
    "decode": Subject.decode,
    "repair": Subject.repair,
    "repair, parity 0 lost": Subject.repair_general,
    "update": Subject.update,
}
