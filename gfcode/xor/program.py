"""`XorProgram`: a straight-line XOR program, the form in which a product over GF(2) is compiled.

A bit matrix times a column of packets is nothing but XORs of packets. A program lists them one by one, without loops
or branches; every pass of `gfcode.xor` takes a program and returns another with the same outputs.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gfcode.errors import ParameterError
from gfcode.once import cached_property

__all__ = ["ZERO", "XorProgram"]

#: The output that is zero whatever the inputs are.
ZERO = -1


@dataclass(frozen=True)
class XorProgram:
    """An immutable straight-line XOR program in single-assignment form.

    Values are numbered: 0 .. `inputs` − 1 are the inputs (packets), and instruction i defines value `inputs` + i as
    the XOR of two or more distinct values with smaller numbers. A value is never overwritten; which register or block
    it lives in is a question for `gfcode.xor.registers.allocate`.

    Parameters
    ----------
    inputs : int
        Number of inputs.
    instructions : tuple of tuple of int
        Operands of each instruction, in the order in which they are read.
    outputs : tuple of int
        Value of each output: an instruction's, an input (the output is a copy of it), or `ZERO`. Repeats are allowed.

    Raises
    ------
    ParameterError
        If a value is used before its definition, or an instruction has fewer than two operands or one of them twice.
    """

    inputs: int
    instructions: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.inputs < 0:
            raise ParameterError(f"a program cannot have {self.inputs} inputs")
        for value, operands in enumerate(self.instructions, self.inputs):
            if len(operands) < 2 or len(set(operands)) < len(operands):
                raise ParameterError(
                    f"instruction {value - self.inputs} must XOR two or more different values, not {list(operands)}"
                )
            if min(operands) < 0 or max(operands) >= value:
                raise ParameterError(
                    f"instruction {value - self.inputs} may only use values 0 to {value - 1}, not {list(operands)}"
                )
        for index, value in enumerate(self.outputs):
            if not ZERO <= value < self.values:
                raise ParameterError(f"output {index} is value {value}, but values are 0 to {self.values - 1}")

    def __repr__(self) -> str:
        return (
            f"<XorProgram {self.inputs} inputs, {len(self.outputs)} outputs, {len(self.instructions)} instructions, "
            f"{self.xors} XORs>"
        )

    @property
    def values(self) -> int:
        """Number of values: inputs and instructions."""
        return self.inputs + len(self.instructions)

    # Metrics

    @cached_property
    def xors(self) -> int:
        """Two-operand XORs: the sum over instructions of operands − 1."""
        return sum(map(len, self.instructions)) - len(self.instructions)

    @cached_property
    def memory_accesses(self) -> int:
        """Packets loaded and stored if every operand is loaded and every result stored (Uezato, SC'21: #MEM).

        An instruction of n operands counts n + 1. Copies of inputs and zero outputs are not counted.
        """
        return sum(map(len, self.instructions)) + len(self.instructions)

    @cached_property
    def depth(self) -> int:
        """Instructions on the longest path from an input to an output; 0 for a program of copies."""
        depths = self.depths
        return max((depths[value] for value in self.outputs if value >= 0), default=0)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Length of the longest path of instructions that ends in each value; 0 for inputs."""
        depths = [0] * self.inputs
        for operands in self.instructions:
            depths.append(1 + max(depths[operand] for operand in operands))
        return tuple(depths)

    @cached_property
    def last_uses(self) -> tuple[int, ...]:
        """Index of the last instruction that reads each value; −1 for values that none reads."""
        last = [-1] * self.values
        for index, operands in enumerate(self.instructions):
            for operand in operands:
                last[operand] = index
        return tuple(last)

    @cached_property
    def live_profile(self) -> tuple[int, ...]:
        """Registers in use at each instruction, counting computed values only.

        Inputs are read from memory where they are used, and an output is stored as soon as it is computed; a computed
        value holds a register from its instruction to the last one that reads it, where the result may take over the
        register of an operand.
        """
        profile: list[int] = []
        ends = [0] * (len(self.instructions) + 1)
        live = 0
        for index in range(len(self.instructions)):
            live -= ends[index]
            last = self.last_uses[self.inputs + index]
            if last >= 0:
                live += 1
                ends[last] += 1
            profile.append(live + (last < 0))
        return tuple(profile)

    @cached_property
    def live_registers(self) -> int:
        """Peak of `live_profile`."""
        return max(self.live_profile, default=0)

    # Exchange

    def to_dict(self) -> dict[str, Any]:
        """Return the program as what JSON can hold; `from_dict` reads it."""
        return {
            "inputs": self.inputs,
            "instructions": [list(operands) for operands in self.instructions],
            "outputs": list(self.outputs),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "XorProgram":
        """Read what `to_dict` wrote.

        Raises
        ------
        ParameterError
            If it is no program.
        """
        if set(data) != {"inputs", "instructions", "outputs"}:
            raise ParameterError("an XOR program has the keys inputs, instructions and outputs, and no others")
        if not isinstance(data["instructions"], list):
            raise ParameterError("the instructions of an XOR program are a list of lists of integers")
        return cls(
            next(iter(_integers([data["inputs"]]))),
            tuple(tuple(_integers(operands)) for operands in data["instructions"]),
            tuple(_integers(data["outputs"])),
        )

    def to_json(self) -> str:
        """Return the program as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "XorProgram":
        """Read what `to_json` wrote.

        Raises
        ------
        ParameterError
            If it is no program.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ParameterError(f"not an XOR program: {error}") from None
        if not isinstance(data, dict):
            raise ParameterError(f"an XOR program is a JSON object, not {type(data).__name__}")
        return cls.from_dict(data)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `to_json`, in hex: the same in every process, so that compiled kernels can be kept under it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _integers(values: object) -> Iterator[int]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise ParameterError(f"an XOR program holds lists of integers, not {type(values).__name__}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ParameterError(f"an XOR program holds integers, not {value!r}")
        yield value
