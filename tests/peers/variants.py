"""Every preset beside the peers that are to agree with it: what the golden vectors and the peer tests go through."""

from tests.peers.base import Variant
from tests.peers.isal import isal_cauchy, isal_pq, isal_rs, pyeclib_isal_cauchy, pyeclib_isal_rs
from tests.peers.jerasure import jerasure
from tests.peers.mdadm import Mdadm
from tests.peers.served import hadoop, klauspost
from tests.peers.zfec_peer import Zfec

__all__ = ["VARIANTS"]

USUAL = ((4, 2), (6, 3), (10, 4))
RAID6 = ((4, 2), (6, 2), (10, 2))
#: The most shards that byte-wide codes take.
BYTES = (*USUAL, (252, 4))
TOO_MANY = ((253, 4), (255, 2))


def _cauchy(w: int, packet_bytes: int, *more: tuple[int, int]) -> "list[Variant]":
    room = 1 << w
    return [
        Variant(
            f"jerasure-{technique.replace('_', '-')}",
            (jerasure(technique, w, packet_bytes),),
            {"w": w, "packet_bytes": packet_bytes},
            (*USUAL, *more),
            refused=((room - 2, 3), (room, 1)) if w < 16 else (),
            unit=w * packet_bytes,
        )
        for technique in ("cauchy_orig", "cauchy_good")
    ]


def _raid6_bits(
    technique: str, w: int, packet_bytes: int, *shapes: tuple[int, int], uncertified: tuple[tuple[int, int], ...] = ()
) -> Variant:
    return Variant(
        f"jerasure-{technique.replace('_', '-')}",
        (jerasure(technique, w, packet_bytes),),
        {"packet_bytes": packet_bytes} if technique == "liber8tion" else {"w": w, "packet_bytes": packet_bytes},
        shapes,
        refused=((w + 1, 2), (4, 3)),
        unit=w * packet_bytes,
        uncertified=uncertified,
    )


#: Variants by title.
VARIANTS: dict[str, Variant] = {
    variant.title: variant
    for variant in [
        Variant(
            "isa-l-rs", (isal_rs, pyeclib_isal_rs), {}, (*BYTES, (253, 3)), refused=TOO_MANY, uncertified=((252, 4),)
        ),
        Variant("isa-l-cauchy", (isal_cauchy, pyeclib_isal_cauchy), {}, (*BYTES, (128, 128)), refused=TOO_MANY),
        Variant("jerasure-reed-sol-van", (jerasure("reed_sol_van", 8),), {"w": 8}, BYTES, refused=TOO_MANY, unit=8),
        Variant("jerasure-reed-sol-van", (jerasure("reed_sol_van", 16),), {"w": 16}, (*USUAL, (300, 8)), unit=8),
        Variant("jerasure-reed-sol-van", (jerasure("reed_sol_van", 32),), {"w": 32}, (*USUAL, (300, 8)), unit=8),
        Variant(
            "jerasure-reed-sol-r6",
            (jerasure("reed_sol_r6_op", 8),),
            {"w": 8},
            (*RAID6, (255, 2)),
            refused=((4, 3),),
            unit=8,
        ),
        Variant(
            "jerasure-reed-sol-r6",
            (jerasure("reed_sol_r6_op", 16),),
            {"w": 16},
            (*RAID6, (300, 2)),
            refused=((4, 3),),
            unit=8,
        ),
        Variant(
            "jerasure-reed-sol-r6",
            (jerasure("reed_sol_r6_op", 32),),
            {"w": 32},
            (*RAID6, (300, 2)),
            refused=((4, 3),),
            unit=8,
        ),
        *_cauchy(4, 8, (12, 4), (14, 2)),
        *_cauchy(8, 8, (252, 4), (254, 2)),
        *_cauchy(8, 2048),
        *_cauchy(11, 16),
        *_cauchy(16, 8),
        *_cauchy(32, 8),
        _raid6_bits("liberation", 7, 8, (4, 2), (6, 2), (7, 2)),
        _raid6_bits("liberation", 11, 64, (4, 2), (6, 2), (10, 2), (11, 2)),
        _raid6_bits("blaum_roth", 6, 8, (4, 2), (6, 2)),
        _raid6_bits("blaum_roth", 7, 8, (2, 2), (4, 2), (7, 2), uncertified=((4, 2), (7, 2))),
        _raid6_bits("blaum_roth", 10, 64, (4, 2), (6, 2), (10, 2)),
        _raid6_bits("liber8tion", 8, 8, (4, 2), (6, 2), (8, 2)),
        _raid6_bits("liber8tion", 8, 2048, (4, 2), (6, 2), (8, 2)),
        Variant("klauspost", (klauspost("default"),), {}, (*BYTES, (128, 128)), refused=TOO_MANY),
        Variant("klauspost-cauchy", (klauspost("cauchy"),), {}, BYTES, refused=TOO_MANY),
        Variant("klauspost-par1", (klauspost("par1"),), {}, BYTES, refused=TOO_MANY, uncertified=((10, 4), (252, 4))),
        Variant("klauspost-jerasure", (klauspost("jerasure"),), {}, BYTES, refused=TOO_MANY),
        # JavaReedSolomon is not packaged anywhere; klauspost/reedsolomon is its port and shares its matrix.
        Variant("backblaze", (klauspost("default"),), {}, BYTES, refused=TOO_MANY),
        Variant("zfec", (Zfec,), {}, BYTES, refused=TOO_MANY),
        Variant("linux-raid6", (isal_pq, Mdadm), {}, (*RAID6, (253, 2)), refused=((4, 3),), unit=32),
        Variant("hdfs-rs", (hadoop("rs"),), {}, (*USUAL, (251, 4)), refused=((252, 4),)),
        Variant("hdfs-rs-legacy", (hadoop("rs-legacy"),), {}, (*USUAL, (251, 4)), refused=((252, 4),)),
        Variant("hdfs-xor", (hadoop("xor"),), {}, ((2, 1), (6, 1), (254, 1))),
    ]
}
