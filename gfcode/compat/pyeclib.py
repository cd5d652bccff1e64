"""`pyeclib.ec_iface` upon gfcode: the same interface, and the same bytes in every fragment.

``from gfcode.compat.pyeclib import ECDriver`` in place of ``from pyeclib.ec_iface import ECDriver`` is all that a
program needs; neither PyECLib nor liberasurecode is. Fragments that either of the two has written are read by the
other. Where they differ, which is on wrong input only, is told in ``docs/pyeclib.md``.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from gfcode.compat.ec_errors import (
    ECBackendInitializationError,
    ECBackendInstanceInUse,
    ECBackendInstanceNotAvailable,
    ECBackendNotSupported,
    ECBadFragmentChecksum,
    ECDriverError,
    ECDriverErrorWithPosition,
    ECInsufficientFragments,
    ECInvalidFragmentMetadata,
    ECInvalidParameter,
    ECMethodNotImplemented,
    ECOutOfMemory,
)
from gfcode.compat.ec_types import (
    ALL_EC_TYPES,
    LIBERASURECODE_VERSION,
    PYECLIB_MAJOR,
    PYECLIB_MAX_DATA,
    PYECLIB_MAX_PARITY,
    PYECLIB_MINOR,
    PYECLIB_REV,
    PYECLIB_VERSION,
    PYECLIB_VERSION_STRING,
    VALID_EC_TYPES,
    PyECLib_EC_Types,
    PyECLib_FRAGHDRCHKSUM_Types,
    check_backend_available,
    get_liberasurecode_version,
)
from gfcode.compat.loader import DEFAULT_DRIVER, make_driver, positive

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "ALL_EC_TYPES",
    "LIBERASURECODE_VERSION",
    "PYECLIB_MAJOR",
    "PYECLIB_MAX_DATA",
    "PYECLIB_MAX_PARITY",
    "PYECLIB_MINOR",
    "PYECLIB_REV",
    "PYECLIB_VERSION",
    "VALID_EC_TYPES",
    "ECBackendInitializationError",
    "ECBackendInstanceInUse",
    "ECBackendInstanceNotAvailable",
    "ECBackendNotSupported",
    "ECBadFragmentChecksum",
    "ECDriver",
    "ECDriverError",
    "ECDriverErrorWithPosition",
    "ECInsufficientFragments",
    "ECInvalidFragmentMetadata",
    "ECInvalidParameter",
    "ECMethodNotImplemented",
    "ECOutOfMemory",
    "PyECLib_EC_Types",
    "PyECLib_FRAGHDRCHKSUM_Types",
    "check_backend_available",
    "get_liberasurecode_version",
]

__version__: Final = PYECLIB_VERSION_STRING


class ECDriver:
    """Encodes, decodes and reconstructs erasure-coded data. Safe to use from many threads.

    Parameters
    ----------
    ec_type : str
        One of `VALID_EC_TYPES`, or "flat_xor_hd" for "flat_xor_hd_3".
    library_import_str : str
        A driver class of one's own, by module and name, that does the work; PyECLib's names of its own ones mean those
        of gfcode. May stand in place of `ec_type`.
    k, m : int
        Data and parity fragments.
    chksum_type : {"none", "inline_crc32"}
        Checksum of payloads in headers.
    validate : bool
        Taken and not needed: parameters are always checked.
    local_parity : int
        Local parities, of m, of `isa_l_rs_lrc`.

    Attributes
    ----------
    k, m, hd, local_parity : int
    ec_type : PyECLib_EC_Types or None
    chksum_type : PyECLib_FRAGHDRCHKSUM_Types
    validate : bool
    library_import_str : str
    ec_lib_reference : object
        The driver that does the work.

    Raises
    ------
    ECDriverError
        For k or m that is no positive integer, an unknown `chksum_type`, or neither `ec_type` nor a driver class.
    ECBackendNotSupported
        For an unknown `ec_type`.
    ECBackendInstanceNotAvailable
        For `shss` and `libphazr`.
    ECInvalidParameter
        For a k and m that the `ec_type` does not have.
    """

    def __init__(
        self,
        *,
        ec_type: str | None = None,
        library_import_str: str = DEFAULT_DRIVER,
        k: int,
        m: int,
        chksum_type: str = "none",
        validate: bool = False,
        local_parity: int = 0,
    ) -> None:
        if ec_type is None and library_import_str == DEFAULT_DRIVER:
            raise ECDriverError("Invalid Argument: either ec_type or library_import_str must be provided")
        self.k = positive(k, "data fragments (k)")
        self.m = positive(m, "parity fragments (m)")
        self.local_parity = int(local_parity)
        self.hd = self.m
        self.ec_type: PyECLib_EC_Types | None = None
        if ec_type:
            name = ec_type
            if ec_type in {"flat_xor_hd", "flat_xor_hd_3", "flat_xor_hd_4"}:
                name, self.hd = "flat_xor_hd", 4 if ec_type == "flat_xor_hd_4" else 3
            if name not in PyECLib_EC_Types.__members__:
                raise ECBackendNotSupported(f"{ec_type} is not a valid EC type for PyECLib!")
            self.ec_type = PyECLib_EC_Types[name]
        if chksum_type not in PyECLib_FRAGHDRCHKSUM_Types.__members__:
            raise ECDriverError(f"{chksum_type} is not a valid checksum type for PyECLib!")
        self.chksum_type = PyECLib_FRAGHDRCHKSUM_Types[chksum_type]
        self.validate = validate
        self.library_import_str = library_import_str
        self.ec_lib_reference: Any = make_driver(
            library_import_str,
            k=self.k,
            m=self.m,
            hd=self.hd,
            ec_type=self.ec_type,
            chksum_type=self.chksum_type,
            validate=int(self.validate),
            local_parity=self.local_parity,
        )

    def __repr__(self) -> str:
        name = "None" if self.ec_type is None else self.ec_type.name
        if self.ec_type is PyECLib_EC_Types.flat_xor_hd:
            name = f"{name}_{self.hd}"
        return f"{type(self).__name__}(ec_type={name!r}, k={self.k}, m={self.m})"

    def close(self) -> None:
        """Give the code up; every other method then raises ECBackendInstanceNotAvailable."""
        self.ec_lib_reference.close()

    def encode(self, data_bytes: "Buffer") -> list[bytes]:
        """Make the fragments of data of any length.

        Parameters
        ----------
        data_bytes : bytes or contiguous buffer

        Returns
        -------
        list of bytes
            k data fragments, then m parity fragments, each with its header.

        Raises
        ------
        ECInvalidParameter
            For what is no buffer.
        """
        found: list[bytes] = self.ec_lib_reference.encode(data_bytes)
        return found

    def decode(
        self,
        fragment_payloads: "Iterable[Buffer]",
        ranges: Sequence[tuple[int, int]] | None = None,
        force_metadata_checks: bool = False,
    ) -> Any:
        """Give the data back.

        Parameters
        ----------
        fragment_payloads : iterable of bytes or contiguous buffers
            At least k fragments, in any order.
        ranges : sequence of (int, int), optional
            First and last byte of each range of the data that is wanted.
        force_metadata_checks : bool
            Hold payloads against their checksums and headers to the driver's version; leave out what fails.

        Returns
        -------
        bytes or list of bytes
            The data; or with `ranges` the bytes of each.

        Raises
        ------
        ECInsufficientFragments
            For fewer than k fragments, or ones that do not determine the data.
        ECInvalidFragmentMetadata
            For a damaged header, and for fragments of another code or of different encodings.
        ECInvalidParameter
            For a range that is none or reaches beyond the data.
        ECDriverErrorWithPosition
            For fragments that differ in length.
        """
        return self.ec_lib_reference.decode(fragment_payloads, ranges, force_metadata_checks)

    def reconstruct(
        self, available_fragment_payloads: "Iterable[Buffer]", missing_fragment_indexes: Iterable[int]
    ) -> list[bytes]:
        """Make fragments from others.

        Parameters
        ----------
        available_fragment_payloads : iterable of bytes or contiguous buffers
        missing_fragment_indexes : iterable of int
            A list is sorted in place, as PyECLib does it.

        Returns
        -------
        list of bytes
            In ascending order of their indexes; with headers as `encode` would write.

        Raises
        ------
        ECInsufficientFragments
            If the fragments do not determine them.
        ECInvalidFragmentMetadata, ECInvalidParameter, ECDriverErrorWithPosition
            As in `decode`.
        """
        found: list[bytes] = self.ec_lib_reference.reconstruct(available_fragment_payloads, missing_fragment_indexes)
        return found

    def fragments_needed(
        self, reconstruction_indexes: Iterable[int], exclude_indexes: Iterable[int] | None = None
    ) -> list[int]:
        """Tell which fragments to read for a reconstruction.

        Parameters
        ----------
        reconstruction_indexes : iterable of int
        exclude_indexes : iterable of int, optional
            Fragments not to read either.

        Returns
        -------
        list of int
            The first k that determine everything; for flat XOR codes the few that make what is asked for.

        Raises
        ------
        ECInsufficientFragments
            If what is left does not determine them.
        ECInvalidParameter
            For an index that is none.
        """
        excluded = [] if exclude_indexes is None else exclude_indexes
        found: list[int] = self.ec_lib_reference.fragments_needed(reconstruction_indexes, excluded)
        return found

    def min_parity_fragments_needed(self) -> int:
        """Return how many parity fragments, at least, a reconstruction reads: 1."""
        found: int = self.ec_lib_reference.min_parity_fragments_needed()
        return found

    def get_metadata(self, fragment: "Buffer", formatted: int = 0) -> Any:
        """Return the metadata of a fragment, whose payload is held against its checksum.

        Parameters
        ----------
        fragment : bytes or contiguous buffer
        formatted : int
            Whether to spell it out.

        Returns
        -------
        bytes or dict
            59 bytes for `verify_stripe_metadata`; or with `formatted` a dictionary of "index", "size",
            "orig_data_size", "chksum_type", "chksum", "chksum_mismatch", "backend_id" and "backend_version".

        Raises
        ------
        ECInvalidFragmentMetadata
            For a damaged header.
        """
        return self.ec_lib_reference.get_metadata(fragment, formatted)

    def verify_stripe_metadata(self, fragment_metadata_list: Collection[bytes]) -> dict[str, Any]:
        """Tell which fragments of a whole stripe have wrong checksums, by their metadata.

        Parameters
        ----------
        fragment_metadata_list : list of bytes
            `get_metadata` of all k + m fragments.

        Returns
        -------
        dict
            "status" 0; or "status" −205, "reason", and "bad_fragments" with their indexes.

        Raises
        ------
        ECInvalidFragmentMetadata
            For metadata of another code.
        ECInvalidParameter
            If they are not k + m.
        """
        found: dict[str, Any] = self.ec_lib_reference.verify_stripe_metadata(fragment_metadata_list)
        return found

    def get_segment_info(self, data_len: int, segment_size: int) -> dict[str, int]:
        """Tell how data is cut into segments for `encode`, and how large fragments become.

        A last segment that is too small for the code is added to the one before.

        Returns
        -------
        dict
            "segment_size", "last_segment_size", "fragment_size", "last_fragment_size", "num_segments".

        Raises
        ------
        ECInvalidParameter
            For sizes that are none.
        """
        found: dict[str, int] = self.ec_lib_reference.get_segment_info(data_len, segment_size)
        return found

    def get_segment_info_byterange(
        self, ranges: Iterable[tuple[int, int]], data_len: int, segment_size: int
    ) -> dict[tuple[int, int], dict[int, tuple[int, int]]]:
        """Tell where byte ranges of segmented data lie.

        Parameters
        ----------
        ranges : iterable of (int, int)
            First and last byte of each.
        data_len, segment_size : int
            As in `get_segment_info`.

        Returns
        -------
        dict
            For each range the segments it touches, with the first and last byte in each.
        """
        size = self.get_segment_info(data_len, segment_size)["segment_size"]
        found = {}
        for begin, end in ranges:
            first, last = begin // size, end // size
            found[begin, end] = {
                segment: (
                    begin % size if segment == first else 0,
                    end % size if segment == last else size - 1,
                )
                for segment in range(first, last + 1)
            }
        return found
