"""The function that Python calls: walks the stripes of a batch and runs the steps of a product on each.

One call serves a whole batch, with the interpreter's lock released. For each stripe the addresses of its inputs and
outputs are put into one row, so that a step names either by its place, and so that padded copies of blocks shorter
than a vector can take their place without any kernel knowing.

What a call is about comes as one record of 64-bit words, `call`; ctypes takes a microsecond to convert as many.
"""

import itertools
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target

__all__ = ["Drive", "call", "context"]

#: Places in the driver's context, in 8-byte words: how many inputs and outputs, the bytes after which to start over
#: with the first step, whether outputs are added to, how many blocks of sums there are, how many steps; then for each
#: step its function and its context.
_INPUTS, _OUTPUTS, _PIECE, _ADD, _SUMS, _STEPS, _HEADER = 0, 1, 2, 3, 4, 5, 6

#: Places in the record of a call.
_INPUTS_AT, _OUTPUTS_AT, _STRIPES_AT, _LENGTH_AT = 1, 3, 5, 6
#: Makes the record of a call: address of the context; for inputs and outputs each the address of a table of addresses
#: and 0, or the address of the first block of the one stripe that there is and the bytes from a block to the next;
#: stripes; bytes of a block.
call: Final[Callable[[int, int, int, int, int, int, int], bytes]] = Struct("=7q").pack


def context(
    shape: tuple[int, int], *, piece: int, add: bool, sums: int, steps: Sequence[tuple[int, int]]
) -> npt.NDArray[np.int64]:
    """Build the driver's context.

    Parameters
    ----------
    shape : (outputs, inputs)
    piece : int
        Bytes of a block after which the steps start over.
    add : bool
        Whether the steps add to the outputs. They are then given whole vectors only, each of them once.
    sums : int
        Blocks of one piece each that steps leave results in for later steps; their places in the row come after those
        of the outputs. Blocks must then be whole vectors.
    steps : sequence of (int, int)
        Address of each kernel, and of its context.
    """
    return np.array([shape[1], shape[0], piece, int(add), sums, len(steps), *itertools.chain(*steps)], np.int64)


