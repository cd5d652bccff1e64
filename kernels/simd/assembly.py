"""A small writer of LLVM text: one function, structured loops, no types to infer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

__all__ = ["STREAMED", "Function", "Loop"]

#: After streaming stores on x86-64, which come in no order: a reader in another thread may not overtake them. It holds
#: up no loads, as a full fence does, so that what comes next is read while the last lines are still on their way.
STREAMED: Final = "call void @llvm.x86.sse.sfence()"


@dataclass
class Loop:
    """A loop under construction: its counter and the values it carries from turn to turn.

    `values` are the carried values at the start of a turn inside the loop, and those of the last turn after it.
    """

    index: str
    values: list[str]
    outgoing: list[str] = field(default_factory=list)

    def carry(self, values: Sequence[str]) -> None:
        """Set what the next turn starts with."""
        self.outgoing = list(values)


class Function:
    """Writes the body of one function.

    Parameters
    ----------
    name : str
    parameters : sequence of (type, name)
        Names without the percent sign.
    attributes, convention : str
        LLVM attributes after the parameter list, calling convention before the return type.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        *,
        attributes: str = "nounwind",
        convention: str = "",
    ) -> None:
        arguments = ", ".join(f"{kind} %{name}" for kind, name in parameters)
        self.name = name
        self._lines = [f"define {convention} void @{name}({arguments}) {attributes} {{", "entry:"]
        self._label = "entry"
        self._count = 0

    def emit(self, line: str) -> None:
        """Append one instruction without a result."""
        self._lines.append("  " + line)

    def op(self, text: str) -> str:
        """Append one instruction and return the name of its result."""
        self._count += 1
        self._lines.append(f"  %t{self._count} = {text}")
        return f"%t{self._count}"

    def start(self, label: str) -> None:
        """Start a basic block."""
        self._lines.append(f"{label}:")
        self._label = label

    def fresh(self, stem: str) -> str:
        """Return a label that is not yet taken."""
        self._count += 1
        return f"{stem}{self._count}"

    def address(self, base: str, offset: str | int) -> str:
        """Return `base` + `offset` bytes."""
        return base if offset == 0 else self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, kind: str, pointer: str, align: int = 1) -> str:
        """Load a value."""
        return self.op(f"load {kind}, ptr {pointer}, align {align}")

    def word(self, base: str, index: str | int) -> str:
        """Load the i64 at place `index` of an array."""
        return self.load("i64", self.op(f"getelementptr i64, ptr {base}, i64 {index}"), 8)

    def pointer(self, base: str, index: str | int) -> str:
        """Load the pointer at place `index` of an array."""
        return self.load("ptr", self.op(f"getelementptr ptr, ptr {base}, i64 {index}"), 8)

    def store(self, kind: str, value: str, pointer: str, align: int = 1, *, streaming: bool = False) -> None:
        """Store a value; past the caches if `streaming`."""
        self.emit(f"store {kind} {value}, ptr {pointer}, align {align}" + (", !nontemporal !0" if streaming else ""))

    def prefetch(self, pointer: str, *, near: bool = True, write: bool = False) -> None:
        """Ask for a line to be read, or to be written, into the nearest cache, or the one behind it."""
        self.emit(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(write)}, i32 {3 if near else 2}, i32 1)")

    def barrier(self) -> None:
        """Keep the compiler from moving memory accesses across this point."""
        self.emit('call void asm sideeffect "", "~{memory}"()')

    @contextmanager
    def loop(
        self, begin: str | int, end: str, step: str | int = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[Loop]:
        """Repeat for index = begin, begin + step, ... while index < end (unsigned); at least once."""
        head, done = self.fresh("loop"), self.fresh("done")
        before = self._label
        self.emit(f"br label %{head}")
        self.start(head)
        where = len(self._lines)
        self._count += 1
        turn = Loop(f"%i{self._count}", [f"%c{self._count}_{place}" for place in range(len(carried))])
        yield turn
        following = self.op(f"add i64 {turn.index}, {step}")
        more = self.op(f"icmp ult i64 {following}, {end}")
        after = self._label
        self.emit(f"br i1 {more}, label %{head}, label %{done}")
        phis = [f"  {turn.index} = phi i64 [{begin}, %{before}], [{following}, %{after}]"]
        phis += [
            f"  {value} = phi {kind} [{first}, %{before}], [{last}, %{after}]"
            for value, (kind, first), last in zip(turn.values, carried, turn.outgoing, strict=True)
        ]
        self._lines[where:where] = phis
        turn.values = turn.outgoing
        self.start(done)

    @contextmanager
    def when(self, condition: str, carried: Sequence[tuple[str, str]] = ()) -> Iterator[Loop]:
        """Run the body if `condition` (an i1) holds; `values` afterwards are those carried out, or the given ones."""
        body, done = self.fresh("then"), self.fresh("fi")
        before = self._label
        self.emit(f"br i1 {condition}, label %{body}, label %{done}")
        self.start(body)
        turn = Loop("", [first for _, first in carried])
        yield turn
        after = self._label
        self.emit(f"br label %{done}")
        self.start(done)
        turn.values = [
            self.op(f"phi {kind} [{first}, %{before}], [{last}, %{after}]")
            for (kind, first), last in zip(carried, turn.outgoing, strict=True)
        ]

    def dispatch(self, number: str, lines: Sequence[str]) -> None:
        """Run the instruction of this number."""
        done, cases = self.fresh("done"), [self.fresh("case") for _ in lines]
        table = " ".join(f"i64 {place}, label %{case}" for place, case in enumerate(cases))
        self.emit(f"switch i64 {number}, label %{done} [{table}]")
        for case, line in zip(cases, lines, strict=True):
            self.start(case)
            self.emit(line)
            self.emit(f"br label %{done}")
        self.start(done)

    def text(self) -> str:
        """Return the finished function."""
        return "\n".join([*self._lines, "  ret void", "}"])
