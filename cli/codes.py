"""`gfcode codes`: the matrix families for given k, m and w, and which of them are safe."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from gfcode.cli.console import Console
from gfcode.cli.options import NamedPath, output_options, parameter_errors

if TYPE_CHECKING:
    from gfcode.gf import Field

__all__ = ["FamilyReport", "command"]


@dataclass(frozen=True, slots=True)
class FamilyReport:
    """One family of parity matrices at given k, m and w.

    Attributes
    ----------
    family : str
    ones : int or None
        Ones of the bit matrix; None where the family has no such matrix.
    certified : bool
        Whether the matrix is proven to decode every loss of m shards.
    method : str
        How it was certified; empty where it was not.
    detail : str
        The argument, or why there is no certificate, in one line.
    lost : tuple of int
        A loss of m shards that cannot be decoded; empty where none is known.
    same_bytes : str
        Whose parity it is, byte for byte; empty where nobody's.
    """

    family: str
    ones: int | None
    certified: bool
    method: str
    detail: str
    lost: tuple[int, ...]
    same_bytes: str


@click.command("codes", short_help="List matrix families: cost, safety, whose bytes.")
@click.option("-k", type=int, default=10, show_default=True, help="Data shards.")
@click.option("-m", type=int, default=4, show_default=True, help="Parity shards.")
@click.option("--w", type=int, default=8, show_default=True, help="Bits of a symbol: 1 to 16, or 32.")
@click.option("--search", is_flag=True, help="Search for matrices that take fewer XORs (w from 2 to 16).")
@click.option("--seconds", type=click.FloatRange(min=0), help="Search for so long; 30 if there is no other limit.")
@click.option("--rounds", type=click.IntRange(min=1), help="Search for so many rounds.")
@click.option("--polish", type=click.IntRange(min=0), help="Steps spent on the best program in the end.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the search's chance.")
@click.option("--plot", type=NamedPath(dir_okay=False), metavar="FILE", help="Draw them: .svg, .png or .pdf.")
@output_options
def command(
    console: Console,
    k: int,
    m: int,
    w: int,
    search: bool,
    seconds: float | None,
    rounds: int | None,
    polish: int | None,
    seed: int | None,
    plot: str | None,
) -> None:
    """List the matrix families for k, m and w: cost, safety, and whose bytes they give.

    Ones are those of the bit matrix: the fewer, the cheaper an encoding by XOR. A family is certified where every loss
    of m shards is proven to be decodable; one that is not certified is refused by every command.

    With --search, look for cheaper matrices: Cauchy matrices, powers of x, and changes to them, over all fields of that
    size. What is found is certified, and its XORs are counted before and after compression. Equal seeds, rounds and
    polish find the same again.

    With --plot, draw the bit matrices, the cheapest one known among them, and how many registers and steps their XOR
    programs take.
    """
    if search:
        if plot is not None:
            raise click.UsageError("--plot does not go with --search")
        _search(console, k, m, w, seconds, rounds, polish or 0, seed or 0)
        return
    if any(value is not None for value in (seconds, rounds, polish, seed)):
        raise click.UsageError("--seconds, --rounds, --polish and --seed go with --search")
    from gfcode.gf import GF
    from gfcode.matrix.generator import FAMILIES, resolve_auto
    from gfcode.params import check_matrix_size, check_shard_counts

    with parameter_errors():
        field = GF(w)
        check_shard_counts(k, m, w)
        check_matrix_size(k, m)
        auto = resolve_auto(field, k, m)
        families = [_report(family, field, k, m) for family in FAMILIES]
        if plot is not None:
            from gfcode.measure.plot_codes import plot_codes

            plot_codes(k, m, w, plot)
    console.result({"k": k, "m": m, "w": w, "auto": auto, "families": [asdict(family) for family in families]})
    console.say(f"k = {k}, m = {m}, w = {w}: any {k} of {k + m} shards give all back; bit matrix {m * w} x {k * w}")
    rows = [("", "family", "ones", "certificate", "same bytes as")]
    for report in families:
        ones = "" if report.ones is None else f"{report.ones:,}"
        mark = "*" if report.family == auto else ""
        rows.append((mark, report.family, ones, _safety(report), report.same_bytes))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for mark, family, ones, certificate, same in rows:
        line = f"{mark:1} {family:<{widths[1]}}  {ones:>{widths[2]}}  {certificate:<{widths[3]}}  {same}"
        console.say(line.rstrip())
    console.say("* what --matrix auto takes; --json gives the certificates' arguments")


def _search(
    console: Console, k: int, m: int, w: int, seconds: float | None, rounds: int | None, polish: int, seed: int
) -> None:
    """Search for cheap matrices and report what was found."""
    from gfcode.xor.search import search_codes

    if seconds is None and rounds is None:
        seconds = 30
    with parameter_errors():
        report = search_codes(k, m, w, seed=seed, seconds=seconds, rounds=rounds, polish=polish)
    console.result(report.to_dict())
    for line in report.lines():
        console.say(line)


def _report(family: str, field: "Field", k: int, m: int) -> FamilyReport:
    """Build, weigh and certify one family's matrix."""
    from gfcode.errors import NotMDSError, ParameterError
    from gfcode.matrix.bitmatrix import ones
    from gfcode.matrix.certificate import certify
    from gfcode.matrix.generator import family_field, parity_matrix

    try:
        if family == "searched":
            field = family_field(family, k, m, field.w)
        matrix = parity_matrix(family, field, k, m)
    except ParameterError as error:
        return FamilyReport(family, None, False, "", str(error), (), "")
    weight, same = ones(matrix), _same_bytes(family, field.w, k, m)
    try:
        found = certify(matrix)
    except NotMDSError as error:
        return FamilyReport(family, weight, False, "", str(error), error.lost, same)
    return FamilyReport(family, weight, True, found.method, found.detail, (), same)


def _safety(report: FamilyReport) -> str:
    """Say briefly how a family is certified, or why it is refused."""
    import numpy as np

    from gfcode.pipeline.report import ranges

    if report.certified:
        return report.method
    if report.lost:
        runs = ranges(np.array(report.lost, np.int64))
        return "refused: loses " + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    if report.family == "searched" and report.ones is None:
        return "none kept for this code; --search finds some"
    return "refused: no room for so many shards" if report.ones is None else "refused: no proof found"


def _same_bytes(family: str, w: int, k: int, m: int) -> str:
    """Name who computes the same parity bytes, with the layout in which that holds."""
    peers = {
        "vandermonde": [("Jerasure reed_sol_van (words)", w in {8, 16, 32})],
        "powers": [
            ("ISA-L gf_gen_rs_matrix (words)", w == 8),
            ("RAID-6 P and Q (words)", w == 8 and m == 2),
        ],
        "cauchy": [("ISA-L gf_gen_cauchy1_matrix (words)", w == 8)],
        "cauchy-good": [("Jerasure cauchy_good (packets)", True)],
    }
    return ", ".join(name for name, holds in peers.get(family, []) if holds and k + m <= 2**w)
