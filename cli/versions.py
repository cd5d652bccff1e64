"""What `gfcode --version` prints: gfcode, the interpreter, and what each engine is built on."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FOUNDATIONS", "text"]

#: The distributions that each engine needs; any one of them will do. CuPy comes in one for each CUDA release.
FOUNDATIONS: "Final[Mapping[str, tuple[str, ...]]]" = {
    "simd": ("llvmlite",),
    "numba": ("numba",),
    "numpy": ("numpy",),
    "cuda": ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy"),
}


def text() -> str:
    """Return the versions, a line each, from the metadata of what is installed: nothing is imported or tried."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    lines = [
        f"gfcode {version('gfcode')}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
    ]
    width = max(map(len, FOUNDATIONS))
    for engine, distributions in FOUNDATIONS.items():
        found = f"{distributions[0]} is not installed"
        for distribution in distributions:
            try:
                found = f"{distribution} {version(distribution)}"
            except PackageNotFoundError:
                continue
            break
        lines.append(f"{engine:<{width}}  {found}")
    lines.append("`gfcode engines` tries each and says which can run here")
    return "\n".join(lines)
