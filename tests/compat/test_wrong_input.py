"""What the driver says of fragments that do not belong together, or to it; PyECLib returns wrong bytes for most."""

import random
import struct
import zlib
from typing import Any

import pytest

from gfcode.compat import header
from gfcode.compat.pyeclib import (
    VALID_EC_TYPES,
    ECBackendInstanceNotAvailable,
    ECBackendNotSupported,
    ECDriver,
    ECDriverError,
    ECDriverErrorWithPosition,
    ECInsufficientFragments,
    ECInvalidFragmentMetadata,
    ECInvalidParameter,
)
from gfcode.errors import GFCodeError

DATA = random.Random(5).randbytes(2000)


def driver(ec_type: str = "isa_l_rs_cauchy", k: int = 4, m: int = 2, chksum_type: str = "none") -> ECDriver:
    return ECDriver(ec_type=ec_type, k=k, m=m, chksum_type=chksum_type)


def with_header(fragment: bytes, offset: int, code: str, value: int) -> bytes:
    """Change a field of a header, checksum included."""
    changed = bytearray(fragment)
    struct.pack_into(code, changed, offset, value)
    struct.pack_into("<I", changed, 67, zlib.crc32(changed[:59]))
    return bytes(changed)


def test_duplicates_count_once() -> None:
    six = driver()
    f = six.encode(DATA)
    assert six.decode([f[0], f[0], f[1], f[2], f[5]]) == DATA
    assert six.decode([f[0], f[1], f[4], f[4], f[5]]) == DATA
    for twice in ([f[0], f[0], f[1], f[2]], [f[0]] * 4, [f[4], f[4], f[5], f[5], f[0]]):
        with pytest.raises(ECInsufficientFragments, match=r"any k = 4 fragments are needed and [123] are there"):
            six.decode(twice)
    assert six.reconstruct([f[0], f[0], f[1], f[2], f[5]], [3, 4]) == f[3:5]


def test_the_same_index_with_two_contents_is_an_error() -> None:
    six = driver()
    f, g = six.encode(DATA), six.encode(DATA[::-1])
    with pytest.raises(ECInvalidFragmentMetadata, match=r"position 2 has index 0, and so has another one"):
        six.decode([f[0], f[1], g[0], f[2], f[3]])


def test_one_payload_under_two_kinds_of_header_is_one_fragment() -> None:
    plain, summed = driver(), driver(chksum_type="inline_crc32")
    f, g = plain.encode(DATA), summed.encode(DATA)
    assert plain.decode([f[0], g[0], g[1], f[2], g[5]]) == DATA


@pytest.mark.parametrize(
    ("other", "length", "message"),
    [
        (driver(), 1999, r"is of 1999 bytes of data in payloads of 500, and fragment 0 of 2000 in 500"),
        (driver("isa_l_rs_vand_inv"), 2000, r"is of code 9 \(by PyECLib_EC_Types\), and this driver is of 7"),
        (driver(k=2), 1000, r"a payload of 500 bytes for 1000 bytes of data, and with k = 4 it would have 250"),
    ],
)
def test_mixed_encodings(other: ECDriver, length: int, message: str) -> None:
    six = driver()
    f, stranger = six.encode(DATA), other.encode(DATA[:length])[1]
    assert len(stranger) == len(f[0])
    for fragments in ([f[0], stranger, f[2], f[4]], [f[0], f[2], f[3], stranger]):
        with pytest.raises(ECInvalidFragmentMetadata, match=message):
            six.decode(fragments)
        with pytest.raises(ECInvalidFragmentMetadata, match=message):
            six.reconstruct(fragments, [5])


def test_index_beyond_the_code() -> None:
    six = driver()
    f, wide = six.encode(DATA), driver(m=8).encode(DATA)
    with pytest.raises(ECInvalidFragmentMetadata, match=r"position 3 has index 9, and here are 0 to 5"):
        six.decode([f[0], f[1], f[2], wide[9]])


