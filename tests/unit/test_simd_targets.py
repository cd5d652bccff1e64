"""Kernels compiled for machines that this one need not be: the instructions meant are there, others are not."""

import re

import pytest

from gfcode.kernels.simd.compiler import Kernel, assembly
from gfcode.kernels.simd.constants import ConstantsKernel
from gfcode.kernels.simd.drive import Drive
from gfcode.kernels.simd.fft import FftKernel
from gfcode.kernels.simd.horner import HornerKernel
from gfcode.kernels.simd.planes import PlanesKernel
from gfcode.kernels.simd.target import Target, aarch64
from gfcode.kernels.simd.transpose import TransposeKernel
from gfcode.kernels.simd.words import WordsKernel

LINUX = "x86_64-unknown-linux-gnu"
GFNI = Target(LINUX, "sapphirerapids", "", 64, "affine")
AVX512 = Target(LINUX, "skylake-avx512", "", 64, "shuffle86")
ALDER = Target(LINUX, "alderlake", "", 32, "affine")
AVX2 = Target(LINUX, "haswell", "", 32, "shuffle86")
SSSE3 = Target(LINUX, "core2", "", 16, "shuffle86")
NEON = aarch64()
SHA3 = aarch64("+neon,+sha3", "neoverse-v1")
SVE = aarch64("+sve", "neoverse-v1", sve_bytes=32)
SVE2 = aarch64("+sve2", "generic", sve_bytes=64)
EVERY = {"gfni": GFNI, "avx512": AVX512, "alder": ALDER, "avx2": AVX2, "ssse3": SSSE3}
EVERY |= {"neon": NEON, "sha3": SHA3, "sve": SVE, "sve2": SVE2}

HORNER = HornerKernel(8, 0x11D, (0, 1, 2))
WORDS = WordsKernel(8, 3, summed=True, fold=True)
WIDE_WORDS = WordsKernel(16, 2)


def instructions(kernel: Kernel, target: Target) -> str:
    """Assembly without directives, labels and comments."""
    lines = assembly(kernel, target).splitlines()
    return "\n".join(line for line in lines if line.startswith("\t") and not line.startswith("\t."))


@pytest.mark.parametrize("target", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize(
    "kernel",
    [
        Drive(),
        HORNER,
        WORDS,
        WIDE_WORDS,
        HornerKernel(8, 0x11D, (0, 1), streaming=True),
        WordsKernel(8, 0, summed=True, streaming=True, ahead=1024),
        HornerKernel(4, 0x13, (0, 1)),
        ConstantsKernel(4, 0x13),
        PlanesKernel(across=True),
        PlanesKernel(across=False),
        TransposeKernel(8),
        TransposeKernel(8, back=True),
        TransposeKernel(16),
        TransposeKernel(16, back=True),
        FftKernel(8),
        FftKernel(16),
    ],
    ids=lambda kernel: str(kernel.name),
)
def test_every_kernel_compiles_for_every_target_and_calls_nothing(kernel: Kernel, target: Target) -> None:
    text = instructions(kernel, target)
    calls = re.findall(r"^\s(?:callq?|bl)\s+(?!\*)(\S+)", text, re.MULTILINE)
    assert all(call.startswith(kernel.name) for call in calls), "a kernel that needs a library would not load"


@pytest.mark.parametrize(
    ("target", "register", "others"),
    [
        (GFNI, "%zmm", ""),
        (AVX512, "%zmm", ""),
        (ALDER, "%ymm", "%zmm"),
        (AVX2, "%ymm", "%zmm"),
        (SSSE3, "%xmm", "%ymm"),
    ],
)
def test_vectors_have_the_width_of_the_target(target: Target, register: str, others: str) -> None:
    for kernel in (HORNER, WORDS, WIDE_WORDS):
        text = instructions(kernel, target)
        assert register in text
        assert not others or others not in text


@pytest.mark.parametrize("target", [SVE, SVE2], ids=["sve", "sve2"])
def test_sve_registers_hold_whole_vectors(target: Target) -> None:
    """Their width is that of the target: loads and stores under a predicate that is set for just as many bytes."""
    for kernel in (HORNER, WORDS, WIDE_WORDS, PlanesKernel(across=True)):
        text = instructions(kernel, target)
        assert re.search(r"ld1[bd]\s+\{ z\d+", text)
        assert re.search(r"st1[bd]\s+\{ z\d+", text)
        assert re.search(r"eor3?\s+z\d+", text)
        assert not re.search(r"eor3?\s+v\d+", text)
    for kernel in (WORDS, WIDE_WORDS):
        assert re.search(r"tbl\s+z\d+", instructions(kernel, target))
    assert ("eor3\tz" in instructions(HORNER, target)) == (target is SVE2)


def test_gfni_multiplies_by_bit_matrices() -> None:
    for kernel in (WORDS, WIDE_WORDS):
        text = instructions(kernel, GFNI)
        assert "vgf2p8affineqb" in text
        assert re.search(r"vgf2p8affineqb.*%ymm", instructions(kernel, ALDER))


def test_others_multiply_by_tables() -> None:
    for target, name in ((AVX512, "vpshufb"), (AVX2, "vpshufb"), (SSSE3, "pshufb"), (NEON, "tbl")):
        text = instructions(WORDS, target)
        assert re.search(rf"\b{name}\b", text)
        assert "gf2p8" not in text


@pytest.mark.parametrize("kernel", [HORNER, WORDS, ConstantsKernel(4, 0x13)], ids=["horner", "words", "constants"])
def test_three_operands_are_added_at_once_where_the_cpu_can(kernel: Kernel) -> None:
    assert re.search(r"vpternlog[qd]\s+\$150", instructions(kernel, AVX512))
    assert "eor3" in instructions(kernel, SHA3)
    assert "eor\tv" in instructions(kernel, NEON)
    assert "vpternlog" not in instructions(kernel, AVX2)


def test_horner_keeps_its_accumulators_in_registers() -> None:
    for exponents in ((0, 1), (0, 1, 2), (0, 1, 2, 3), (1,), (2, 3)):
        assert "%rsp)" not in instructions(HornerKernel(8, 0x11D, exponents), GFNI)
    for exponents in ((0, 1), (0, 1, 2, 3)):
        # A row has sixteen registers here: its planes, some of the sum's, and the input's.
        assert instructions(HornerKernel(8, 0x11D, exponents), AVX2).count("%rsp)") <= 4


def test_words_keep_their_accumulators_in_registers() -> None:
    for rows in (1, 2, 3, 4):
        text = instructions(WordsKernel(8, rows, summed=True), GFNI)
        assert not re.search(r"%zmm\d+, -?\d*\(%rsp\)", text)


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["avx2", "avx512"])
def test_words_by_tables_keep_their_accumulators_in_registers(target: Target) -> None:
    kernels = [WordsKernel(8, rows, summed=summed) for rows in (1, 2, 3, 4) for summed in (False, True)]
    for kernel in (*kernels, WordsKernel(8, 3, ones=True), WordsKernel(8, 1, summed=True, doubling=True)):
        spills = re.findall(r"%[yz]mm\d+, -?\d*\(%rsp\)", instructions(kernel, target))
        # Two vectors of five rows, and of the nibbles of an input, are one more than sixteen registers hold.
        full = target is AVX2 and kernel.rows + kernel.summed == 5
        assert len(spills) <= 4 * full, kernel


