"""What callers hand in as fragments: read, held against the driver and each other, and sorted by index."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Final

from gfcode.compat import header
from gfcode.compat.checksums import matches
from gfcode.compat.ec_errors import error
from gfcode.compat.header import CRC32, HEADER_BYTES, METADATA_BYTES, Header
from gfcode.compat.stripe import Octets, Stripe

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Fragments", "octets_of", "take"]

_word: Final = Struct("<I").unpack_from
#: Parts of a header: all but the index, the checksum of the payload, and its own.
_FROM_SIZE: Final = slice(4, 21)
_FROM_REST: Final = slice(25, METADATA_BYTES + 8)
_AT_CHECKSUM: Final = METADATA_BYTES + 8


@dataclass(slots=True)
class Fragments:
    """Fragments of one encoding.

    Attributes
    ----------
    size : int
        Bytes of each payload.
    length : int
        Bytes of the data.
    whole : dict of int to bytes
        Fragments with their headers, by index.
    excluded : list of str
        What was left out, and why.
    """

    size: int = 0
    length: int = 0
    whole: dict[int, Octets] = field(default_factory=dict)
    excluded: list[str] = field(default_factory=list)


def octets_of(given: "Buffer") -> Octets | None:
    """View a buffer as bytes, without a copy; None for anything else."""
    if type(given) is bytes:
        return given
    try:
        return memoryview(given).cast("B")
    except (TypeError, ValueError):
        return None


def take(stripe: Stripe, fragments: Sequence[Octets], *, checked: bool) -> Fragments:
    """Read the headers of fragments and put the payloads in order.

    The same fragment given twice counts once.

    Parameters
    ----------
    stripe : Stripe
    fragments : sequence of bytes
        All of one length.
    checked : bool
        Whether payloads are held against their checksums, and headers to the driver's version, and what fails is left
        out.

    Raises
    ------
    ECInvalidFragmentMetadata
        For a header that is damaged, fragments that are not of this code, and fragments of different encodings.
    """
    taken = Fragments()
    whole = taken.whole
    heads: Sequence[bytes] = ()
    alike: tuple[object, object] | None = None
    for position, fragment in enumerate(fragments):
        index, known = stripe.n, False
        if alike is not None:
            (index,) = _word(fragment)
            known = index < len(heads) and fragment[:HEADER_BYTES] == heads[index]
            if not known and index < stripe.n and alike == (fragment[_FROM_SIZE], fragment[_FROM_REST]):
                known = matches(_word(fragment, _AT_CHECKSUM)[0], fragment[:METADATA_BYTES])
        if not known:
            found = _read(stripe, fragments, position, taken)
            index = found.idx
            if checked:
                if reason := _fault(stripe, found, memoryview(fragment)[HEADER_BYTES:]):
                    taken.excluded.append(f"the fragment at position {position}, index {index}, {reason}")
                    continue
            elif position == 0 and found.version >= header.CHECKED_FROM:
                # Headers that differ from it by their indices and checksums alone need no second look.
                alike = fragment[_FROM_SIZE], fragment[_FROM_REST]
                if found.checksum_type != CRC32:
                    heads = stripe.headers(found.size, found.data_length, False)
        if whole.setdefault(index, fragment) is not fragment and whole[index][HEADER_BYTES:] != fragment[HEADER_BYTES:]:
            raise _invalid(position, f"has index {index}, and so has another one with a different payload")
    return taken


def _read(stripe: Stripe, fragments: Sequence[Octets], position: int, taken: Fragments) -> Header:
    """Read the header of a fragment and hold it against the code and the first fragment."""
    found = header.read(fragments[position])
    if isinstance(found, str):
        raise _invalid(position, found)
    _hold_to_code(stripe, position, fragments[position], found)
    if position == 0:
        taken.size, taken.length = found.size, found.data_length
    elif (found.size, found.data_length) != (taken.size, taken.length):
        raise _invalid(
            position,
            f"is of {found.data_length} bytes of data in payloads of {found.size}, and fragment 0 of {taken.length} "
            f"in {taken.size}: they are of different encodings",
        )
    return found


def _invalid(position: int, reason: str) -> Exception:
    return error("ECInvalidFragmentMetadata", f"the fragment at position {position} {reason}")


def _hold_to_code(stripe: Stripe, position: int, fragment: Octets, found: Header) -> None:
    """Refuse a fragment that no driver of this code, k and m has written."""
    number = stripe.identity[0]
    if found.code != number:
        raise _invalid(position, f"is of code {found.code} (by PyECLib_EC_Types), and this driver is of {number}")
    if found.idx >= stripe.n:
        raise _invalid(position, f"has index {found.idx}, and here are 0 to {stripe.n - 1}: it has another k or m")
    if found.own_metadata or len(fragment) != HEADER_BYTES + found.size:
        raise _invalid(
            position,
            f"has {len(fragment)} bytes, and its header tells of {HEADER_BYTES + found.size + found.own_metadata}",
        )
    if found.size != stripe.payload_bytes(found.data_length):
        raise _invalid(
            position,
            f"has a payload of {found.size} bytes for {found.data_length} bytes of data, and with k = {stripe.k} it "
            f"would have {stripe.payload_bytes(found.data_length)}: it has another k",
        )


def _fault(stripe: Stripe, found: Header, payload: memoryview) -> str | None:
    """Say why a fragment is not to be trusted."""
    if found.version > header.WRITTEN_VERSION:
        return f"was written by liberasurecode {found.version:#x}, which is newer than {header.WRITTEN_VERSION:#x}"
    if found.code_version != stripe.identity[1]:
        return f"was written by version {found.code_version:#x} of the code, not {stripe.identity[1]:#x}"
    if found.checksum_type == CRC32 and not matches(found.checksum, payload):
        return "has another payload than its checksum says"
    if found.checksum_type != CRC32 and found.mismatch:
        return "is marked as one whose checksum was wrong"
    return None
