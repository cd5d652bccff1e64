"""NVRTC and nvdisasm from PyPI's wheels: cubins without a driver, and what is in them."""

import collections
import ctypes
import functools
import importlib.util
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.gpu.runtime_compiler import compile_by


def _wheel_files(pattern: str) -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or []) if spec else []
    return sorted(found for place in places for found in Path(place).glob(pattern))


def missing() -> str | None:
    """Why kernels cannot be compiled and disassembled here; None if they can."""
    if not _wheel_files("*/lib/libnvrtc.so.*"):
        return "NVRTC is not installed: pip install 'gfcode[gpu-test]'"
    if not _wheel_files("*/bin/nvdisasm"):
        return "nvdisasm is not installed: pip install 'gfcode[gpu-test]'"
    return None


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(_wheel_files("*/lib/libnvrtc.so.*")[0]))


def version() -> tuple[int, int]:
    """Major and minor version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_cubin(source: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
    """Compile to machine code; the log is the error."""
    return compile_by(_library(), "nvrtc", "CUBIN", source, headers, options)


@dataclass(frozen=True)
class Usage:
    """What a compiled kernel takes.

    `local` counts instructions that touch local memory, where spilled registers go; `operations` counts mnemonics with
    their modifiers; `shared` is static shared memory in bytes.
    """

    registers: int
    shared: int
    local: int
    operations: Mapping[str, int]

    def count(self, prefix: str) -> int:
        """Count instructions whose mnemonic starts with `prefix`."""
        return sum(number for name, number in self.operations.items() if name.startswith(prefix))

    def wide(self, operation: str) -> int:
        """Count loads or stores of 8 or 16 bytes."""
        return sum(
            number
            for name, number in self.operations.items()
            if name.split(".")[0] == operation and {"64", "128"} & set(name.split("."))
        )

    @property
    def instructions(self) -> int:
        """Instructions of the kernel."""
        return sum(self.operations.values())


def _sections(image: bytes) -> dict[str, tuple[bytes, int]]:
    """Sections of an ELF file by name: contents and the info word."""
    offset, size, number, names = (
        struct.unpack_from("<Q", image, 40)[0],
        *struct.unpack_from("<HHH", image, 58),
    )
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, offset + i * size) for i in range(number)]
    table = headers[names]
    text = image[table[4] : table[4] + table[5]]
    found = {}
    for header in headers:
        name = text[header[0] : text.index(b"\0", header[0])].decode()
        found[name] = (image[header[4] : header[4] + header[5]] if header[1] != 8 else b"", header[7])
        if header[1] == 8:
            found[name] = (bytes(header[5]), header[7])
    return found


def _register_count(attributes: bytes) -> int:
    """EIATTR_REGCOUNT of a cubin's only kernel."""
    at, counts = 0, []
    while at < len(attributes):
        form, attribute, size = struct.unpack_from("<BBH", attributes, at)
        if form == 4 and attribute == 0x2F:
            counts.append(struct.unpack_from("<II", attributes, at + 4)[1])
        at += 4 + (size if form == 4 else 0)
    (count,) = counts
    return int(count)


def disassembly(image: bytes) -> str:
    """Return the machine code of an image as nvdisasm prints it."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        tool = str(_wheel_files("*/bin/nvdisasm")[0])
        return subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout


def usage(image: bytes, kernel: str) -> Usage:
    """Read registers from the attributes of the image, shared memory from its own section, the rest by nvdisasm."""
    sections = _sections(image)
    registers = _register_count(sections[".nv.info"][0])
    shared = len(sections.get(f".nv.shared.{kernel}", (b"", 0))[0])
    operations: collections.Counter[str] = collections.Counter()
    for line in disassembly(image).splitlines():
        found = re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line)
        if found:
            operations[re.sub(r"^@!?U?P\w+\s+", "", found.group(1).strip()).split()[0]] += 1
            if "LOP3" in line and "0x96" in line:
                operations["XOR3"] += 1
    operations.pop("NOP", None)
    local = sum(number for name, number in operations.items() if name.split(".")[0] in {"LDL", "STL"})
    return Usage(registers, shared, local, operations)
