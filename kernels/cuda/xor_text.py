"""CUDA text of XOR programs: the generated header program.cuh of xor_program.cu and xor_horner.cu."""

from collections.abc import Callable

from gfcode.xor.program import ZERO, XorProgram

__all__ = ["horner_text", "live_words", "program_text"]


def _sum(terms: list[str]) -> str:
    """Write a sum as three-input XORs of three-input XORs, as flat as can be."""
    while len(terms) > 2:
        terms = [*terms[3:], f"xor3({terms[0]}, {terms[1]}, {terms[2]})"]
    return " ^ ".join(terms)


def _loads(program: XorProgram, planes: int) -> list[list[int]]:
    """Blocks to load before each instruction, and after the last: each one block ahead of its first use."""
    order: dict[int, int] = {}  # block -> first use
    for at, operands in enumerate((*program.instructions, program.outputs)):
        for value in operands:
            if 0 <= value < program.inputs:
                order.setdefault(value // planes, at)
    places: list[list[int]] = [[] for _ in range(len(program.instructions) + 1)]
    uses = list(order.values())
    for i, block in enumerate(order):
        places[uses[max(0, i - 1)]].append(block)
    return places


def _stores(program: XorProgram, planes: int) -> list[list[int]]:
    """Output blocks to store before each instruction, and after the last: as soon as all their planes are made."""
    places: list[list[int]] = [[] for _ in range(len(program.instructions) + 1)]
    loads = _loads(program, planes)
    loaded = {block: at for at, blocks in enumerate(loads) for block in blocks}
    for row in range(len(program.outputs) // planes):
        ready = 0
        for value in program.outputs[row * planes : (row + 1) * planes]:
            if value >= program.inputs:
                ready = max(ready, value - program.inputs + 1)
            elif value != ZERO:
                ready = max(ready, loaded[value // planes])
        places[ready].append(row)
    return places


def live_words(program: XorProgram, planes: int) -> int:
    """Most words that a lane holds at once for each word of a plane."""
    end = len(program.instructions)
    last = dict(enumerate(program.last_uses))
    for row_end, rows in enumerate(_stores(program, planes)):
        for row in rows:
            for value in program.outputs[row * planes : (row + 1) * planes]:
                if value != ZERO:
                    last[value] = max(last[value], row_end)
    ends = [0] * (end + 1)
    held = most = 0
    for at, blocks in enumerate(_loads(program, planes)):
        for block in blocks:
            for value in range(block * planes, (block + 1) * planes):
                # A block is loaded whole; a plane that nothing uses is dropped at once.
                ends[max(at, last[value])] += 1
                held += 1
        if at < end:
            ends[max(at, last[program.inputs + at])] += 1
            held += 1
        most = max(most, held)
        held -= ends[at]
    return most


def _namer(program: XorProgram, of_input: Callable[[int], str]) -> Callable[[int], str]:
    def name(value: int) -> str:
        if value == ZERO:
            return "zero_word()"
        return of_input(value) if value < program.inputs else f"v{value - program.inputs}"

    return name


def program_text(program: XorProgram, planes: int) -> str:
    """Write `apply_program(lane)` of a program.

    Parameters
    ----------
    program : XorProgram
        Input j · planes + b is plane b of block j, and so with outputs.
    planes : int
    """

    def of_input(value: int) -> str:
        return f"i{value // planes}[{value % planes}]"

    name = _namer(program, of_input)
    stores = _stores(program, planes)
    lines = ["DEVICE void apply_program(const Lane &lane) {"]
    for at, blocks in enumerate(_loads(program, planes)):
        lines.extend(f"  Word i{block}[PLANES]; lane.load(i{block}, {block});" for block in blocks)
        for row in stores[at]:
            planes_of_row = ", ".join(map(name, program.outputs[row * planes : (row + 1) * planes]))
            lines.append(f"  {{ const Word o[PLANES] = {{{planes_of_row}}}; lane.store(o, {row}); }}")
        if at < len(program.instructions):
            operands = program.instructions[at]
            lines.append(f"  const Word v{at} = {_sum([name(value) for value in operands])};")
    return "\n".join([*lines, "}", ""])


def horner_text(program: XorProgram, planes: int) -> str:
    """Write `ROWS` and `horner_step(sums, input)` of a program made by `horner_step`."""
    entry = program.inputs - planes

    def of_input(value: int) -> str:
        return f"sums[{value}]" if value < entry else f"input[{value - entry}]"

    name = _namer(program, of_input)
    lines = [f"#define ROWS {entry // planes}", "DEVICE void horner_step(Word *sums, const Word *input) {"]
    lines.extend(
        f"  const Word v{at} = {_sum([name(value) for value in operands])};"
        for at, operands in enumerate(program.instructions)
    )
    lines.extend(f"  sums[{i}] = {name(value)};" for i, value in enumerate(program.outputs))
    return "\n".join([*lines, "}", ""])
