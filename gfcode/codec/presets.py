"""Presets: the codes of other implementations, such that the bytes of parity are theirs.

A preset fixes field, polynomial, parity matrix and layout for any k and m that its peer takes, and refuses the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from gfcode.codec import bitcodes, recipes
from gfcode.errors import ParameterError
from gfcode.gf import GF, Field
from gfcode.gf.tables import FieldArray
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import FAMILIES
from gfcode.params import Layout

__all__ = ["PRESETS", "Preset", "Recipe", "find_preset"]

#: Polynomials of Jerasure's fields (gf-complete's default for each w).
JERASURE_POLYNOMIALS: Mapping[int, int] = MappingProxyType({
    1: 0x3, 2: 0x7, 3: 0xB, 4: 0x13, 5: 0x25, 6: 0x43, 7: 0x89, 8: 0x11D, 9: 0x211, 10: 0x409, 11: 0x805, 12: 0x1053,
    13: 0x201B, 14: 0x4443, 15: 0x8003, 16: 0x1100B, 32: 0x100400007,
})  # fmt: skip
#: The polynomial of every byte-wise code below, x^8 + x^4 + x^3 + x^2 + 1.
BYTES_POLYNOMIAL = 0x11D
#: Packet size that Ceph writes with unless told otherwise.
CEPH_PACKET_BYTES = 2048
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a preset comes to for one k and m.

    Attributes
    ----------
    k, m : int
    parity : Matrix
        m × k over GF(2^w), or for a code that only a bit matrix gives (m · w) × (k · w) over GF(2).
    layout : Layout
    """

    k: int
    m: int
    parity: Matrix
    layout: Layout

    @property
    def is_bit_matrix(self) -> bool:
        """Whether the code has no matrix over GF(2^w)."""
        return self.parity.shape != (self.m, self.k)


@dataclass(frozen=True, slots=True)
class Preset:
    """A code of another implementation.

    Attributes
    ----------
    name : str
    peer : str
        The implementation and its call.
    options : mapping
        Parameters beyond k and m, with their defaults.
    cell : int
        Bytes of one shard's run in the peer's striped files, for the peers that have such; 0 for others.
    """

    name: str
    peer: str
    make: Callable[..., Recipe]
    options: Mapping[str, int] = field(default_factory=dict)
    cell: int = 0

    def recipe(self, k: int, m: int, **options: int) -> Recipe:
        """Fix the code for one k and m.

        Raises
        ------
        ParameterError
            For an option that the preset does not have, and for a k and m that its peer refuses.
        """
        for name in options:
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                raise ParameterError(f"preset '{self.name}' has no option {name!r} (it has: {known})")
        if k < 1 or m < 1:
            raise ParameterError(f"preset '{self.name}' needs k and m of at least 1, not k = {k}, m = {m}")
        return self.make(self.name, k, m, **{**self.options, **options})


def _refuse(name: str, reason: str) -> ParameterError:
    return ParameterError(f"preset '{name}' {reason}")


def _room(name: str, k: int, m: int, room: int) -> None:
    if k + m > room:
        raise _refuse(name, f"takes at most {room} shards, not k + m = {k + m}")


def _raid6_only(name: str, m: int) -> None:
    if m != 2:
        raise _refuse(name, f"has m = 2 parities, not {m}")


def _bytewise(make: Callable[[Field, int, int], FieldArray], name: str, k: int, m: int, *, room: int = 256) -> Recipe:
    """Byte-wise code over GF(2^8) with the usual polynomial."""
    _room(name, k, m, room)
    gf = GF(8, BYTES_POLYNOMIAL)
    return Recipe(k, m, Matrix(gf, make(gf, k, m)), Layout("words", 8))


def _jerasure_field(name: str, w: int, sizes: tuple[int, ...]) -> Field:
    if w not in sizes:
        raise _refuse(name, f"takes w of {', '.join(map(str, sizes))}, not {w}")
    return GF(w, JERASURE_POLYNOMIALS[w])


def _jerasure_words(family: str, name: str, k: int, m: int, *, w: int) -> Recipe:
    """`reed_sol_van` and `reed_sol_r6_op`."""
    gf = _jerasure_field(name, w, (8, 16, 32))
    if family == "powers":
        _raid6_only(name, m)
    else:
        _room(name, k, m, gf.order)
    return Recipe(k, m, Matrix(gf, FAMILIES[family](gf, k, m)), Layout("words", w))


def _jerasure_cauchy(
    make: Callable[[Field, int, int], FieldArray], name: str, k: int, m: int, *, w: int, packet_bytes: int
) -> Recipe:
    """`cauchy_orig` and `cauchy_good`."""
    gf = _jerasure_field(name, w, tuple(JERASURE_POLYNOMIALS))
    # For two parities cauchy_good takes its second row from a table, which has one element more than Cauchy's points.
    listed = make is FAMILIES["cauchy-good"] and m == 2 and 2 <= w <= 10 and k == gf.order - 1
    if not listed:
        _room(name, k, m, gf.order)
    return Recipe(k, m, Matrix(gf, make(gf, k, m)), Layout("packets", w, packet_bytes))


