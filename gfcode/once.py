"""Attributes that are computed when they are first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["cached_property"]

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):  # noqa: N801 - in place of `functools.cached_property`
    """What `functools.cached_property` is from Python 3.12 on: without a lock.

    The lock of 3.11 is one for all objects of a class. A process that is forked while any thread computes such an
    attribute would never get it. Threads that ask at once compute twice, and one value stays.
    """

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.name = function.__name__

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> "cached_property[_Value]": ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> _Value: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> "cached_property[_Value] | _Value":
        if instance is None:
            return self
        # Found there from now on: this class has no `__set__`, so that an instance's own attributes come first.
        value: _Value = instance.__dict__.setdefault(self.name, self.function(instance))
        return value