class Drive:
    """Writer of the driver."""

    name = "drive"
    symbols: tuple[str, ...] = ()

    def emit(self, target: Target) -> str:
        """Return the driver's LLVM text."""
        f = Function(self.name, [("ptr", "call")])
        width = target.vector_bytes
        plan, stripes, length = f.pointer("%call", 0), f.word("%call", _STRIPES_AT), f.word("%call", _LENGTH_AT)
        given, made = f.word(plan, _INPUTS), f.word(plan, _OUTPUTS)
        piece, steps = f.word(plan, _PIECE), f.word(plan, _STEPS)
        count = f.op(f"add i64 {given}, {made}")
        sums = f.word(plan, _SUMS)
        places = f.op(f"add i64 {f.op(f'add i64 {count}, {made}')}, {sums}")
        row = f.op(f"alloca ptr, i64 {places}, align 64")
        kept = f.op(f"alloca i8, i64 {f.op(f'mul i64 {sums}, {piece}')}, align 64")
        # Blocks shorter than a vector are padded; so is what is left of longer ones where outputs are added to, as a
        # vector that is moved back to end with its block would be added twice.
        short = f.op(f"icmp ult i64 {length}, {width}")
        adding = f.op(f"icmp ne i64 {f.word(plan, _ADD)}, 0")
        apart = f.op(f"or i1 {short}, {adding}")
        whole = f.op(f"select i1 {apart}, i64 {f.op(f'and i64 {length}, {-width}')}, i64 {length}")
        rest = f.op(f"sub i64 {length}, {whole}")
        padded = f.op(f"icmp ne i64 {rest}, 0")
        room = f.op(f"select i1 {padded}, i64 {f.op(f'mul i64 {count}, {width}')}, i64 0")
        scratch = f.op(f"alloca i8, i64 {room}, align 64")

        def run(begin: str, end: str) -> None:
            with f.loop("0", steps) as step:
                place = f.op(f"add i64 {f.op(f'shl i64 {step.index}, 1')}, {_HEADER}")
                kernel = f.pointer(plan, place)
                context = f.pointer(plan, f.op(f"add i64 {place}, 1"))
                f.emit(f"call void {kernel}(ptr {context}, ptr {row}, i64 {begin}, i64 {end})")

        with f.loop("0", stripes) as stripe:
            _place(f, _INPUTS_AT, stripe.index, row, "0", given)
            _place(f, _OUTPUTS_AT, stripe.index, row, given, made)
            with f.when(f.op(f"icmp ne i64 {whole}, 0")), f.loop("0", whole, piece) as part:
                self._sums(f, row, kept, count, sums, piece, part.index)
                stop = f.op(f"add i64 {part.index}, {piece}")
                over = f.op(f"icmp ult i64 {whole}, {stop}")
                run(part.index, f.op(f"select i1 {over}, i64 {whole}, i64 {stop}"))
            with f.when(padded):
                with f.loop("0", made) as output:
                    _move(f, row, f.op(f"add i64 {output.index}, {given}"), f.op(f"add i64 {output.index}, {count}"))
                self._pad(f, target, row, scratch, count, whole, rest)
                run("0", str(width))
                with f.loop("0", made) as output:
                    copy = f.pointer(row, f.op(f"add i64 {output.index}, {given}"))
                    block = f.pointer(row, f.op(f"add i64 {output.index}, {count}"))
                    _copy_bytes(f, copy, f.address(block, whole), rest)
        return f.text()

    def _sums(self, f: Function, row: str, kept: str, first: str, sums: str, piece: str, begin: str) -> None:
        """Lay the blocks of sums where a step at `begin` finds them."""
        base = f.address(kept, f.op(f"sub i64 0, {begin}"))
        with f.when(f.op(f"icmp ne i64 {sums}, 0")), f.loop("0", sums) as block:
            place = f.op(f"getelementptr ptr, ptr {row}, i64 {f.op(f'add i64 {block.index}, {first}')}")
            f.store("ptr", f.address(base, f.op(f"mul i64 {block.index}, {piece}")), place, 8)

    def _pad(self, f: Function, target: Target, row: str, scratch: str, count: str, begin: str, length: str) -> None:
        """Put a zero-padded copy of the bytes of each block from `begin` on, one vector long, in its place."""
        width = target.vector_bytes
        with f.loop("0", count) as block:
            copy = f.address(scratch, f.op(f"mul i64 {block.index}, {width}"))
            f.store(target.vector, "zeroinitializer", copy, 16)
            place = f.op(f"getelementptr ptr, ptr {row}, i64 {block.index}")
            _copy_bytes(f, f.address(f.load("ptr", place, 8), begin), copy, length)
            f.store("ptr", copy, place, 8)


def _place(f: Function, at: int, stripe: str, row: str, first: str, count: str) -> None:
    """row[first + i] = address of block i < count of a stripe, by the two words of the call from `at` on."""
    base, step = f.pointer("%call", at), f.word("%call", at + 1)
    apart = f.op(f"icmp ne i64 {step}, 0")
    with f.when(apart), f.loop("0", count) as block:
        place = f.op(f"getelementptr ptr, ptr {row}, i64 {f.op(f'add i64 {block.index}, {first}')}")
        f.store("ptr", f.address(base, f.op(f"mul i64 {block.index}, {step}")), place, 8)
    with f.when(f.op(f"xor i1 {apart}, true")):
        table = f.address(base, f.op(f"mul i64 {f.op(f'mul i64 {stripe}, {count}')}, 8"))
        with f.loop("0", count) as block:
            place = f.op(f"getelementptr ptr, ptr {row}, i64 {f.op(f'add i64 {block.index}, {first}')}")
            f.store("ptr", f.pointer(table, block.index), place, 8)


def _move(f: Function, row: str, source: str, target: str) -> None:
    """row[target] = row[source]."""
    f.store("ptr", f.pointer(row, source), f.op(f"getelementptr ptr, ptr {row}, i64 {target}"), 8)


def _copy_bytes(f: Function, source: str, target: str, length: str) -> None:
    """Copy `length` > 0 bytes one by one."""
    with f.loop("0", length) as byte:
        value = f.load("i8", f.address(source, byte.index))
        f.store("i8", value, f.address(target, byte.index))