def test_truncated_and_foreign_fragments() -> None:
    six = driver()
    f = six.encode(DATA)
    with pytest.raises(ECInvalidFragmentMetadata, match=r"position 0 has 100 bytes, and its header tells of 580"):
        six.decode([fragment[:100] for fragment in f])
    with pytest.raises(ECInvalidFragmentMetadata, match=r"position 0 has 3 bytes, and the header alone takes 80"):
        six.decode([b"abc"] * 4)
    with pytest.raises(
        ECInvalidFragmentMetadata, match=r"does not have liberasurecode's magic, 0x0b0c5ecc, at byte 59"
    ):
        six.decode([b"0" * len(f[0])] * 4)
    flipped = f[1][:4] + bytes([f[1][4] ^ 1]) + f[1][5:]
    with pytest.raises(ECInvalidFragmentMetadata, match="position 1 has a damaged header: its checksum is wrong"):
        six.decode([f[0], flipped, f[2], f[3]])
    with pytest.raises(ECInvalidFragmentMetadata, match="the fragment has a damaged header: its checksum is wrong"):
        six.get_metadata(flipped)
    with pytest.raises(ECInvalidFragmentMetadata, match="580"):
        driver(chksum_type="inline_crc32").get_metadata(driver(chksum_type="inline_crc32").encode(DATA)[0][:200])


def test_forced_checks_leave_out_what_is_damaged() -> None:
    six = driver(chksum_type="inline_crc32")
    f = six.encode(DATA)
    broken = f[1][:100] + bytes([f[1][100] ^ 1]) + f[1][101:]
    # Enough others: decoded without it, where it is data and all data are there, too.
    for rest in ([f[0], f[2], f[3], f[4]], [f[0], f[2], f[4], f[5]], [f[0], f[2], f[3], f[4], f[5]]):
        assert six.decode([broken, *rest], force_metadata_checks=True) == DATA
    with pytest.raises(
        ECInsufficientFragments, match=r"left out: the fragment at position 1, index 1, has another payload"
    ):
        six.decode([f[0], broken, f[2], f[3]], force_metadata_checks=True)
    # Unasked, payloads are not summed, as with PyECLib.
    assert six.decode([f[0], broken, f[2], f[3]]) != DATA


@pytest.mark.parametrize(
    ("offset", "code", "value", "message"),
    [
        (63, "<I", 0x10900, "written by liberasurecode 0x10900, which is newer than 0x10800"),
        (55, "<I", 5, "written by version 0x5 of the code, not 0x20e01"),
        (53, "<B", 1, "marked as one whose checksum was wrong"),
    ],
)
def test_forced_checks_of_headers(offset: int, code: str, value: int, message: str) -> None:
    six = driver()
    f = six.encode(DATA)
    odd = with_header(f[1], offset, code, value)
    assert six.decode([f[0], odd, f[2], f[3]]) == DATA
    assert six.decode([f[0], odd, f[2], f[3], f[4]], force_metadata_checks=True) == DATA
    with pytest.raises(ECInsufficientFragments, match=message):
        six.decode([f[0], odd, f[2], f[3]], force_metadata_checks=True)


def test_headers_before_version_1_2_have_no_checksum() -> None:
    six = driver()
    f = six.encode(DATA)
    old = f[1][:63] + struct.pack("<II", 0x10100, 0) + f[1][71:]
    assert six.decode([f[0], old, f[2], f[3]], force_metadata_checks=True) == DATA
    assert six.get_metadata(old, 1)["index"] == 1


def big_endian(fragment: bytes) -> bytes:
    """Return a fragment as liberasurecode writes it on a big-endian machine."""
    fields = header.read(fragment)
    assert not isinstance(fields, str)
    packed = struct.pack(">IIIQBI28sBBIIII9x", *fields)
    checksum = zlib.crc32(packed[:59])
    return packed[:67] + checksum.to_bytes(4, "big") + packed[71:] + fragment[80:]


