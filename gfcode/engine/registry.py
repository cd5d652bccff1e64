"""Which engines there are, which can run here, and which one runs a product.

Engines are loaded by module name at first use, so that a process pays only for what it runs. An engine asked for by
name, as an argument or by the environment variable `GFCODE_ENGINE`, is a demand: it is used or the reason why not is
raised. Without one, each product goes to the first engine in order of preference that can run it.
"""

import importlib
import os
import warnings
from dataclasses import dataclass
from typing import Final

from gfcode.engine.locks import LOADING
from gfcode.engine.protocol import Engine, Operator, Product
from gfcode.errors import EngineUnavailableError

__all__ = ["AUTOMATIC", "ENGINES", "ENVIRONMENT_VARIABLE", "AutomaticEngine", "EngineStatus", "get_engine", "status"]

#: Names the engine to use where none is asked for.
ENVIRONMENT_VARIABLE: Final = "GFCODE_ENGINE"

#: Module of each engine, by order of preference. Each has `load() -> Engine`.
ENGINES: Final[dict[str, str]] = {
    "simd": "gfcode.kernels.simd.engine",
    "numba": "gfcode.kernels.portable.engine",
    "numpy": "gfcode.engine.naive",
    "cuda": "gfcode.kernels.cuda.engine",
}

#: Engines that a product may be given to unasked, by order of preference.
AUTOMATIC: Final = ("simd", "numba", "numpy")

# What was loaded, or why it could not be. Kept for the life of the process: an engine does not come or go.
_loaded: dict[str, Engine | EngineUnavailableError] = {}


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Whether an engine can be used here.

    Attributes
    ----------
    name : str
    usable : bool
    detail : str
        One line: what it runs on if usable, else why it is not and what would help.
    """

    name: str
    usable: bool
    detail: str


class AutomaticEngine:
    """Gives each product to the first engine, in order of preference, that is usable and does not refuse it."""

    name = "auto"

    def choose(self, product: Product) -> Engine:
        """Return the engine that `prepare` would use for `product`."""
        reasons = []
        for name in AUTOMATIC:
            try:
                engine = _load(name)
            except EngineUnavailableError as error:
                reasons.append(f"{name}: {error}")
                continue
            if reason := engine.refuses(product):
                reasons.append(f"{name}: {reason}")
                continue
            if name == "numpy":
                _warn_slow("; ".join(reasons))
            return engine
        raise EngineUnavailableError(f"no engine can run this product ({'; '.join(reasons)})")

    def refuses(self, product: Product) -> str | None:
        """Why no engine can run `product`; None if one can."""
        try:
            self.choose(product)
        except EngineUnavailableError as error:
            return str(error)
        return None

    def prepare(self, product: Product) -> Operator:
        """Bind `product` on the engine that `choose` names."""
        return self.choose(product).prepare(product)


_AUTOMATIC_ENGINE: Final = AutomaticEngine()


def get_engine(name: str | None = None) -> Engine:
    """Return an engine.

    Parameters
    ----------
    name : str, optional
        One of `ENGINES`, which is a demand; or "auto": an `AutomaticEngine`, whatever the environment says. By default
        what the environment variable `GFCODE_ENGINE` says, and "auto" where that is unset or empty.

    Returns
    -------
    Engine
        The same object each time.

    Raises
    ------
    EngineUnavailableError
        If there is no engine of this name or it cannot be used here, with the reason.
    """
    source = ""
    if name is None:
        name = os.environ.get(ENVIRONMENT_VARIABLE) or AutomaticEngine.name
        source = f" ({ENVIRONMENT_VARIABLE}={name})"
    if name == AutomaticEngine.name:
        return _AUTOMATIC_ENGINE
    if name not in ENGINES:
        raise EngineUnavailableError(f"there is no engine {name!r}{source}; choose one of {', '.join(ENGINES)}, auto")
    try:
        return _load(name)
    except EngineUnavailableError as error:
        raise EngineUnavailableError(f"engine {name!r} cannot be used here{source}: {error}") from error


def status() -> list[EngineStatus]:
    """Try every engine and say which are usable.

    Returns
    -------
    list of EngineStatus
        By order of preference. Trying an engine loads its libraries.
    """
    found = []
    for name in ENGINES:
        try:
            engine = _load(name)
        except EngineUnavailableError as error:
            found.append(EngineStatus(name, usable=False, detail=str(error)))
        else:
            found.append(EngineStatus(name, usable=True, detail=getattr(engine, "detail", "")))
    return found


def _load(name: str) -> Engine:
    """Return the engine of this name, loading it at first use; raise its reason if it cannot be used."""
    result = _loaded.get(name)
    if result is None:
        with LOADING:
            result = _loaded.get(name)
            if result is None:
                try:
                    result = _import(ENGINES[name])
                except EngineUnavailableError as error:
                    # Without its traceback, which would keep the frames of this first call alive.
                    result = error.with_traceback(None)
                _loaded[name] = result
    if isinstance(result, EngineUnavailableError):
        raise EngineUnavailableError(str(result))
    return result


def _import(module_name: str) -> Engine:
    """Load an engine's module and make the engine, turning whatever goes wrong into a reason."""
    try:
        engine: Engine = importlib.import_module(module_name).load()
    except EngineUnavailableError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise EngineUnavailableError(f"this installation of gfcode has no {error.name}") from error
        raise EngineUnavailableError(f"{error.name or error} is not installed: pip install {error.name}") from error
    except Exception as error:
        raise EngineUnavailableError(f"loading it failed: {type(error).__name__}: {error}") from error
    return engine


def _warn_slow(reasons: str) -> None:
    """Say, once a process for each set of reasons, that the choice fell on the slow engine."""
    if reasons not in _warned:
        _warned.add(reasons)
        warnings.warn(
            f"gfcode falls back to the numpy engine, which is correct but slow ({reasons})",
            RuntimeWarning,
            stacklevel=4,
        )


_warned: set[str] = set()
