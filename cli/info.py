"""`gfcode info`: what a shard file says about itself."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from gfcode.cli.console import Console, human_bytes, human_count, printable
from gfcode.cli.exits import Exit
from gfcode.cli.options import key_option, output_options, parameter_errors, paths_argument
from gfcode.errors import AuthenticationError, ShardFormatError

if TYPE_CHECKING:
    from gfcode.pipeline.shard_info import ShardInfo

__all__ = ["command"]

#: Elements of a row of the parity matrix that are shown.
_ROW_SHOWN = 8


@click.command("info", short_help="Print what shard files say about themselves.")
@paths_argument
@key_option
@output_options
def command(console: Console, paths: tuple[str, ...], key: str | None) -> Exit:
    """Print what shard files say about themselves and their set. Data is not read.

    PATH is a shard file, or a directory, of which every shard file is shown.
    """
    with parameter_errors():
        found, errors = _inspect(paths, key)
    for number, info in enumerate(found):
        if number:
            console.say()
        for label, shown in _lines(info):
            console.say(f"{label:<14} {printable(shown)}")
    value: dict[str, Any] = {"shards": [info.to_json() for info in found]}
    if not errors:
        console.result(value)
        return Exit.FINE
    (path, reason), others = errors[0], len(errors) - 1
    more = f" (and {human_count(others, 'more path')})" if others else ""
    return console.error(f"{path}: {reason}{more}", Exit.FAILED, value | {"errors": dict(errors)})


def _inspect(paths: Sequence[str], key: str | None) -> tuple[list["ShardInfo"], list[tuple[str, str]]]:
    """Read the metadata of all shards; return it, and for each path that gave none the reason."""
    from gfcode.pipeline import inspect_shard

    found: list[ShardInfo] = []
    errors: list[tuple[str, str]] = []
    for path in paths:
        before = len(found) + len(errors)
        is_directory = os.path.isdir(path)
        for file in _files_of(path) if is_directory else [path]:
            try:
                found.append(inspect_shard(file, key=key))
            except ShardFormatError as error:
                if not is_directory or isinstance(error, AuthenticationError):
                    errors.append((file, str(error).removeprefix(f"{file}: ")))
            except OSError as error:
                errors.append((file, error.strerror or str(error)))
        if is_directory and len(found) + len(errors) == before:
            errors.append((path, "no shard file with readable metadata is in this directory"))
    return found, errors


def _files_of(directory: str) -> Iterator[str]:
    """Yield the regular files of a directory, in the order of their names."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            yield path


def _lines(info: "ShardInfo") -> Iterator[tuple[str, str]]:
    """Yield what is to be printed, as key and value."""
    metadata = info.metadata
    kind = "data" if info.index < metadata["k"] else "parity"
    length = f"{info.file_length:,} bytes"
    if info.expected_length is not None and info.expected_length != info.file_length:
        length += f", should be {info.expected_length:,}"
    yield "path", info.path
    yield "shard", f"{info.index} of {metadata['k'] + metadata['m']} ({kind})"
    yield "file length", length
    yield "metadata", f"{info.metadata_length:,} bytes"
    yield "frame", f"{info.frame_length:,} bytes"
    yield "check", info.check
    for key, value in metadata.items():
        yield key.removesuffix("_ns").replace("_", " "), _shown(key, value)


def _shown(key: str, value: Any) -> str:
    """Say a value of the metadata as a person would."""
    if value is None:
        return "unknown, it was a stream" if key == "size" else "none"
    shown = str(value)
    match key:
        case "size":
            shown = f"{value:,} bytes, {human_bytes(value)}"
        case "mode":
            shown = f"{value:04o}"
        case "mtime_ns":
            shown = _moment(value)
        case "polynomial":
            shown = f"{value:#x}"
        case "parity":
            shown = _matrix(value)
    return shown


def _moment(nanoseconds: int) -> str:
    """Say a time as a date, where the calendar has it."""
    seconds, rest = divmod(nanoseconds, 10**9)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{nanoseconds} ns after 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest:09} UTC"


def _matrix(rows: Sequence[Sequence[int]]) -> str:
    """Sum a matrix up: its shape and the start of its last row, which tells families apart."""
    if not rows:
        return "0 rows"
    last = " ".join(map(str, rows[-1][:_ROW_SHOWN])) + (" ..." if len(rows[-1]) > _ROW_SHOWN else "")
    return f"{len(rows)} x {len(rows[0])} matrix, last row {last}"
