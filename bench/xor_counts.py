"""Count the XORs of encoding before and after each pass, for the families and for the catalogue; prints Markdown.

    python -m bench.xor_counts                    the tables of docs/xor-programs.md, some minutes
    python -m bench.xor_counts --iterations 1000  a quick look

Counts depend on the number of iterations and on the seed, not on the machine.
"""

import argparse

from gfcode.gf import GF
from gfcode.gf.polynomials import format_polynomial
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.generator import generator_matrix, parity_matrix
from gfcode.xor import catalogue
from gfcode.xor.compress import compress, paar
from gfcode.xor.fuse import fuse, split
from gfcode.xor.lower import lower
from gfcode.xor.memory import allocate, cache_capacity
from gfcode.xor.optimize import optimize
from gfcode.xor.program import XorProgram
from gfcode.xor.schedule import schedule

CODES = [(4, 2), (6, 3), (8, 3), (10, 4), (12, 4), (16, 4), (17, 3), (20, 4)]
LOST = (2, 4, 5, 6)
# XORs; memory accesses; blocks written and cache capacity.
PUBLISHED_ENCODE = ("385", "677", "91, 170")
PUBLISHED_DECODE = ("511", "923", "132, 212")
FAMILIES = ("powers", "cauchy-good")


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells: str) -> None:
    row(*cells)
    print("|" + "---|" * len(cells))


def xors_accesses(program: XorProgram) -> str:
    return f"{program.xors} / {program.memory_accesses}"


def published(iterations: int, seed: int) -> None:
    """Compare with section 7.5 of Uezato, SC'21: RS(10,4) by ISA-L's matrix, and its decoding of shards 2, 4, 5, 6."""
    header("", "plain", "published: compressed, fused, scheduled", "gfcode: the same", "gfcode: for accesses")
    parity = parity_matrix("powers", GF(8), 10, 4)
    left = [shard for shard in range(14) if shard not in LOST]
    decode = generator_matrix(parity).rows(left).inverse().rows(LOST)
    for name, matrix, theirs in (("encode", parity, PUBLISHED_ENCODE), ("decode", decode, PUBLISHED_DECODE)):
        plain = lower(expand(matrix))
        programs = (
            split(plain),
            schedule(fuse(compress(plain, seed=seed, iterations=iterations)), seed=seed),
            optimize(plain, objective="accesses", seed=seed, iterations=iterations),
        )
        counts = [
            (str(p.xors), str(p.memory_accesses), f"{allocate(p).written}, {cache_capacity(p)}") for p in programs
        ]
        labels = ("XORs", "memory accesses", "NVar, CCap")
        for label, before, there, after, accesses in zip(labels, counts[0], theirs, counts[1], counts[2], strict=True):
            row(f"{name}: {label}", before, there, after, accesses)


def families(iterations: int, seed: int) -> None:
    header("code", "matrix", "plain", "Paar", "compressed, fused", "for accesses", "NVar, CCap, registers")
    for k, m in CODES:
        for family in FAMILIES:
            plain = lower(expand(parity_matrix(family, GF(8), k, m)))
            fewest = schedule(fuse(compress(plain, seed=seed, iterations=iterations)), seed=seed)
            accesses = fuse(compress(plain, seed=seed, iterations=iterations, objective="accesses"), duplicate=True)
            cells = [xors_accesses(program) for program in (plain, fuse(paar(plain, seed)), fewest, accesses)]
            live = f"{allocate(fewest).written}, {cache_capacity(fewest)}, {fewest.live_registers}"
            row(f"({k},{m})", f"`{family}`", *cells, live)


def kept() -> None:
    header("code", "w", "plain", "program", "XORs a data bit", "depth", "registers", "field", "matrix", "certificate")
    for entry in catalogue.entries():
        k, m, w = entry.key
        program = entry.program
        row(
            f"({k},{m})",
            w,
            f"{entry.before} / {lower(expand(entry.matrix)).memory_accesses}",
            xors_accesses(program),
            f"{entry.after / program.inputs:.2f}",
            program.depth,
            program.live_registers,
            format_polynomial(entry.matrix.field.polynomial),
            entry.origin,
            entry.method,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=20_000, help="annealing steps a program")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"XORs / memory accesses of encoding over GF(2^8), 0x11d; {options.iterations} steps, seed {options.seed}\n")
    families(options.iterations, options.seed)
    print("\nAgainst published counts\n")
    published(options.iterations, options.seed)
    print("\nThe catalogue\n")
    kept()


if __name__ == "__main__":
    main()
