"""The driver behind an `ECDriver`: gfcode's own, or a class that the caller names."""

import importlib
from typing import Any, Final

from gfcode.compat.driver import ECNullDriver, ECPyECLibDriver
from gfcode.compat.ec_errors import ECDriverError

__all__ = ["DEFAULT_DRIVER", "make_driver", "positive"]

DEFAULT_DRIVER: Final = "pyeclib.core.ECPyECLibDriver"

# PyECLib's names of its own drivers mean those here.
_OWN: Final[dict[str, type]] = {DEFAULT_DRIVER: ECPyECLibDriver, "pyeclib.core.ECNullDriver": ECNullDriver}
_REQUIRED: Final = (
    "decode",
    "encode",
    "reconstruct",
    "fragments_needed",
    "min_parity_fragments_needed",
    "get_metadata",
    "verify_stripe_metadata",
    "get_segment_info",
)


def make_driver(path: str, **arguments: object) -> Any:
    """Make a driver of the class of this module and name.

    Raises
    ------
    ImportError
        If there is none.
    ECDriverError
        If it lacks a method of a driver.
    """
    driver = _find(path)(**arguments)
    missing = " ".join(method for method in _REQUIRED if not callable(getattr(driver, method, None)))
    if missing:
        raise ECDriverError(f"The following required methods are not implemented in {path}: {missing}")
    return driver


def _find(path: str) -> Any:
    if path in _OWN:
        return _OWN[path]
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ValueError) as failure:
        raise ImportError(f"Class {name} cannot be found ({path}): {failure}") from failure


def positive(value: Any, what: str) -> int:
    """Return a number of fragments as a positive integer.

    Raises
    ------
    ECDriverError
    """
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number <= 0:
        raise ECDriverError(f"Invalid number of {what}")
    return number
