"""The exceptions of `pyeclib.ec_iface`, by the same names, and how they are raised."""

from gfcode.errors import GFCodeError

__all__ = [
    "ECBackendInitializationError",
    "ECBackendInstanceInUse",
    "ECBackendInstanceNotAvailable",
    "ECBackendNotSupported",
    "ECBadFragmentChecksum",
    "ECDriverError",
    "ECDriverErrorWithPosition",
    "ECInsufficientFragments",
    "ECInvalidFragmentMetadata",
    "ECInvalidParameter",
    "ECMethodNotImplemented",
    "ECOutOfMemory",
    "error",
]


class ECDriverError(GFCodeError):
    """Base of the driver's errors; `error_str` is the message.

    Parameters
    ----------
    error : object
        The message, or something whose text is.
    """

    def __init__(self, error: object) -> None:
        super().__init__(error)
        try:
            self.error_str = str(error)
        except Exception:  # noqa: BLE001 - whatever a foreign object's __str__ raises
            self.error_str = f"Error retrieving the error message from {type(error).__name__}"

    def __str__(self) -> str:
        return self.error_str


class ECDriverErrorWithPosition(ECDriverError):  # noqa: N818 - PyECLib's name, as all below
    """An error about one of the fragments given; `position` says which."""

    def __init__(self, error: str, idx: int) -> None:
        super().__init__(error)
        self.position = idx

    def __reduce__(self) -> tuple[type["ECDriverErrorWithPosition"], tuple[str, int]]:
        return type(self), (self.error_str, self.position)

    def __str__(self) -> str:
        return f"{self.error_str} (position {self.position})"


class ECBackendNotSupported(ECDriverError):  # noqa: N818
    """There is no such `ec_type`."""


class ECMethodNotImplemented(ECDriverError):  # noqa: N818
    """Defined by PyECLib and raised by neither."""


class ECBackendInitializationError(ECDriverError):
    """Defined by PyECLib and raised by neither."""


class ECBackendInstanceNotAvailable(ECDriverError):  # noqa: N818
    """The driver is closed, or the `ec_type` is one that gfcode does not have."""


class ECBackendInstanceInUse(ECDriverError):  # noqa: N818
    """Defined by PyECLib and raised by neither."""


class ECInvalidParameter(ECDriverError):  # noqa: N818
    """A parameter that the method or the code does not take."""


class ECInvalidFragmentMetadata(ECDriverError):  # noqa: N818
    """A fragment's header is damaged, or does not belong with the driver or the other fragments."""


class ECBadFragmentChecksum(ECDriverError):  # noqa: N818
    """Defined by PyECLib and raised by neither: wrong checksums are reported by `get_metadata`."""


class ECInsufficientFragments(ECDriverError):  # noqa: N818
    """The fragments given do not determine what is asked for."""


class ECOutOfMemory(ECDriverError):  # noqa: N818
    """Defined by PyECLib; gfcode raises `MemoryError`."""


def error(name: str, message: str) -> Exception:
    """Make an exception of the class that `gfcode.compat.pyeclib` has by this name at this moment.

    PyECLib's C code looks its classes up in `pyeclib.ec_iface` when it raises one, so that a program that replaces a
    class there catches its own; the same holds here.
    """
    import gfcode.compat.pyeclib as interface  # noqa: PLC0415 - it imports this module

    made: Exception = getattr(interface, name)(message)
    return made
