"""What all programs of `bench/` measure with: the harness of `gfcode.measure`, cases, and what figures depend on."""

from dataclasses import dataclass

from gfcode.measure.harness import PLACES, ROUNDS, Figure, interleave, machine, pin, place

__all__ = ["PLACES", "ROUNDS", "Case", "Figure", "environment", "interleave", "pin", "place"]


@dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes
    ----------
    operation : str
    k, m : int
    length : int
        Bytes of a block.
    where : str
        One of `PLACES`.
    """

    operation: str
    k: int
    m: int
    length: int
    where: str


def environment() -> dict[str, str]:
    """Tell what a figure depends on: CPU, caches, versions, load."""
    import llvmlite.binding as llvm

    return {"cpu": llvm.get_host_cpu_name(), **machine()}