def _jerasure_bits(
    squares: Callable[[int, int], bitcodes.Bits], name: str, k: int, m: int, *, packet_bytes: int, w: int = 8
) -> Recipe:
    """`liberation`, `blaum_roth` and `liber8tion`."""
    _raid6_only(name, m)
    return Recipe(k, m, Matrix(GF(2 - 1), bitcodes.raid6_bits(squares(k, w))), Layout("packets", w, packet_bytes))


def _linux_raid6(name: str, k: int, m: int) -> Recipe:
    """P and Q of the md driver, whose largest array has 255 devices."""
    _raid6_only(name, m)
    return _bytewise(FAMILIES["powers"], name, k, m, room=255)


def _hdfs_xor(name: str, k: int, m: int) -> Recipe:
    if m != 1:
        raise _refuse(name, f"has m = 1 parity, not {m}")
    return _bytewise(FAMILIES["vandermonde"], name, k, m, room=255)


def _klauspost(gf: Field, k: int, m: int) -> FieldArray:
    return recipes.interpolation(gf, k, recipes.successive_points(gf, k + m))


def _zfec(gf: Field, k: int, m: int) -> FieldArray:
    return recipes.interpolation(gf, k, recipes.root_powers(gf, k + m))


def _liber8tion(k: int, w: int) -> bitcodes.Bits:
    del w
    return bitcodes.liber8tion(k)


_PACKETS = {"w": 8, "packet_bytes": CEPH_PACKET_BYTES}

#: The presets by name.
PRESETS: Mapping[str, Preset] = MappingProxyType({
    preset.name: preset
    for preset in (
        Preset("isa-l-rs", "ISA-L gf_gen_rs_matrix", partial(_bytewise, FAMILIES["powers"])),
        Preset("isa-l-cauchy", "ISA-L gf_gen_cauchy1_matrix", partial(_bytewise, FAMILIES["cauchy"])),
        Preset("jerasure-reed-sol-van", "Jerasure reed_sol_van", partial(_jerasure_words, "vandermonde"), {"w": 8}),
        Preset("jerasure-reed-sol-r6", "Jerasure reed_sol_r6_op", partial(_jerasure_words, "powers"), {"w": 8}),
        Preset(
            "jerasure-cauchy-orig", "Jerasure cauchy_orig", partial(_jerasure_cauchy, recipes.cauchy_original), _PACKETS
        ),
        Preset(
            "jerasure-cauchy-good", "Jerasure cauchy_good", partial(_jerasure_cauchy, FAMILIES["cauchy-good"]), _PACKETS
        ),
        Preset(
            "jerasure-liberation", "Jerasure liberation", partial(_jerasure_bits, bitcodes.liberation),
            {"w": 7, "packet_bytes": CEPH_PACKET_BYTES},
        ),
        Preset(
            "jerasure-blaum-roth", "Jerasure blaum_roth", partial(_jerasure_bits, bitcodes.blaum_roth),
            {"w": 6, "packet_bytes": CEPH_PACKET_BYTES},
        ),
        Preset(
            "jerasure-liber8tion", "Jerasure liber8tion", partial(_jerasure_bits, _liber8tion),
            {"packet_bytes": CEPH_PACKET_BYTES},
        ),
        Preset("klauspost", "klauspost/reedsolomon New(k, m)", partial(_bytewise, _klauspost)),
        Preset(
            "klauspost-cauchy", "klauspost/reedsolomon WithCauchyMatrix", partial(_bytewise, FAMILIES["cauchy"])
        ),
        Preset("klauspost-par1", "klauspost/reedsolomon WithPAR1Matrix", partial(_bytewise, recipes.par1)),
        Preset(
            "klauspost-jerasure", "klauspost/reedsolomon WithJerasureMatrix",
            partial(_bytewise, FAMILIES["vandermonde"]),
        ),
        Preset("backblaze", "Backblaze JavaReedSolomon", partial(_bytewise, _klauspost)),
        Preset("zfec", "zfec Encoder(k, k + m)", partial(_bytewise, _zfec)),
        Preset("linux-raid6", "Linux md RAID-6 P and Q", _linux_raid6),
        Preset(
            "hdfs-rs", "HDFS policies RS-6-3 and RS-10-4 (codec rs)",
            partial(_bytewise, FAMILIES["cauchy"], room=255), cell=MEBIBYTE,
        ),
        Preset(
            "hdfs-rs-legacy", "HDFS policy RS-LEGACY-6-3 and HDFS-RAID (codec rs-legacy)",
            partial(_bytewise, recipes.bch_remainders, room=255), cell=MEBIBYTE,
        ),
        Preset("hdfs-xor", "HDFS policy XOR-2-1 (codec xor)", _hdfs_xor, cell=MEBIBYTE),
    )
})  # fmt: skip


def find_preset(name: str) -> Preset:
    """Return a preset by its name; underscores are as good as hyphens.

    Raises
    ------
    ParameterError
        If there is none; the message lists all.
    """
    preset = PRESETS.get(name.replace("_", "-"))
    if preset is None:
        raise ParameterError(f"there is no preset {name!r}; choose one of {', '.join(PRESETS)}")
    return preset
