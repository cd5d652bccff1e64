"""The working form of the passes: a network of XORs of many operands, with pair counts and an undo log.

A node is the XOR of a set of inputs and other nodes. Its cost is one less than its operands, so a node that only one
other node uses costs the same as its operands in that node's place: which of them are bracketed together is left open.
What can still be saved is seen from pairs of operands that two nodes or more have in common; their counts are kept up
to date at every change, because looking for them again would be most of the work.
"""

from random import Random
from typing import Final

from gfcode.errors import ParameterError
from gfcode.xor.interpret import value_masks
from gfcode.xor.program import ZERO, XorProgram

__all__ = ["Network"]

# A pair of ids is one integer: ids stay below 2^15 where they can, so that pairs fit a digit of Python's integers.
_SHIFT: Final = 15
_LOW: Final = (1 << _SHIFT) - 1
_MADE: Final = -1
_DROPPED: Final = -2


class Network:
    """A program under change.

    Parameters
    ----------
    program : XorProgram
        Values that are equal to an earlier value, an input or zero are replaced by that.

    Attributes
    ----------
    operands : dict of int to set of int
        Operands of each node. Ids below `inputs` are inputs.
    users : dict of int to set of int
        Nodes that use each input or node.
    values : dict of int to int
        The inputs whose XOR each id is, as a bit mask. A node never changes its value.
    outputs : list of int
        Id of each output, or `ZERO`.
    kept : set of int
        Nodes that are outputs, and so must stay.
    cost : int
        XORs.
    hot : dict of int to int
        Counts of the pairs that two nodes or more have in common.
    """

    def __init__(self, program: XorProgram) -> None:
        if program.values > _LOW:
            raise ParameterError(
                f"a program of {program.values} values is too long to be compressed: {_LOW} are allowed"
            )
        self.inputs = program.inputs
        self.operands: dict[int, set[int]] = {}
        self.users: dict[int, set[int]] = {index: set() for index in range(program.inputs)}
        self.values: dict[int, int] = {index: 1 << index for index in range(program.inputs)}
        self.known: dict[int, int] = {1 << index: index for index in range(program.inputs)}
        self.counts: dict[int, int] = {}
        self.hot: dict[int, int] = {}
        self.dirty: set[int] = set()
        self.cost = 0
        self.log: list[tuple[int, int]] = []
        self.lost: list[int] = []  # values of the nodes dropped since `commit`
        self.free = list(range(_LOW, program.inputs - 1, -1))
        ids = dict(enumerate(range(program.inputs)))
        values = value_masks(program)
        for value, operands in enumerate(program.instructions, program.inputs):
            mask = values[value]
            if mask in self.known or mask == 0:
                ids[value] = self.known.get(mask, ZERO)
                continue
            ids[value] = node = self.make(mask)
            for operand in operands:
                if ids[operand] != ZERO:
                    self.toggle(node, ids[operand])
        self.outputs = [ZERO if value == ZERO else ids[value] for value in program.outputs]
        self.kept = {node for node in self.outputs if node >= self.inputs}
        self.log.clear()  # `undo` goes back to here; `dirty` still says that all is to be tidied up

    # Changes, each of which `undo` can take back

    def make(self, value: int) -> int:
        """Add a node without operands that will have this value."""
        node = self.free.pop()
        self.operands[node] = set()
        self.users[node] = set()
        self.values[node] = value
        self.known.setdefault(value, node)
        self.cost -= 1
        self.log.append((node, _MADE))
        return node

    def drop(self, node: int) -> None:
        """Remove a node that nothing uses."""
        for operand in list(self.operands[node]):
            self.toggle(node, operand)
        self.lost.append(self._forget(node))
        self.log.append((node, _DROPPED))

    def _forget(self, node: int) -> int:
        del self.operands[node], self.users[node]
        value = self.values.pop(node)
        if self.known.get(value) == node:
            del self.known[value]
        self.cost += 1
        self.free.append(node)
        return value

    def toggle(self, node: int, operand: int) -> None:
        """Add an operand to a node, or remove it if it is there: XOR it in."""
        row, counts, hot = self.operands[node], self.counts, self.hot
        self.log.append((node, operand))
        self.dirty.add(node)
        if operand in row:
            row.discard(operand)
            self.users[operand].discard(node)
            self.dirty.add(operand)
            self.cost -= 1
            for other in row:
                pair = operand << _SHIFT | other if operand < other else other << _SHIFT | operand
                count = counts[pair] - 1
                if count > 1:
                    counts[pair] = hot[pair] = count
                elif count:
                    counts[pair] = 1
                    del hot[pair]
                else:
                    del counts[pair]
        else:
            for other in row:
                pair = operand << _SHIFT | other if operand < other else other << _SHIFT | operand
                count = counts.get(pair, 0) + 1
                counts[pair] = count
                if count > 1:
                    hot[pair] = count
            row.add(operand)
            self.users[operand].add(node)
            self.cost += 1

    def undo(self) -> None:
        """Take back everything since `commit`."""
        log, self.log = self.log, []
        for node, operand in reversed(log):
            if operand == _MADE:
                self._forget(node)
            elif operand == _DROPPED:
                self.free.pop()
                self.operands[node] = set()
                self.users[node] = set()
                self.values[node] = self.lost.pop()
                self.known.setdefault(self.values[node], node)
                self.cost -= 1
            else:
                self.toggle(node, operand)
        self.commit()

    def commit(self) -> None:
        """Make all changes so far final."""
        self.log.clear()
        self.lost.clear()
        self.dirty.clear()

    # Rewriting

    def temporaries(self) -> list[int]:
        """Nodes that are no outputs."""
        return [node for node in self.operands if node not in self.kept]

    def inline(self, node: int) -> None:
        """Put a node's operands in its place wherever it is used, equal ones cancelling, and drop it."""
        row = list(self.operands[node])
        for user in list(self.users[node]):
            self.toggle(user, node)
            for operand in row:
                self.toggle(user, operand)
        self.drop(node)

    def assign(self, node: int, operands: set[int]) -> None:
        """Give a node other operands with the same sum."""
        for operand in self.operands[node] ^ operands:
            self.toggle(node, operand)

    def descendants(self, node: int) -> set[int]:
        """Return the node itself and all nodes whose sum takes in the node."""
        seen, front = {node}, [node]
        while front:
            fresh = self.users[front.pop()] - seen
            seen |= fresh
            front += fresh
        return seen

    def extract_most_common(self, random: Random) -> int | None:
        """Extract the pair that most nodes have in common; return its node, or None if no two have one in common.

        Ties are broken by chance; for equal operands and draws the outcome is equal, whatever the order of changes.
        """
        if not self.hot:
            return None
        most = max(self.hot.values())
        ties = [pair for pair, count in self.hot.items() if count == most]
        ties.sort()
        return self.extract(ties[0] if len(ties) == 1 else random.choice(ties))

    def extract(self, pair: int) -> int:
        """Compute a pair of operands once and use it wherever both occur; return its node."""
        a, b = pair >> _SHIFT, pair & _LOW
        users = sorted(self.users[a] & self.users[b])
        node = self._pair_node(a, b, users)
        for user in users:
            if user != node:
                self.toggle(user, a)
                self.toggle(user, b)
                if node != ZERO:
                    self.toggle(user, node)
        return node

    def _pair_node(self, a: int, b: int, users: list[int]) -> int:
        """Find or make the node a + b that `users`, which have both operands, are to use."""
        value = self.values[a] ^ self.values[b]
        if not value:
            return ZERO
        node = self.known.get(value)
        if node is None:
            node = next((user for user in users if len(self.operands[user]) == 2), None)
        if node in users:
            self.assign(node, {a, b})
        elif node is None or any(node in self.descendants(user) for user in users):
            node = self.make(value)
            self.assign(node, {a, b})
        return node

    def settle(self, random: Random) -> None:
        """Eliminate the most common pairs until none is left (Paar), and tidy up."""
        while True:
            while self.hot:
                self.extract_most_common(random)
            if not self.dirty:
                return
            self.tidy()

    def tidy(self) -> None:
        """Fold changed nodes that save nothing into their users."""
        batch = sorted(self.dirty)
        self.dirty.clear()
        for node in batch:
            if node not in self.operands:
                continue
            if node not in self.kept:
                if len(self.users[node]) < 2 or len(self.operands[node]) < 2:
                    self.inline(node)
            elif len(self.operands[node]) == 1:
                self._take_over(node)

    def _take_over(self, node: int) -> None:
        """Let an output that is a copy of a temporary take its place."""
        (source,) = self.operands[node]
        if source < self.inputs or source in self.kept:
            return
        for user in list(self.users[source]):
            if user != node:
                self.toggle(user, source)
                self.toggle(user, node)
        self.toggle(node, source)
        row = list(self.operands[source])
        self.drop(source)
        for operand in row:
            self.toggle(node, operand)

    # Result

    def snapshot(self) -> dict[int, tuple[int, ...]]:
        """Return the operands of all nodes, for `rebuild`."""
        return {node: tuple(row) for node, row in self.operands.items()}

    def program(self, operands: dict[int, tuple[int, ...]] | None = None) -> XorProgram:
        """Return the network, or a `snapshot` of it, as a program with one instruction for each node needed."""
        rows = self.snapshot() if operands is None else operands
        numbers = {index: index for index in range(self.inputs)} | {ZERO: ZERO}
        instructions: list[tuple[int, ...]] = []
        stack = list(reversed(self.outputs))
        while stack:
            node = stack[-1]
            if node in numbers:
                stack.pop()
                continue
            missing = [operand for operand in sorted(rows[node], reverse=True) if operand not in numbers]
            if missing:
                stack += missing
                continue
            numbers[node] = self.inputs + len(instructions)
            instructions.append(tuple(sorted(numbers[operand] for operand in rows[node])))
            stack.pop()
        return XorProgram(self.inputs, tuple(instructions), tuple(numbers[node] for node in self.outputs))