def test_metadata_of_big_endian_fragments_is_read_and_nothing_decoded() -> None:
    ours = driver("isa_l_rs_vand", 4, 2, "inline_crc32")
    fragments = ours.encode(bytes(range(250)) * 4)
    foreign = [big_endian(fragment) for fragment in fragments]
    assert [ours.get_metadata(fragment) for fragment in foreign] == [ours.get_metadata(item) for item in fragments]
    assert ours.verify_stripe_metadata([ours.get_metadata(fragment) for fragment in foreign]) == {"status": 0}
    damaged = bytearray(foreign[2])
    damaged[100] ^= 1
    assert ours.get_metadata(bytes(damaged), 1)["chksum_mismatch"] == 1
    damaged[5] ^= 1
    with pytest.raises(ECInvalidFragmentMetadata, match="its checksum is wrong"):
        ours.get_metadata(bytes(damaged))
    for call in (lambda: ours.decode(foreign[:4]), lambda: ours.reconstruct(foreign[1:], [0])):
        with pytest.raises(ECInvalidFragmentMetadata, match="big-endian header"):
            call()


def test_a_big_endian_header_in_bytes() -> None:
    """PyECLib 1.8.0 reads the same of it, but for byte 20: it loses the type of the checksum."""
    written = bytes.fromhex(
        "00000001000000fa0000000000000000000003e802ced2015900000000000000000000000000000000000000000000000000000000000400"
        "020d000b0c5ecc0001080038fdcab9000000000000000000"
    )
    found = header.read(written + bytes(250), foreign=True)
    assert not isinstance(found, str)
    assert header.metadata_of(found).hex() == (
        "01000000fa00000000000000e803000000000000025901d2ce00000000000000000000000000000000000000000000000000000000"
        "0004000d0200"
    )


def test_verify_stripe_metadata_refuses() -> None:
    six = driver()
    metadata = [six.get_metadata(fragment) for fragment in six.encode(DATA)]
    with pytest.raises(ECInvalidParameter, match="metadata of 5 fragments are given, not of 6"):
        six.verify_stripe_metadata(metadata[1:])
    with pytest.raises(ECInvalidFragmentMetadata, match="metadata 0 has 0 bytes, not 59"):
        six.verify_stripe_metadata([b""] * 6)
    with pytest.raises(ECInvalidFragmentMetadata, match=r"metadata 0 is of fragment 0 of code 7 .* of code 9"):
        driver("isa_l_rs_vand_inv").verify_stripe_metadata(metadata)


@pytest.mark.parametrize("ranges", [[(0, 2000)], [(-1, 3)], [(5, 3)], [(0, 1, 2)], [("a", 2)], [3]])
def test_ranges_that_are_none(ranges: Any) -> None:
    six = driver()
    with pytest.raises(ECInvalidParameter, match="range"):
        six.decode(six.encode(DATA), ranges=ranges)


def test_ranges_need_only_the_blocks_they_touch() -> None:
    six = driver("flat_xor_hd_3", 5, 5)
    f = six.encode(DATA)
    # Fragment 0 cannot be had from these five; the others are there.
    left = [1, 2, 3, 4, 6]
    with pytest.raises(ECInsufficientFragments, match="does not determine fragment 0"):
        six.decode([f[i] for i in left])
    assert six.decode([f[i] for i in left], ranges=[(400, 1999), (700, 650 + 49)]) == [DATA[400:], b""]


@pytest.mark.parametrize("index", [6, -1, "0", None, 1.0])
def test_indexes_that_are_none(index: Any) -> None:
    six = driver()
    f = six.encode(DATA)
    for call in (lambda: six.reconstruct(f[1:], [index]), lambda: six.fragments_needed([index])):
        with pytest.raises((ECInvalidParameter, TypeError)):
            call()
    with pytest.raises(ECInvalidParameter, match="index"):
        six.fragments_needed([0], [index])


@pytest.mark.parametrize("checksum", ["none", "inline_crc32"])
def test_reconstruct_returns_what_is_there(checksum: str) -> None:
    six = driver(chksum_type=checksum)
    f = six.encode(DATA)
    wanted = [3, 0, 5, 0]
    assert six.reconstruct([f[0], f[1], f[2], f[4]], wanted) == [f[0], f[0], f[3], f[5]]
    assert wanted == [0, 0, 3, 5]
    assert six.reconstruct(iter(f[2:]), (1, 0)) == f[:2]
    assert six.reconstruct(f[2:], []) == []
    assert six.reconstruct(f[:4], [2, 1]) == f[1:3]


