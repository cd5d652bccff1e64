"""Every error that gfcode raises on purpose.

All derive from `GFCodeError`. Each also derives from the built-in exception a caller would expect (`ValueError`,
`ZeroDivisionError`, ...), so that code which knows nothing of gfcode still catches it by kind. Messages are one line:
they name the value, the limit and what to do.
"""

__all__ = [
    "AuthenticationError",
    "BlockError",
    "DeviceError",
    "DeviceMemoryError",
    "DivisionByZeroError",
    "EngineUnavailableError",
    "FieldError",
    "GFCodeError",
    "InputChangedError",
    "MixedFieldsError",
    "NotMDSError",
    "OutOfFieldError",
    "ParameterError",
    "ReduciblePolynomialError",
    "ShardFormatError",
    "ShardSetError",
    "SingularMatrixError",
    "TargetExistsError",
    "UnrecoverableError",
]


class GFCodeError(Exception):
    """Base of all errors raised by gfcode."""


class FieldError(GFCodeError, ValueError):
    """An operation that the field does not allow."""


class ReduciblePolynomialError(FieldError):
    """The polynomial factors over GF(2), so that it defines no field."""


class OutOfFieldError(FieldError):
    """A value that is no element of the field."""


class MixedFieldsError(FieldError, TypeError):
    """Operands from two different fields."""


class DivisionByZeroError(FieldError, ZeroDivisionError):
    """Division by zero, the inverse of zero, or its logarithm."""


class SingularMatrixError(GFCodeError, ValueError):
    """A matrix without an inverse, or a system of equations without a unique solution."""


class ParameterError(GFCodeError, ValueError):
    """Parameters that no code can have: k, m, w, matrix, layout, lengths, indices."""


class NotMDSError(ParameterError):
    """A parity matrix that some loss of m shards defeats, or whose safety could not be proven.

    Attributes
    ----------
    lost : tuple of int
        Shard indices of a loss of m shards that cannot be decoded; empty where no proof was found within the limits.
    """

    def __init__(self, message: str, lost: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.lost = lost


class BlockError(GFCodeError, ValueError):
    """Blocks of the wrong number, shape, length or type, or outputs that overlap inputs."""


class EngineUnavailableError(GFCodeError, RuntimeError):
    """The engine asked for cannot run here, or cannot run this product."""


class DeviceError(GFCodeError, RuntimeError):
    """A GPU, its driver or its compiler failed while at work; outputs of the call are undefined."""


class DeviceMemoryError(GFCodeError, MemoryError):
    """A GPU has too little free memory for a call, however small its batches are made."""


class UnrecoverableError(GFCodeError):
    """Fewer than k good shards (or frames of a stripe) are left."""


class ShardFormatError(GFCodeError, ValueError):
    """Bytes that are no frame, no metadata, or of a format version this release does not know."""


class AuthenticationError(ShardFormatError):
    """A keyed set read without its key or with another, or a set that gives no proof of the key that was given.

    Attributes
    ----------
    key_missing : bool
        Whether it is keyed, and no key was given.
    """

    def __init__(self, message: str, *, key_missing: bool = False) -> None:
        super().__init__(message)
        self.key_missing = key_missing


class ShardSetError(GFCodeError):
    """Shard files that do not make a set: none found, two sets where one was meant, and the like."""


class TargetExistsError(GFCodeError, FileExistsError):
    """The file to be written exists, and overwriting it was not asked for."""


class InputChangedError(GFCodeError):
    """The input changed, shrank or grew while it was read."""
