"""What a kernel is compiled for: triple, CPU, features, and the vector width that follows from them.

The width (16, 32 or 64 bytes) is how many bytes a kernel handles at a time. Results never depend on it.
"""

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

__all__ = ["Target", "aarch64", "host", "host_variants"]

#: Features that the 64-byte kernels need, over those of the 32-byte ones.
_WIDE = ("avx512f", "avx512bw", "avx512vl", "avx512dq")


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for.

    Parameters
    ----------
    triple : str
        LLVM target triple.
    cpu : str
        LLVM CPU name.
    features : str
        LLVM feature string, ``"+avx2,-gfni"``.
    vector_bytes : int
        16, 32 or 64.
    product : {"affine", "shuffle86", "tbl", "sve"}
        How a byte is multiplied by a constant: a bit matrix (GFNI), or two tables of 16 (x86, NEON, SVE).
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    product: str

    @property
    def x86(self) -> bool:
        """Whether the target is x86-64."""
        return self.triple.startswith("x86_64")

    @property
    def registers(self) -> int:
        """Vector registers of the target."""
        return 32 if self.vector_bytes == 64 or not self.x86 else 16

    @property
    def attributes(self) -> str:
        """LLVM attributes of every function: for SVE the width of its registers, so that vectors lie in them."""
        units = self.vector_bytes // 16
        return f"vscale_range({units},{units})" if self.product == "sve" else ""

    @property
    def vector(self) -> str:
        """LLVM type of a vector of 64-bit lanes."""
        return f"<{self.vector_bytes // 8} x i64>"

    @property
    def byte_vector(self) -> str:
        """LLVM type of a vector of bytes."""
        return f"<{self.vector_bytes} x i8>"


def _x86(triple: str, cpu: str, has: frozenset[str], features: str) -> Target | None:
    """Choose width and instructions for an x86-64 CPU; None where even `pshufb` is missing."""
    if "ssse3" not in has:
        return None
    width = 64 if has.issuperset(_WIDE) else 32 if "avx2" in has else 16
    # The VEX forms of the GFNI instructions need AVX; the legacy form would do for 16 bytes but no CPU has only that.
    product = "affine" if "gfni" in has and (width > 16 or "avx" in has) else "shuffle86"
    return Target(triple, cpu, features, width, product)


def aarch64(features: str = "+neon", cpu: str = "generic", *, sve_bytes: int = 0) -> Target:
    """Return an AArch64 target: 16-byte NEON vectors and table look-ups, or SVE registers of 32 or 64 bytes.

    SVE registers of 16 bytes gain nothing over NEON's.
    """
    if sve_bytes:
        return Target("aarch64-unknown-linux-gnu", cpu, features, sve_bytes, "sve")
    return Target("aarch64-unknown-linux-gnu", cpu, features, 16, "tbl")


@cache
def host() -> Target | None:
    """Return the target for the CPU this process runs on; None where no kernel was written for it."""
    triple = llvm.get_process_triple()
    if triple.startswith("x86_64"):
        enabled = llvm.get_host_cpu_features()
        has = frozenset(name for name, on in enabled.items() if on)
        return _x86(triple, llvm.get_host_cpu_name(), has, enabled.flatten())
    return None


def host_variants() -> dict[str, Target]:
    """Return the targets that can run here, by name: the host, and the host with features masked one after another."""
    variants: dict[str, Target] = {}
    best = host()
    if best is None:
        return variants
    variants["host"] = best
    if not best.x86:
        return variants
    enabled = llvm.get_host_cpu_features()
    has = frozenset(name for name, on in enabled.items() if on)
    masks = {
        "no-gfni": frozenset({"gfni"}),
        "avx2-gfni": frozenset({*_WIDE}) | {name for name in has if name.startswith("avx512")},
        "avx2": frozenset({"gfni", *_WIDE}) | {name for name in has if name.startswith("avx512")},
        "sse": frozenset(
            {"gfni", "avx", "avx2", "fma", "f16c", "vaes", "vpclmulqdq", *_WIDE}
            | {name for name in has if name.startswith("avx")}
        ),
    }
    for name, masked in masks.items():
        features = enabled.flatten() + "".join(f",-{feature}" for feature in sorted(masked))
        target = _x86(best.triple, best.cpu, has - masked, features)
        if target is not None and target not in variants.values():
            variants[name] = target
    return variants
