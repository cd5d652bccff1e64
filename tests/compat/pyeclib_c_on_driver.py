"""PyECLib's C extension `pyeclib_c` as functions over gfcode's driver: what its own tests of that extension call."""

from collections.abc import Sequence
from typing import Any

from gfcode.compat.driver import ECPyECLibDriver
from gfcode.compat.ec_errors import ECBackendInstanceNotAvailable
from gfcode.compat.ec_types import PyECLib_EC_Types, PyECLib_FRAGHDRCHKSUM_Types
from gfcode.compat.header import WRITTEN_VERSION

CHECKSUMS = (PyECLib_FRAGHDRCHKSUM_Types.none, PyECLib_FRAGHDRCHKSUM_Types.inline_crc32)


class Handle:
    """What `init` returns; `open` until it is destroyed."""

    def __init__(self, driver: ECPyECLibDriver) -> None:
        self.driver = driver
        self.open = True

    def use(self, function: str) -> ECPyECLibDriver:
        if not self.open:
            raise ECBackendInstanceNotAvailable(
                f"pyeclib_c_{function} ERROR: Backend instance not found. "
                "Please inspect syslog for liberasurecode error report."
            )
        return self.driver


def get_liberasurecode_version() -> int:
    return WRITTEN_VERSION


def init(
    k: int,
    m: int,
    backend_id: int,
    hd: int = 0,
    inline_chksum: int = 0,
    algsig_checksum: int = 0,
    validate: int = 0,
    local_parity: int = 0,
) -> Handle:
    return Handle(
        ECPyECLibDriver(k, m, hd, PyECLib_EC_Types(backend_id), CHECKSUMS[inline_chksum], bool(validate), local_parity)
    )


def destroy(handle: Handle) -> None:
    handle.use("destroy").close()
    handle.open = False


def encode(handle: Handle, data: bytes) -> list[bytes]:
    return handle.use("encode").encode(data)


def decode(
    handle: Handle,
    fragments: Sequence[bytes],
    fragment_length: int,
    ranges: Sequence[tuple[int, int]] | None = None,
    force_metadata_checks: bool = False,
) -> Any:
    assert all(len(fragment) == fragment_length for fragment in fragments)
    return handle.use("decode").decode(fragments, ranges, force_metadata_checks)


def reconstruct(handle: Handle, fragments: Sequence[bytes], fragment_length: int, index: int) -> bytes:
    assert all(len(fragment) == fragment_length for fragment in fragments)
    return handle.use("reconstruct").reconstruct(fragments, [index])[0]


def get_required_fragments(handle: Handle, reconstruct_list: list[int], exclude_list: list[int]) -> list[int]:
    return handle.use("get_required_fragments").fragments_needed(reconstruct_list, exclude_list)