@pytest.mark.parametrize("back", [False, True])
def test_packets_are_transposed_in_registers(back: bool) -> None:
    text = instructions(TransposeKernel(16, back), GFNI)
    assert len(re.findall(r"vgf2p8affineqb", text)) == 16
    assert not re.search(r"%zmm\d+, -?\d*\(%rsp\)", text)
    assert "gf2p8" not in instructions(TransposeKernel(16, back), AVX2)


def test_streaming_stores_are_whole_lines() -> None:
    for kernel in (HornerKernel(8, 0x11D, (0, 1), streaming=True), WordsKernel(8, 2, streaming=True)):
        text = instructions(kernel, GFNI)
        assert re.search(r"vmovnt\w+\s+%zmm", text)
        assert "sfence" in text[text.rindex("vmovnt") :]
        assert "mfence" not in text


@pytest.mark.parametrize(("target", "parts"), [(AVX2, 2), (ALDER, 2), (SSSE3, 4)])
@pytest.mark.parametrize("kernel", [HornerKernel(8, 0x11D, (0, 1), streaming=True), ConstantsKernel(4, 0x13)])
def test_parts_of_a_line_are_written_past_the_caches_one_after_another(
    kernel: HornerKernel | ConstantsKernel, target: Target, parts: int
) -> None:
    text = assembly(kernel, target)
    if isinstance(kernel, ConstantsKernel):
        text = text[text.index("\nstage:") : text.index(".Lfunc_end", text.index("\nstage:"))]
    stores = re.findall(r"movnt\w+\s+%[xy]mm\d+, (-?\d*)(\S+)", text)
    assert len(stores) % parts == 0
    assert len(stores) >= kernel.w * parts
    for line in range(0, len(stores), parts):
        offsets = [int(offset or 0) for offset, _ in stores[line : line + parts]]
        assert offsets == list(range(offsets[0], offsets[0] + 64, target.vector_bytes))
        assert len({register for _, register in stores[line : line + parts]}) == 1


def test_constants_jump_and_never_return_between_inputs() -> None:
    text = assembly(ConstantsKernel(4, 0x13), GFNI)
    body = text[text.index("\nstep3:") : text.index(".Lfunc_end", text.index("\nstep3:"))]
    assert re.search(r"jmpq\s+\*", body)
    assert "ret" not in body
