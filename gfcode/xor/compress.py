"""Compress: compute the same outputs with fewer XORs.

Finding the fewest XORs is NP-hard (Boyar, Matthews & Peralta, "Logic minimization techniques", 2013), so this searches:

1. Starting points. *Paar* extracts the pair of operands that most rows have in common until no pair is left ("Optimized
   arithmetic for Reed-Solomon encoders", 1997); ties are broken by chance, so restarts differ. *Repair* does the same,
   but after each step it writes every unfinished row anew, as the shortest sum that a greedy choice among all values
   computed so far finds, with cancellation (XorRePair: Uezato, "Accelerating XOR-based erasure coding using program
   optimization techniques", SC'21); better where rows are dense, as those of decode matrices. The program given is a
   starting point too, so that structure which it has (Horner's rule) is kept where it is worth something.
2. Annealing from the best of them. A step puts a few random temporaries back into their users, with cancellation, and
   lets Paar's elimination find its way anew; or it writes one node anew as in repair. Worse outcomes are taken back,
   fewer and fewer excepted as the temperature falls.
"""

import math
import time
from random import Random
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from gfcode.errors import ParameterError
from gfcode.xor.fuse import fuse, split
from gfcode.xor.interpret import masks, prove
from gfcode.xor.lower import lower_masks
from gfcode.xor.network import Network
from gfcode.xor.program import XorProgram

__all__ = ["Annealer", "Objective", "compress", "generator", "paar", "repair"]

Objective = Literal["xors", "accesses"]

# What an instruction costs beside its XORs. Accesses are XORs + 2 · instructions; for XORs alone it only breaks ties.
_WEIGHTS: Final = {"xors": 1 / 64, "accesses": 2.0}
# Temperatures at the start and the end of a run, in XORs.
_HOT: Final = 1.5
_COLD: Final = 0.3
# Temporaries put back in one step: drawn from these.
_REMOVALS: Final = (6, 8, 10, 12)
# Share of the steps that write one node anew.
_REWRITES: Final = 0.75
# Steps between looks at the clock.
_SLICE: Final = 32

_BYTE_PAIR_ONES = np.array([value.bit_count() for value in range(1 << 16)], np.uint8)


def generator(seed: int) -> Random:
    """Return the source of chance of a search: the same draws for the same seed in every process and version."""
    return Random(seed)  # noqa: S311  (chooses between moves of a search; nothing here is secret)


def compress(
    program: XorProgram,
    *,
    seed: int = 0,
    iterations: int = 3000,
    restarts: int = 4,
    seconds: float | None = None,
    objective: Objective = "xors",
) -> XorProgram:
    """Reduce the number of XORs.

    Parameters
    ----------
    program : XorProgram
    seed : int
        Of all chance; equal arguments give equal programs (unless time runs out).
    iterations : int
        Annealing steps. With (10,4), w = 8, a thousand take about half a second.
    restarts : int
        Random starts of Paar's elimination; one of repair is added.
    seconds : float, optional
        Stop annealing after this time, if the iterations last longer.
    objective : {"xors", "accesses"}
        What to minimise: `xors`, or `memory_accesses` after `fuse`.

    Returns
    -------
    XorProgram
        With the same outputs, two operands in each instruction. Not worse by the objective.

    Raises
    ------
    ParameterError
        For an unknown objective.
    """
    if objective not in _WEIGHTS:
        raise ParameterError(f"unknown objective {objective!r}; choose {' or '.join(_WEIGHTS)}")
    before = masks(program)
    deadline = None if seconds is None else time.monotonic() + seconds
    starts = [program, repair(program, seed), *(paar(program, seed + restart) for restart in range(restarts))]
    weight = _WEIGHTS[objective]
    # Each is settled first: a start is as good as what elimination leaves of it.
    annealer = min((Annealer(start, seed, weight) for start in starts), key=lambda start: start.best)
    annealer.run(iterations, deadline)
    best = annealer.program()
    if objective == "accesses":
        # Settling makes shared sums of pairs, which cost accesses; a program of few XORs may have had none to lose.
        best = min(best, fuse(program), key=lambda candidate: candidate.memory_accesses)
    return prove(before, split(best))


def paar(program: XorProgram, seed: int = 0) -> XorProgram:
    """Compress the plain rows of a program by Paar's elimination alone, once. Instructions have several operands."""
    before = masks(program)
    network = Network(lower_masks(before, program.inputs))
    network.settle(generator(seed))
    return prove(before, network.program())


