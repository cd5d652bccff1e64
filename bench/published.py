"""Published figures that stand beside ours in `bench.tables`: only numbers that were read at their source.

Rates are GB (10^9 bytes) a second, counted as the source counts. A line that has none here was found nowhere that could
be read: that is said, nothing is filled in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FIGURES", "SOURCES", "Published", "Source", "figures"]


@dataclass(frozen=True)
class Source:
    """Where figures were read.

    Attributes
    ----------
    title, address : str
    hardware : str
        What they were measured on, as far as the source says.
    """

    title: str
    address: str
    hardware: str


@dataclass(frozen=True)
class Published:
    """One figure.

    Attributes
    ----------
    what : str
        Whose implementation.
    rate : float
    source : str
        Of `SOURCES`.
    """

    what: str
    rate: float
    source: str


SOURCES: Mapping[str, Source] = {
    "sc21": Source(
        "Uezato, SC'21: raw logs of its section 7.6 (sec_76.log, isa_sec76.log), blocks of 2 KiB",
        "https://github.com/yuezato/xorslp_ec/tree/master/reproducing/rawlogs",
        "AMD Ryzen 5 2600 (Zen+, AVX2), DDR4-2667",
    ),
    "klauspost readme": Source(
        "klauspost/reedsolomon, README, AVX2",
        "https://github.com/klauspost/reedsolomon",
        "16 cores of a CPU that it does not name",
    ),
    "klauspost 162": Source(
        "klauspost/reedsolomon, pull request 162 (2021), AVX2, new speed",
        "https://github.com/klauspost/reedsolomon/pull/162",
        "32 threads of a CPU that it does not name",
    ),
    "isal 203": Source(
        "intel/isa-l, issue 203 (2022), erasure_code_perf with 32 MiB",
        "https://github.com/intel/isa-l/issues/203",
        "a CPU that it does not name",
    ),
    "gcrs": Source(
        "Liu, Wang, Chu, Leung, G-CRS (TPDS 2018): supplementary tables, 8,192 blocks of 128 threads",
        "https://www.comp.hkbu.edu.hk/~chxw/gcrs.html",
        "NVIDIA GTX 980 (Maxwell)",
    ),
}

#: Encode and decode, by the author's programs and by ISA-L, of RS(k, m).
_SC21 = {
    (8, 2): (13.606, 11.631, 7.067, 7.043), (9, 2): (13.834, 11.965, 7.111, 7.119),
    (10, 2): (14.140, 12.108, 7.146, 7.142), (8, 3): (9.351, 7.206, 4.997, 4.985),
    (9, 3): (9.419, 7.113, 5.036, 5.048), (10, 3): (9.517, 7.628, 5.031, 5.030),
    (8, 4): (7.094, 5.515, 4.568, 4.562), (9, 4): (7.227, 5.773, 4.685, 4.627),
    (10, 4): (7.454, 5.859, 4.703, 4.712),
}  # fmt: skip
#: Encoding with w = 4 to 8, by m. The page that could be read ends before m = 3 and before its second GPU.
_GCRS = {1: (143.78, 144.19, 144.28, 144.67, 144.71), 2: (131.40, 130.35, 130.53, 130.47, 131.38)}

Key = tuple[str, str, str]


def _all() -> dict[Key, tuple[Published, ...]]:
    found: dict[Key, tuple[Published, ...]] = {}
    for (k, m), rates in _SC21.items():
        for index, operation in enumerate(("encode", "decode")):
            found["sc21", f"RS({k},{m})", operation] = (
                Published("its programs", rates[index], "sc21"),
                Published("ISA-L", rates[2 + index], "sc21"),
            )
    found["isal", "14x10", "encode"] = (Published("ISA-L", 9.959, "isal 203"),)
    in_request = {"10x4x1M": 91.5, "10x4x16M": 27.7, "17x3x1M": 76.0, "50x20x1M": 19.8}
    in_readme = {"10x4x1M": 93.875, "50x20x1M": 22.828}
    for name, rate in in_request.items():
        more = (Published("klauspost", in_readme[name], "klauspost readme"),) if name in in_readme else ()
        found["klauspost", name, "encode"] = (*more, Published("klauspost", rate, "klauspost 162"))
    for m, line in _GCRS.items():
        for w, rate in zip(range(4, 9), line, strict=True):
            found["gcrs", f"m={m} w={w}", "encode"] = (Published("G-CRS", rate, "gcrs"),)
    return found


#: By table, line and operation, as `bench.tables` names them.
FIGURES: Mapping[Key, tuple[Published, ...]] = _all()


def figures(table: str, name: str, operation: str) -> tuple[Published, ...]:
    """Return what was published of a line; nothing where none was found."""
    return FIGURES.get((table, name, operation), ())
