"""Compilation of kernels by numba, once for a machine and user rather than once for a process.

numba's own cache writes next to the source or where the host application told it to, and trusts what it finds. This
one is gfcode's: its directory is `gfcode.engine.diskcache`'s, its entries are checked, and nothing of numba's
configuration is touched.
"""

import hashlib
import pickle
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.caching import CompileResultCacheImpl
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps

from gfcode.engine.diskcache import DiskCache

__all__ = ["compile_kernel", "helper"]


@lru_cache
def _sources() -> bytes:
    """Digest of everything that decides what the kernels of this package compile to, besides CPU and signature."""
    folder = Path(__file__).parent
    digest = hashlib.blake2b(repr((sys.version, numba.__version__, llvmlite.__version__)).encode())
    for name in ("compile.py", "kernels.py", "vectors.py"):
        digest.update((folder / name).read_bytes())
    return digest.digest()


class _KernelCache(CompileResultCacheImpl):
    """What numba expects of a cache of compiled functions, over a `DiskCache`; numba turns them into data and back."""

    cache_path = None

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._disk = DiskCache("numba")

    def _key(self, signature: Any, codegen: Any) -> bytes:
        return _sources() + repr((self._kernel, str(signature), codegen.magic_tuple())).encode()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled function of this signature; None if it has to be compiled."""
        target_context.refresh()
        content = self._disk.load(self._key(signature, target_context.codegen()))
        if content is None:
            return None
        try:
            return self.rebuild(target_context, pickle.loads(content))  # noqa: S301 - digested
        except Exception:  # noqa: BLE001 - whatever keeps a kept kernel from being used, a compiled one is right
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled function."""
        self._disk.store(self._key(signature, result.codegen), dumps(self.reduce(result)))

    def enable(self) -> None:
        """Do nothing: numba's switch of its own cache."""

    def disable(self) -> None:
        """Do nothing: numba's switch of its own cache."""

    def flush(self) -> None:
        """Do nothing: entries do not go stale, their keys do."""


class _KernelDispatcher(CPUDispatcher):
    """A compiled function that is kept in gfcode's cache."""

    def enable_caching(self) -> None:
        """Use gfcode's cache instead of numba's."""
        self._cache = _KernelCache(self.py_func.__name__)


def compile_kernel(function: Callable[..., None], name: str, signature: Any) -> Callable[..., None]:
    """Compile `function` for one signature, or fetch it from the cache; calls free the GIL.

    Parameters
    ----------
    function : function
        Its code is Python that numba compiles; whatever it calls is made by `helper`.
    name : str
        Names the kernel in the cache and in machine code: distinct for distinct code within this package.
    signature : numba signature

    Returns
    -------
    callable
        Accepts arguments of these types only.
    """
    function.__name__ = function.__qualname__ = name
    dispatcher = _KernelDispatcher(function, targetoptions={"nopython": True, "nogil": True, "boundscheck": False})
    dispatcher.enable_caching()
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    compiled: Callable[..., None] = dispatcher
    return compiled


def helper(function: Callable[..., None], *key: object) -> Callable[..., None]:
    """Make a function that kernels call; it becomes part of the kernel's machine code.

    Parameters
    ----------
    function : function
    key : object
        What the code depends on beyond its text, as a closure does. Kernels that different processes compiled and kept
        are loaded into one, where functions of one name are taken for one function: the name must say what it computes.
    """
    function.__qualname__ = "_".join([function.__qualname__, *map(str, key)])
    compiled: Callable[..., None] = numba.njit(nogil=True, boundscheck=False)(function)
    return compiled
