"""The kernel for products that transforms make in O(n log n), in the `words` layout: wide codes of the family `fft`.

A piece of every block goes through a *program* in scratch that stays in a near cache: rows of scratch, one for each
point of a transform, and a list of records, each a run of butterflies (`gfcode.kernels.simd.fft_layers`) or scalings.
`gfcode.kernels.simd.fft_program` writes programs for encoding and decoding. Size, matrix and loss are data.
"""

from dataclasses import dataclass

from gfcode.kernels.simd.assembly import STREAMED, Function
from gfcode.kernels.simd.fft_layers import LAYERS, Layer, LayerWriter
from gfcode.kernels.simd.fft_scalings import SCALINGS, ScalingWriter
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.target import Target

__all__ = ["HEADER", "OPERATIONS", "RECORD", "FftKernel"]

#: Places in a context, in 8-byte words: inputs and outputs of a stripe, bytes of a piece, where in scratch the row for
#: what nobody wants is, where the program starts, how many records it has, where places and factors start (in bytes).
_INPUTS, _OUTPUTS, _PIECE, _TRASH, _PROGRAM, _RECORDS, _PLACES, _FACTORS, HEADER = range(9)
#: 8-byte words of a record.
RECORD = 8
#: What a record can ask for; its first word is the number of one of these.
OPERATIONS: tuple[Layer | str, ...] = (*LAYERS, *SCALINGS)


@dataclass(frozen=True, slots=True)
class FftKernel:
    """The kernel: see the module. It is called with a context, scratch, the tables of inputs and outputs, and counts.

    Blocks are at least one vector long.

    Parameters
    ----------
    w : int
        Bits of a symbol: 4, 8 or 16. Kernels for 4 and 8 are the same.
    streaming : bool
        Whether outputs bypass the caches; they must then be 64-byte aligned.
    """

    w: int
    streaming: bool = False

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        return f"fft{16 if self.w == 16 else 8}{'n' if self.streaming else ''}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        together = multiplication(self.w, target).group
        parts = []
        for vectors in sorted({1, together}):
            prefix = f"{self.name}_v{vectors}_"
            for writer in (LayerWriter, ScalingWriter):
                parts += writer(prefix, self.w, target, vectors, streaming=self.streaming and vectors > 1).functions()
            parts.append(self._piece(vectors))
        return "\n".join([*parts, self._entry(target, together)])

    def _piece(self, vectors: int) -> str:
        """Write the function that takes a piece of every block through the program."""
        f = Function(
            f"{self.name}_piece{vectors}",
            [("ptr", "context"), ("ptr", "frame")],
            convention="internal",
            attributes="nounwind noinline",
        )
        program = f.address("%context", f.word("%context", _PROGRAM))
        with f.loop("0", f.word("%context", _RECORDS)) as place:
            record = f.address(program, f.op(f"mul i64 {place.index}, {8 * RECORD}"))
            names = [operation if isinstance(operation, str) else operation.name for operation in OPERATIONS]
            f.dispatch(
                f.word(record, 0),
                [f"call void @{self.name}_v{vectors}_{name}(ptr %frame, ptr {record})" for name in names],
            )
        return f.text()

    def _entry(self, target: Target, together: int) -> str:
        width = target.vector_bytes
        step = together * width
        f = Function(
            self.name,
            [(kind, name) for kind, names in _ENTRY for name in names],
        )
        given, made, piece = (f.word("%context", place) for place in (_INPUTS, _OUTPUTS, _PIECE))
        frame = f.op("alloca [8 x i64], align 64")

        def put(place: int, kind: str, value: str) -> None:
            f.store(kind, value, f.address(frame, 8 * place), 8)

        put(0, "ptr", "%scratch")
        put(5, "i64", f.word("%context", _TRASH))
        put(6, "ptr", f.address("%context", f.word("%context", _PLACES)))
        put(7, "ptr", f.address("%context", f.word("%context", _FACTORS)))

        def call(position: str, length: str, vectors: int) -> None:
            put(3, "i64", position)
            put(4, "i64", length)
            f.emit(f"call void @{self.name}_piece{vectors}(ptr %context, ptr {frame})")

        # Whole pieces, what is left in whole steps and in whole vectors, and a vector that ends where the block ends.
        rest = f.op(f"urem i64 %length, {piece}")
        middle = f.op(f"sub i64 %length, {rest}")
        steps = f.op(f"and i64 {rest}, {-step}")
        vectors = f.op(f"and i64 {f.op(f'sub i64 {rest}, {steps}')}, {-width}")
        done = f.op(f"add i64 {middle}, {steps}")
        with f.loop("0", "%stripes") as stripe:
            put(1, "ptr", f.address("%inputs", f.op(f"mul i64 {f.op(f'mul i64 {stripe.index}, {given}')}, 8")))
            put(2, "ptr", f.address("%outputs", f.op(f"mul i64 {f.op(f'mul i64 {stripe.index}, {made}')}, 8")))
            with f.when(f.op(f"icmp ne i64 {middle}, 0")), f.loop("0", middle, piece) as position:
                call(position.index, piece, together)
            with f.when(f.op(f"icmp ne i64 {steps}, 0")):
                call(middle, steps, together)
            with f.when(f.op(f"icmp ne i64 {vectors}, 0")):
                call(done, vectors, 1)
            with f.when(f.op(f"icmp ne i64 {f.op(f'add i64 {done}, {vectors}')}, %length")):
                call(f.op(f"sub i64 %length, {width}"), str(width), 1)
        if self.streaming and target.x86:
            f.emit(STREAMED)
        return f.text()


_ENTRY = (("ptr", ("context", "scratch", "inputs", "outputs")), ("i64", ("stripes", "length")))
