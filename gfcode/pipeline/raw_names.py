"""Which file is which shard, where nothing in the files says so."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gfcode.errors import ParameterError

__all__ = ["Assignment", "assign_shards", "missing_targets"]

#: The last number in a name, with what stands around it.
_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)
Rule = Literal["name", "order"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Files by shard index.

    Attributes
    ----------
    shards : mapping of int to str
        Path of each shard that is there.
    missing : tuple of int
        The shards that are to be made, ascending.
    rule : {"name", "order"}
        Whether the numbers in the names or the order of the files said which is which.
    """

    shards: Mapping[int, str]
    missing: tuple[int, ...]
    rule: Rule


def assign_shards(
    paths: Sequence[str], n: int, missing: Collection[int] | None, rule: Rule | None = None, *, drop: bool = False
) -> Assignment:
    """Tell which file is which shard.

    By name where the last number in each file's name can be its index: all distinct, from 0 .. n − 1, and none of them
    said to be missing. Else by order: the files are the shards 0 .. n − 1 in ascending order, the missing ones skipped.

    Parameters
    ----------
    paths : sequence of str
    n : int
        Shards of the code.
    missing : collection of int, optional
        Indices of the shards that are not among the files. By default those that no name has, which needs names to
        tell, with 0 among them: numbers that start at 1 may well count from 1.
    rule : {"name", "order"}, optional
        Insist on one.
    drop : bool
        Leave out files whose names have the number of a missing shard.

    Raises
    ------
    ParameterError
        If names and `missing` contradict each other, or the numbers of files and shards do not fit.
    """
    gone = tuple(sorted(missing)) if missing is not None else None
    for index in gone or ():
        if not 0 <= index < n:
            raise ParameterError(f"there is no shard {index} to be missing: indices are 0 to {n - 1}")
    if gone is not None and len(set(gone)) != len(gone):
        raise ParameterError("a missing shard is listed twice")
    numbers = [_number(path) for path in paths]
    if drop and rule != "order" and _why_not_by_name(paths, numbers, n, ()) is None:
        paths = [path for path, number in zip(paths, numbers, strict=True) if number not in (gone or ())]
        numbers = [_number(path) for path in paths]
    if rule != "order":
        reason = _why_not_by_name(paths, numbers, n, gone)
        if reason is None:
            shards = {number: path for number, path in sorted(zip(numbers, paths, strict=True)) if number is not None}
            absent = tuple(index for index in range(n) if index not in shards) if gone is None else gone
            return Assignment(shards, absent, "name")
        if rule == "name" or (gone is None and len(paths) != n):
            raise ParameterError(f"names do not tell which file is which shard: {reason}")
        _refuse_contradiction(paths, numbers, n, gone or ())
    present = [index for index in range(n) if index not in (gone or ())]
    if len(paths) != len(present):
        raise ParameterError(
            f"{len(paths)} files are given for {len(present)} shards ({n} less {len(gone or ())} missing); by order, "
            "each shard that is not listed as missing needs its file"
        )
    return Assignment(dict(zip(present, paths, strict=True)), gone or (), "order")


def _number(path: str) -> int | None:
    match = _NUMBERED.fullmatch(os.path.basename(path))
    return int(match[2]) if match else None


def _why_not_by_name(
    paths: Sequence[str], numbers: Sequence[int | None], n: int, gone: tuple[int, ...] | None
) -> str | None:
    seen: dict[int, str] = {}
    for path, number in zip(paths, numbers, strict=True):
        name = os.path.basename(path)
        if number is None:
            return f"{name} has no number"
        if number >= n:
            return f"{name} has number {number}, and indices are 0 to {n - 1}"
        if number in seen:
            return f"{os.path.basename(seen[number])} and {name} both have number {number}"
        seen[number] = path
    if gone is None and 0 not in seen and len(seen) < n:
        return f"no name has number 0, so that they may count from 1; say which are missing (--missing) of 0 to {n - 1}"
    for index in gone or ():
        if index in seen:
            return f"{os.path.basename(seen[index])} is said to be missing"
    return None


def _refuse_contradiction(paths: Sequence[str], numbers: Sequence[int | None], n: int, gone: tuple[int, ...]) -> None:
    """Refuse to go by order where names look like indices and say otherwise."""
    known = [number for number in numbers if number is not None and number < n]
    for path, number in zip(paths, numbers, strict=True):
        if number in gone and len(set(known)) == len(paths):
            raise ParameterError(
                f"{os.path.basename(path)} is given, and shard {number} is said to be missing; leave the file out, "
                "give --force to replace it, or --by-order if its number is no index"
            )


def missing_targets(assignment: Assignment, directory: str | None) -> dict[int, str]:
    """Name the files of the missing shards after those that are there.

    Parameters
    ----------
    assignment : Assignment
        By name.
    directory : str, optional
        Where they go; by default where the others are.

    Returns
    -------
    dict of int to str

    Raises
    ------
    ParameterError
        If the names of the others have no common form.
    """
    advice = "name the files of the missing shards with --to"
    if assignment.rule != "name":
        raise ParameterError(f"the files have no numbers to name the missing ones by; {advice}")
    matches = [_NUMBERED.fullmatch(os.path.basename(path)) for path in assignment.shards.values()]
    forms = {(match[1], match[3]) for match in matches if match}
    folders = {os.path.dirname(path) for path in assignment.shards.values()}
    if len(forms) != 1 or not matches:
        raise ParameterError(f"the names of the files differ in more than their number; {advice}")
    if directory is None and len(folders) != 1:
        raise ParameterError(f"the files are in {len(folders)} directories; say where the new ones go with --out")
    before, after = forms.pop()
    digits = {len(match[2]) for match in matches if match}
    padded = any(match and len(match[2]) > 1 and match[2].startswith("0") for match in matches)
    width = digits.pop() if padded and len(digits) == 1 else 1
    folder = folders.pop() if directory is None else directory
    return {index: os.path.join(folder, f"{before}{index:0{width}}{after}") for index in assignment.missing}