def test_buffers() -> None:
    six = driver()
    f = six.encode(DATA)
    assert six.encode(bytearray(DATA)) == f
    assert six.encode(memoryview(DATA)) == f
    assert six.decode([bytearray(fragment) for fragment in f[1:]]) == DATA
    assert six.decode([memoryview(b"x" + fragment)[1:] for fragment in f[2:]]) == DATA
    assert six.get_metadata(bytearray(f[0])) == six.get_metadata(f[0])
    for wrong in ("text", 3, None, {}, [], object()):
        with pytest.raises(ECInvalidParameter):
            six.encode(wrong)  # type: ignore[arg-type] # on purpose
        with pytest.raises(ECInvalidParameter):
            six.get_metadata(wrong)  # type: ignore[arg-type] # on purpose
    with pytest.raises(ECInvalidParameter):
        six.decode([*f[:3], "text"])  # type: ignore[list-item] # on purpose
    with pytest.raises(ECInvalidParameter):
        six.encode(memoryview(DATA)[::2])


def test_lengths() -> None:
    six = driver()
    f = six.encode(DATA)
    with pytest.raises(ECDriverError, match=r"^No fragments payload in ECPyECLibDriver\.decode$"):
        six.decode([])
    with pytest.raises(ECDriverErrorWithPosition, match=r"Invalid fragment payload .* \(position 0\)") as raised:
        six.decode([b"", b"", b"", b""])
    assert raised.value.position == 0
    with pytest.raises(ECDriverErrorWithPosition) as raised:
        six.reconstruct([f[0], f[1][:-1], f[2], f[3]], [5])
    assert raised.value.position == 2
    with pytest.raises(ECInsufficientFragments, match="Not enough fragments given"):
        six.decode(f[:3])
    with pytest.raises(ECInsufficientFragments, match=r"any k = 4 fragments are needed and 3 are there"):
        six.reconstruct(f[:3], [3])
    with pytest.raises(ECInsufficientFragments):
        six.fragments_needed([0, 1, 2])
    for sizes in ((-1, 10), (10, 0), (10, -3)):
        with pytest.raises(ECInvalidParameter, match="no segments"):
            six.get_segment_info(*sizes)


def test_closed() -> None:
    six = driver()
    f = six.encode(DATA)
    six.close()
    for call in (
        lambda: six.encode(DATA), lambda: six.decode(f), lambda: six.reconstruct(f[1:], [0]),
        lambda: six.fragments_needed([0]), lambda: six.get_metadata(f[0]), lambda: six.get_segment_info(10, 10),
    ):  # fmt: skip
        with pytest.raises(ECBackendInstanceNotAvailable, match=r"^erasure coding handle is closed$"):
            call()


def test_constructor() -> None:
    with pytest.raises(ECDriverError, match="either ec_type or library_import_str"):
        ECDriver(k=4, m=2)
    with pytest.raises(ECBackendNotSupported, match="nonsense is not a valid EC type"):
        driver("nonsense")
    with pytest.raises(ECDriverError, match="md5 is not a valid checksum type"):
        driver(chksum_type="md5")
    for absent in ("shss", "libphazr"):
        with pytest.raises(ECBackendInstanceNotAvailable, match=f"gfcode has no {absent}"):
            driver(absent)
        assert absent not in VALID_EC_TYPES
    with pytest.raises(ECInvalidParameter, match=r"flat_xor_hd_4 takes m = 5 with k = 5 to 10, m = 6 with k = 6 to 20"):
        driver("flat_xor_hd_4", 4, 2)
    with pytest.raises(ECDriverError, match=r"Invalid number of parity fragments \(m\)"):
        driver(m=0)
    with pytest.raises(ImportError, match="Nothing"):
        ECDriver(k=4, m=2, library_import_str="gfcode.compat.Nothing")
    with pytest.raises(
        ECDriverError, match=r"required methods are not implemented in types\.SimpleNamespace: decode enc"
    ):
        ECDriver(k=4, m=2, library_import_str="types.SimpleNamespace")
    assert issubclass(ECDriverError, GFCodeError)
    assert driver("flat_xor_hd", 10, 5).hd == 3
