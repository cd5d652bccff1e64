"""The code types and checksum types of PyECLib, with liberasurecode's numbers for them."""

from enum import Enum, unique
from typing import Final

__all__ = [
    "ALL_EC_TYPES",
    "LIBERASURECODE_VERSION",
    "PYECLIB_MAJOR",
    "PYECLIB_MAX_DATA",
    "PYECLIB_MAX_PARITY",
    "PYECLIB_MINOR",
    "PYECLIB_REV",
    "PYECLIB_VERSION",
    "PYECLIB_VERSION_STRING",
    "VALID_EC_TYPES",
    "PyECLib_EC_Types",
    "PyECLib_FRAGHDRCHKSUM_Types",
    "check_backend_available",
    "get_liberasurecode_version",
    "version_number",
]


def version_number(major: int, minor: int, revision: int) -> int:
    """Return a version as liberasurecode writes it into headers."""
    return major << 16 | minor << 8 | revision


#: The release of PyECLib whose interface this is.
PYECLIB_VERSION_STRING: Final = "1.8.0"
PYECLIB_MAJOR, PYECLIB_MINOR, PYECLIB_REV = map(int, PYECLIB_VERSION_STRING.split("."))
PYECLIB_VERSION: Final = version_number(PYECLIB_MAJOR, PYECLIB_MINOR, PYECLIB_REV)
#: Constants of PyECLib, which keeps them without holding anyone to them.
PYECLIB_MAX_DATA: Final = 32
PYECLIB_MAX_PARITY: Final = 32
#: The release of liberasurecode whose format is written: the one in PyECLib 1.8.0.
LIBERASURECODE_VERSION: Final = "1.8.0"


@unique
class PyECLib_EC_Types(Enum):  # noqa: N801 - PyECLib's name
    """Codes, by the number in fragment headers."""

    jerasure_rs_vand = 1
    jerasure_rs_cauchy = 2
    flat_xor_hd = 3
    isa_l_rs_vand = 4
    shss = 5
    liberasurecode_rs_vand = 6
    isa_l_rs_cauchy = 7
    libphazr = 8
    isa_l_rs_vand_inv = 9
    isa_l_rs_lrc = 10


@unique
class PyECLib_FRAGHDRCHKSUM_Types(Enum):  # noqa: N801 - PyECLib's name
    """Checksums of payloads, by the number in fragment headers."""

    none = 1
    inline_crc32 = 2


#: Every `ec_type` that PyECLib knows by name.
ALL_EC_TYPES: Final = [
    "jerasure_rs_vand",
    "jerasure_rs_cauchy",
    "flat_xor_hd_3",
    "flat_xor_hd_4",
    "isa_l_rs_vand",
    "shss",
    "liberasurecode_rs_vand",
    "isa_l_rs_cauchy",
    "libphazr",
    "isa_l_rs_vand_inv",
    "isa_l_rs_lrc",
]

#: Those that can be had here: all but the two whose libraries are not public.
VALID_EC_TYPES: Final = [name for name in ALL_EC_TYPES if name not in {"shss", "libphazr"}]


def check_backend_available(backend_name: str) -> bool:
    """Tell whether a driver for this `ec_type` can be made."""
    return backend_name in VALID_EC_TYPES or backend_name == "flat_xor_hd"


def get_liberasurecode_version() -> int:
    """Return the release of liberasurecode whose format is written, as a number."""
    return version_number(*map(int, LIBERASURECODE_VERSION.split(".")))
