"""Vectors of bytes for numba functions: load, store, XOR, multiplication by x.

A vector may be wider than any register; LLVM cuts it into what the CPU has. Addresses are integers and need no
alignment. A vector lives in local variables only: it never crosses the boundary of a compiled function.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

__all__ = ["VectorFunctions", "doubling", "vector_functions"]


class VectorType(types.Type):
    """A vector of `size` bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(f"GfcodeVector{size}")


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """How LLVM holds a `VectorType`."""

    def __init__(self, manager: Any, vector: VectorType) -> None:
        super().__init__(manager, vector, _lanes(vector.size, 8))


class VectorFunctions(NamedTuple):
    """Functions on vectors of one size, for compiled code to call.

    Attributes
    ----------
    zero : () -> vector
    load : (address) -> vector
    store : (address, vector) -> None
    xor : (vector, vector) -> vector
    """

    zero: Any
    load: Any
    store: Any
    xor: Any


@lru_cache
def vector_functions(size: int) -> VectorFunctions:
    """Make the functions on vectors of `size` bytes."""
    vector, layout = VectorType(size), _lanes(size, 8)

    @intrinsic
    def zero(_typing: Any) -> Any:
        def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
            return ir.Constant(layout, None)

        return vector(), generate

    @intrinsic
    def load(_typing: Any, _address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.load(builder.inttoptr(arguments[0], layout.as_pointer()), align=1)

        return vector(types.uint64), generate

    @intrinsic
    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            builder.store(arguments[1], builder.inttoptr(arguments[0], layout.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.uint64, vector), generate

    @intrinsic
    def xor(_typing: Any, _first: Any, _second: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.xor(*arguments)

        return vector(vector, vector), generate

    return VectorFunctions(zero, load, store, xor)


@lru_cache
def doubling(size: int, w: int) -> Any:
    """Make the function (vector, polynomial) -> vector that multiplies each symbol of w bits by the element x.

    Symbols are as in the `words` layout, on a little-endian machine: w = 4, 8, 16 or 32. The polynomial is an unsigned
    64-bit integer without its x^w bit.
    """
    vector = VectorType(size)
    lane_bits = max(w, 8)
    lane, layout = ir.IntType(lane_bits), _lanes(size, lane_bits)
    count = size * 8 // lane_bits

    def splat(value: int) -> Any:
        return ir.Constant(layout, [ir.Constant(lane, value)] * count)

    def spread(builder: Any, value: Any) -> Any:
        undefined = ir.Constant(layout, ir.Undefined)
        single = builder.insert_element(undefined, builder.trunc(value, lane), ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(ir.IntType(32), count), None))

    def double_nibbles(builder: Any, symbols: Any, polynomial: Any) -> Any:
        shifted = builder.shl(builder.and_(symbols, splat(0x77)), splat(1))
        carries = builder.and_(builder.lshr(symbols, splat(3)), splat(0x11))
        masks = builder.sub(builder.shl(carries, splat(4)), carries)  # each carry 1 becomes fifteen, in its own nibble
        both = builder.or_(polynomial, builder.shl(polynomial, splat(4)))
        return builder.xor(shifted, builder.and_(masks, both))

    def double_lanes(builder: Any, symbols: Any, polynomial: Any) -> Any:
        masks = builder.ashr(symbols, splat(w - 1))  # all ones where the top bit leaves the symbol
        return builder.xor(builder.shl(symbols, splat(1)), builder.and_(masks, polynomial))

    @intrinsic
    def double(_typing: Any, _value: Any, _polynomial: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            symbols = builder.bitcast(arguments[0], layout)
            polynomial = spread(builder, arguments[1])
            doubled = (double_nibbles if w == 4 else double_lanes)(builder, symbols, polynomial)
            return builder.bitcast(doubled, arguments[0].type)

        return vector(vector, types.uint64), generate

    return double


def _lanes(size: int, bits: int) -> Any:
    return ir.VectorType(ir.IntType(bits), size * 8 // bits)