def repair(program: XorProgram, seed: int = 0) -> XorProgram:
    """Compress the plain rows of a program by elimination with cancellation (XorRePair), once."""
    before = masks(program)
    random = generator(seed)
    network = Network(lower_masks(before, program.inputs))
    nodes: list[int] = []
    table = np.empty((0, _words(program.inputs)), np.uint64)
    while (node := network.extract_most_common(random)) is not None:
        if node < program.inputs or node in nodes:
            continue
        nodes.append(node)
        table = np.vstack([table, _pack([network.values[node]], program.inputs)])
        for output in sorted(network.kept):
            # Only rows that nothing uses yet are written anew, so that no cycle can come about.
            if len(network.operands[output]) > 2 and not network.users[output] and output not in nodes:
                row = _sum_of(network.values[output], nodes, table, network)
                if len(row) < len(network.operands[output]):
                    network.assign(output, row)
    network.settle(random)
    return prove(before, network.program())


class Annealer:
    """A program under annealing.

    Parameters
    ----------
    program : XorProgram
    seed : int
    weight : float
        What an instruction costs beside its XORs.

    Attributes
    ----------
    best : float
        The least cost seen.
    """

    def __init__(self, program: XorProgram, seed: int, weight: float = _WEIGHTS["xors"]) -> None:
        self._random = generator(seed)
        self._weight = weight
        self._network = Network(program)
        self._network.settle(self._random)
        self._network.commit()
        self._best = self._network.snapshot()
        self.best = self._cost()

    def _cost(self) -> float:
        return self._network.cost + self._weight * len(self._network.operands)

    @property
    def xors(self) -> int:
        """XORs of the best program seen."""
        return sum(map(len, self._best.values())) - len(self._best)

    def program(self) -> XorProgram:
        """Return the best program seen; its instructions have several operands."""
        return self._network.program(self._best)

    def run(self, iterations: int, deadline: float | None = None) -> None:
        """Cool down over that many steps from where the last run ended; stop when `time.monotonic` passes the deadline.

        The more steps, the slower the cooling: one long run gets further than many short ones.
        """
        network, random = self._network, self._random
        if not network.operands:
            return
        cost = self._cost()
        for iteration in range(iterations):
            if deadline is not None and iteration % _SLICE == 0 and time.monotonic() > deadline:
                return
            if random.random() < _REWRITES:
                self._rewrite()
            else:
                temporaries = network.temporaries()
                for node in random.sample(temporaries, min(len(temporaries), random.choice(_REMOVALS))):
                    network.inline(node)
            network.settle(random)
            new = self._cost()
            temperature = _HOT + (_COLD - _HOT) * iteration / iterations
            if new > cost and random.random() >= math.exp((cost - new) / temperature):
                network.undo()
                continue
            network.commit()
            cost = new
            if cost < self.best:
                self.best = cost
                self._best = network.snapshot()

    def _rewrite(self) -> None:
        """Write one node anew as a sum of others."""
        network, random = self._network, self._random
        node = random.choice(list(network.operands))
        barred = network.descendants(node)
        others = [other for other in network.operands if other not in barred]
        table = _pack([network.values[other] for other in others], network.inputs)
        row = _sum_of(network.values[node], others, table, network, random)
        if len(row) <= len(network.operands[node]) + 1:
            network.assign(node, row)


def _words(inputs: int) -> int:
    return -(-inputs // 64)


def _pack(values: list[int], inputs: int) -> npt.NDArray[np.uint64]:
    width = 8 * _words(inputs)
    packed = np.frombuffer(b"".join(value.to_bytes(width, "little") for value in values), np.uint64)
    return np.asarray(packed.reshape(len(values), width // 8))


def _sum_of(
    value: int, nodes: list[int], table: npt.NDArray[np.uint64], network: Network, random: Random | None = None
) -> set[int]:
    """Write a value as a short sum of nodes, whose values are the rows of `table`, and of inputs.

    Greedy: take the node that leaves the fewest inputs, while it leaves fewer. With a source of chance, any node that
    leaves as few, and now and then one that leaves one more.
    """
    row: set[int] = set()
    while nodes:
        rest = _pack([value], network.inputs)
        distances = _BYTE_PAIR_ONES[(table ^ rest).view(np.uint16)].sum(axis=1, dtype=np.intp)
        least = int(distances.min())
        if least >= value.bit_count() - 1:
            break
        if random is None:
            choice = int(distances.argmin())
        else:
            slack = random.random() < 0.3 and least > 0
            choice = int(random.choice(np.flatnonzero(distances <= least + slack).tolist()))
        if nodes[choice] in row:
            break
        row.add(nodes[choice])
        value ^= network.values[nodes[choice]]
    return row | {index for index in range(network.inputs) if value >> index & 1}
