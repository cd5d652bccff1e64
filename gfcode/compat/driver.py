"""What `pyeclib.core.ECPyECLibDriver` does, upon gfcode's engines."""

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gfcode.compat import header
from gfcode.compat.checksums import matches
from gfcode.compat.codes import make_code
from gfcode.compat.ec_errors import ECDriverErrorWithPosition, error
from gfcode.compat.ec_types import PyECLib_EC_Types, PyECLib_FRAGHDRCHKSUM_Types
from gfcode.compat.header import CRC32, HEADER_BYTES, METADATA_BYTES, Header
from gfcode.compat.intake import Fragments, octets_of, take
from gfcode.compat.needed import needed
from gfcode.compat.ranges import Range, ranges_of
from gfcode.compat.stripe import Octets, Stripe
from gfcode.errors import ParameterError, UnrecoverableError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["ECNullDriver", "ECPyECLibDriver"]

_T = TypeVar("_T")

_BAD_CHECKSUM: Final = -205


class ECPyECLibDriver:
    """Encodes, decodes and reconstructs fragments of one code.

    Parameters
    ----------
    k, m : int
    hd : int
        Hamming distance of flat XOR codes.
    ec_type : PyECLib_EC_Types
    chksum_type : PyECLib_FRAGHDRCHKSUM_Types
    validate : bool
        Taken and not needed: parameters are always checked.
    local_parity : int
        Local parities, of m, of `isa_l_rs_lrc`.

    Raises
    ------
    ECBackendInstanceNotAvailable
        For an `ec_type` that gfcode does not have.
    ECInvalidParameter
        For a k and m that the `ec_type` does not have.
    """

    def __init__(
        self,
        k: int,
        m: int,
        hd: int,
        ec_type: PyECLib_EC_Types,
        chksum_type: PyECLib_FRAGHDRCHKSUM_Types = PyECLib_FRAGHDRCHKSUM_Types.none,
        validate: bool = False,
        local_parity: int = 0,
    ) -> None:
        del validate
        self.k, self.m, self.hd = k, m, hd
        self.ec_type = ec_type
        self.chksum_type = chksum_type
        self.local_parity = local_parity
        try:
            code = make_code(ec_type, k, m, distance=hd, local_parity=local_parity)
        except KeyError:
            raise error("ECBackendInstanceNotAvailable", f"gfcode has no {ec_type.name}") from None
        except ParameterError as refusal:
            raise error("ECInvalidParameter", f"k = {k}, m = {m}: {refusal}") from refusal
        self._opened: Stripe | None = Stripe(code, ec_type.value, chksum_type.value)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(k={self.k!r}, m={self.m!r}, hd={self.hd!r}, ec_type={self.ec_type!r}, "
            f"chksum_type={self.chksum_type!r})"
        )

    def close(self) -> None:
        """Give the code up; every other method then raises ECBackendInstanceNotAvailable."""
        self._opened = None

    def _stripe(self) -> Stripe:
        if self._opened is None:
            raise error("ECBackendInstanceNotAvailable", "erasure coding handle is closed")
        return self._opened

    def encode(self, data_bytes: "Buffer") -> list[bytes]:
        """See `ECDriver.encode`."""
        stripe = self._stripe()
        data = octets_of(data_bytes)
        if data is None:
            raise error(
                "ECInvalidParameter", f"data is a {type(data_bytes).__name__}, not bytes or a contiguous buffer"
            )
        if stripe.payload_bytes(len(data)) >= 1 << 32:
            raise error(
                "ECInvalidParameter", f"{len(data)} bytes make payloads of more than the 2^32 − 1 bytes allowed"
            )
        return stripe.encode(data)

    def decode(
        self,
        fragment_payloads: "Iterable[Buffer]",
        ranges: Sequence[tuple[int, int]] | None = None,
        force_metadata_checks: bool = False,
    ) -> bytes | list[bytes]:
        """See `ECDriver.decode`."""
        fragments = self._same_length("decode", fragment_payloads)
        if len(fragments) < self.k:
            raise error("ECInsufficientFragments", "Not enough fragments given in ECPyECLibDriver.decode")
        stripe = self._stripe()
        wanted = ranges_of(ranges) if ranges is not None else []
        taken = take(stripe, fragments, checked=bool(force_metadata_checks))
        spans = _spans(wanted, taken) if wanted else [Range(0, taken.length, taken.size)]
        parts = [span.cut(self._blocks(taken, span)) for span in spans]
        return parts if wanted else parts[0]

    def _blocks(self, taken: Fragments, span: Range) -> list[memoryview]:
        """Return the payloads of the data fragments that a span touches, computing the lost ones."""
        touched, whole = span.touched(), taken.whole
        lost = [index for index in touched if index not in whole]
        if not lost:
            return [memoryview(whole[index])[HEADER_BYTES:] for index in touched]
        stripe = self._stripe()
        made = stripe.rebuild(whole, self._attempt(taken, lambda: stripe.plan(whole, lost)), taken.size)
        return [made[index] if index in made else memoryview(whole[index])[HEADER_BYTES:] for index in touched]

    def _attempt(self, taken: Fragments, make: Callable[[], _T]) -> _T:
        """Make a plan, or say with what was left out why there is none."""
        try:
            return make()
        except UnrecoverableError as failure:
            excluded = f" (left out: {'; '.join(taken.excluded)})" if taken.excluded else ""
            raise error("ECInsufficientFragments", f"{_in_fragments(failure)}{excluded}") from failure

    def reconstruct(self, fragment_payloads: "Iterable[Buffer]", indexes_to_reconstruct: Iterable[int]) -> list[bytes]:
        """See `ECDriver.reconstruct`."""
        fragments = self._same_length("reconstruct", fragment_payloads)
        if isinstance(indexes_to_reconstruct, list):
            indexes_to_reconstruct.sort()  # in place, as PyECLib does: results are in the order of the caller's list
        wanted = self._indices(sorted(indexes_to_reconstruct))
        stripe = self._stripe()
        taken = take(stripe, fragments, checked=False)
        absent = [index for index in dict.fromkeys(wanted) if index not in taken.whole]
        plan = self._attempt(taken, lambda: stripe.plan(taken.whole, absent))
        made = stripe.rebuild_fragments(taken.whole, plan, taken.size, taken.length)
        return [made[index] if index in made else bytes(taken.whole[index]) for index in wanted]

    def fragments_needed(self, reconstruct_indexes: Iterable[int], exclude_indexes: Iterable[int]) -> list[int]:
        """See `ECDriver.fragments_needed`."""
        stripe = self._stripe()
        wanted = self._indices(reconstruct_indexes)
        gone = {*wanted, *self._indices(exclude_indexes)}
        left = [index for index in range(stripe.n) if index not in gone]
        try:
            return needed(stripe, wanted, left)
        except UnrecoverableError as failure:
            raise error("ECInsufficientFragments", _in_fragments(failure)) from failure

    def min_parity_fragments_needed(self) -> int:
        """Return 1."""
        return 1

    def get_metadata(self, fragment: "Buffer", formatted: int = 0) -> bytes | dict[str, Any]:
        """See `ECDriver.get_metadata`."""
        self._stripe()
        octets = octets_of(fragment)
        if octets is None:
            raise error("ECInvalidParameter", f"the fragment is a {type(fragment).__name__}, not bytes")
        found = header.read(octets, foreign=True)
        if isinstance(found, str):
            raise error("ECInvalidFragmentMetadata", f"the fragment {found}")
        if found.checksum_type == CRC32:
            found = found._replace(mismatch=int(payload_mismatch(octets, found)))
        metadata = header.metadata_of(found)
        return header.as_dict(metadata) if formatted else metadata

    def verify_stripe_metadata(self, fragment_metadata_list: Collection[bytes]) -> dict[str, Any]:
        """See `ECDriver.verify_stripe_metadata`."""
        stripe = self._stripe()
        if len(fragment_metadata_list) != stripe.n:
            raise error(
                "ECInvalidParameter",
                f"metadata of {len(fragment_metadata_list)} fragments are given, not of {stripe.n}",
            )
        bad = []
        for position, metadata in enumerate(fragment_metadata_list):
            if len(metadata) < METADATA_BYTES:
                raise error("ECInvalidFragmentMetadata", f"metadata {position} has {len(metadata)} bytes, not 59")
            index, *_, mismatch, code, version = header.METADATA.unpack_from(metadata)
            if mismatch:
                bad.append(index)
            if not bad and (index >= stripe.n or (code, version) != stripe.identity):
                raise error(
                    "ECInvalidFragmentMetadata",
                    f"metadata {position} is of fragment {index} of code {code} version {version:#x}; here are "
                    f"fragments 0 to {stripe.n - 1} of code {stripe.identity[0]} version {stripe.identity[1]:#x}",
                )
        return {"status": _BAD_CHECKSUM, "reason": "Bad checksum", "bad_fragments": bad} if bad else {"status": 0}

    def get_segment_info(self, data_len: int, segment_size: int) -> dict[str, int]:
        """See `ECDriver.get_segment_info`."""
        stripe = self._stripe()
        if data_len < 0 or segment_size < 1:
            raise error("ECInvalidParameter", f"there are no segments of {segment_size} bytes of {data_len} bytes")
        least = stripe.k * stripe.code.unit
        count = -(-data_len // segment_size)
        if count == 2 and data_len < segment_size + least:
            count = 1
        if count == 1:
            segment_size = last = data_len
        else:
            last = data_len - segment_size * (count - 1)
            if last < least:
                count -= 1
                last += segment_size
        return {
            "segment_size": segment_size,
            "last_segment_size": last,
            "fragment_size": stripe.payload_bytes(segment_size) + HEADER_BYTES,
            "last_fragment_size": stripe.payload_bytes(last) + HEADER_BYTES,
            "num_segments": count,
        }

    def _same_length(self, method: str, payloads: "Iterable[Buffer]") -> list[Octets]:
        """Hold fragments to one length, with PyECLib's messages and positions: 0 for the first, 2 for the second."""
        fragments: list[Octets] = []
        for position, given in enumerate(payloads):
            octets = given if type(given) is bytes else octets_of(given)
            if octets is None:
                raise error("ECInvalidParameter", f"fragment {position} is a {type(given).__name__}, not bytes")
            fragments.append(octets)
        if not fragments:
            raise error("ECDriverError", f"No fragments payload in ECPyECLibDriver.{method}")
        message = f"Invalid fragment payload in ECPyECLibDriver.{method}"
        if not len(fragments[0]):
            raise ECDriverErrorWithPosition(message, 0)
        lengths = list(map(len, fragments))
        if lengths.count(lengths[0]) != len(lengths):
            other = next(position for position, length in enumerate(lengths) if length != lengths[0])
            raise ECDriverErrorWithPosition(message, other + 1)
        return fragments

    def _indices(self, given: Iterable[int]) -> list[int]:
        try:
            indices = [as_index(value) for value in given]
        except TypeError as failure:
            raise error("ECInvalidParameter", f"fragment indexes are integers: {failure}") from failure
        n = self.k + self.m
        for value in indices:
            if not 0 <= value < n:
                raise error("ECInvalidParameter", f"there is no fragment {value} here: indexes are 0 to {n - 1}")
        return indices


def payload_mismatch(fragment: Octets, found: Header) -> bool:
    """Tell whether a payload is not what its checksum says.

    Raises
    ------
    ECInvalidFragmentMetadata
        If the payload is cut short.
    """
    end = HEADER_BYTES + found.size
    if len(fragment) < end:
        raise error(
            "ECInvalidFragmentMetadata", f"the fragment has {len(fragment)} bytes, and its header tells of {end}"
        )
    return not matches(found.checksum, memoryview(fragment)[HEADER_BYTES:end])


def _in_fragments(failure: UnrecoverableError) -> str:
    """Tell of fragments what the planner tells of shards."""
    return str(failure).replace("shard", "fragment")


def _spans(wanted: Sequence[tuple[int, int]], taken: Fragments) -> list[Range]:
    spans = []
    for begin, end in wanted:
        if end >= taken.length:
            raise error("ECInvalidParameter", f"range ({begin}, {end}) reaches beyond the {taken.length} bytes of data")
        spans.append(Range(begin, end + 1, taken.size))
    return spans


class ECNullDriver:
    """Does nothing, and says so by returning None."""

    def __init__(self, k: int, m: int, hd: int, **ignored: object) -> None:
        del ignored
        self.k, self.m, self.hd = k, m, hd

    def _nothing(self, *arguments: object, **keywords: object) -> None:
        """Return None."""

    close = encode = decode = reconstruct = fragments_needed = get_metadata = _nothing
    min_parity_fragments_needed = verify_stripe_metadata = get_segment_info = _nothing
