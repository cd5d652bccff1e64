"""How a product is launched: pure functions from a problem and a device to a frozen configuration.

A `Build` says what is compiled, a `Launch` how it is started. Nothing here touches a device, so every choice can be
tested anywhere; what should be measured instead of reasoned about is in `Tuning`.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

from gfcode.params import Layout

__all__ = [
    "WIDTHS",
    "Build",
    "DeviceInfo",
    "Launch",
    "Operands",
    "Problem",
    "Tuning",
    "bit_search_launch",
    "bitmatmul_build",
    "bitmatmul_launch",
    "halves_of",
    "operands_for",
    "planes_of",
    "xor_launch",
]

#: Symbol widths of the matrix-product kernel.
WIDTHS: Final = (4, 8, 16)

#: Kinds of matrix operands: one-bit and eight-bit MMA.
Operands = Literal["b1", "u8"]

#: Shared memory that any block of any supported device may have without asking for more.
_SHARED_PER_BLOCK: Final = 48 << 10
# Byte columns of a lane: K of one pass. Seven keep counts of one-bit products below 256; six leave eight-bit operands
# room in the register file, and make whole 16-bit symbols.
_MOST_COLUMNS: Final = {("b1", 1): 7, ("b1", 2): 6, ("u8", 1): 6, ("u8", 2): 6}
_LANES: Final = 32


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What the choice of a launch depends on.

    Attributes
    ----------
    name : str
        As the driver gives it.
    capability : int
        10 · major + minor: 90 for an H100. Says nothing of an AMD GPU.
    processors : int
        Multiprocessors.
    shared_bytes : int
        Shared memory of a multiprocessor.
    gfx : str
        Architecture of an AMD GPU, "gfx90a" for an MI250; empty for NVIDIA's.
    """

    name: str
    capability: int
    processors: int
    shared_bytes: int
    gfx: str = ""

    @property
    def architecture(self) -> str:
        """What the compiler calls it: "sm_90", "gfx90a"."""
        return self.gfx or f"sm_{self.capability}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One call: `stripes` stripes of c input and r output blocks of `length` bytes.

    `alignment` is the largest power of two up to 16 that divides every address; `table` says that blocks are given by
    addresses, not by strides.
    """

    layout: Layout
    c: int
    r: int
    stripes: int
    length: int
    alignment: int = 16
    table: bool = False


@dataclass(frozen=True, slots=True)
class Tuning:
    """Choices that the tuner may make; None leaves them to the rules.

    Attributes
    ----------
    stages : int, optional
        Requests of a matrix-product warp under way at once.
    pieces : int, optional
        Pieces of a block that count as blocks where r < 4.
    vector : int, optional
        Words that an XOR kernel loads at once in `packets`: 1, 2 or 4.
    blocks : int, optional
        Thread blocks of the grid for each multiprocessor.
    """

    stages: int | None = None
    pieces: int | None = None
    vector: int | None = None
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """What is compiled: a source, its macros, and the generated header, if any."""

    source: str
    defines: tuple[tuple[str, int], ...]
    program: str = ""

    @property
    def kernel(self) -> str:
        """Name of the kernel, which is that of its source."""
        return self.source.removesuffix(".cu")

    def define(self, name: str) -> int:
        """Value of a macro."""
        return dict(self.defines)[name]


@dataclass(frozen=True, slots=True)
class Launch:
    """How a build is started, and how it shares out blocks of this length."""

    build: Build
    blocks: int
    threads: int
    shared_bytes: int
    tiles: int
    whole_tiles: int
    piece: int
    span: int = 0

    @property
    def steps(self) -> tuple[int, int]:
        """Whole stripes and left-over tiles that a warp moves on by."""
        return divmod(self.blocks * (self.threads // _LANES), self.tiles)


def halves_of(w: int) -> int:
    """Byte columns of one symbol in the matrix-product kernel; two symbols of GF(2^4) share one."""
    return 2 if w == 16 else 1


def planes_of(layout: Layout) -> int:
    """Bit planes of a block in an XOR kernel: the packets of a strip, or the bits of one or two words."""
    return layout.w if layout.name == "packets" else max(8, layout.w)


def operands_for(device: DeviceInfo) -> Operands:
    """Matrix operands for a device: one-bit MMA is native from sm_80 to sm_90 only."""
    return "b1" if 80 <= device.capability < 100 else "u8"


def _pieces(problem: Problem, most: int, tuning: Tuning) -> int:
    """Pieces of a block to treat as further blocks: as many as fill four output columns while K stays one pass."""
    halves = halves_of(problem.layout.w)
    for pieces in range(4 // problem.r, 1, -1):
        if tuning.pieces is not None and pieces > tuning.pieces:
            continue
        fits = halves * -(-problem.c * pieces // 4) <= most
        if fits and problem.length > (pieces - 1) * _piece(problem, pieces):
            return pieces
    return 1


def _piece(problem: Problem, pieces: int) -> int:
    """Bytes of a piece: whole tiles, and in `packets` whole windows of eight packets."""
    halves, layout = halves_of(problem.layout.w), problem.layout
    if layout.name == "words":
        quantum = 128 * halves
    else:  # a tile is eight units of four bytes of every packet
        units = layout.packet_bytes // 4
        quantum = math.lcm(units, 8) // units * 8 * halves * layout.packet_bytes
    return max(quantum, -(-problem.length // (pieces * quantum)) * quantum)


def _matrix_tiles(problem: Problem, pieces: int, piece: int) -> tuple[int, int]:
    """Tiles of a piece, and how many of them are whole in every piece."""
    halves, layout = halves_of(problem.layout.w), problem.layout
    first, last = min(piece, problem.length), problem.length - (pieces - 1) * piece
    if layout.name == "words":
        tile = 128 * halves
        tiles, whole = -(-first // tile), last // tile
    else:
        window, units = 8 * halves * layout.packet_bytes, layout.packet_bytes // 4
        tiles, whole = -(-(-(-first // window) * units) // 8), last // window * units // 8
    return max(1, tiles), whole


def _min_blocks(operands: Operands, layout: Layout, columns: int, *, sliced: bool) -> int:
    """Blocks of 128 threads that registers allow, from what the compiler needs without spilling (docs/gpu.md)."""
    packets, halves = layout.name == "packets", halves_of(layout.w)
    if sliced:
        return 3 if packets else 4
    if operands == "u8":
        return (5 if columns <= 3 else 4 if columns == 4 else 3) if packets else (5 if columns <= 4 else 4)
    if packets:
        return (4 if columns <= 4 else 3) if halves == 1 else (3 if columns <= 4 else 2)
    return 5 if columns <= 4 or halves == 1 else 4


def _block_words(*, packets: bool, halves: int) -> int:
    """Words of a block that a lane holds."""
    return (8 if packets else 4) * halves


def bitmatmul_build(problem: Problem, device: DeviceInfo, tuning: Tuning = Tuning()) -> Build:
    """Choose the matrix-product kernel for a problem. Depends on stripes, length and alignment only through pieces."""
    layout, operands = problem.layout, operands_for(device)
    halves, packets = halves_of(layout.w), layout.name == "packets"
    most = _MOST_COLUMNS[operands, halves]
    pieces = _pieces(problem, most, tuning)
    columns = halves * -(-problem.c * pieces // 4)
    sliced = columns > most
    # Copies that run ahead need sm_80. One pass over K has its loads spread over many warps; slices follow each other.
    stages = 1 if device.capability < 80 else tuning.stages or (2 if sliced else 1)
    threads = 64 if packets and sliced else 128
    row = _block_words(packets=packets, halves=halves) * 4 * threads
    held = (most if sliced else columns) // halves  # blocks that a stage keeps; slices share the memory with a sum
    while stages > 1 and (stages * held + sliced) * row > _SHARED_PER_BLOCK:
        stages -= 1
    return Build(
        "bitmatmul.cu",
        (
            ("PACKETS", int(packets)),
            ("PACKET_BYTES", layout.packet_bytes if packets else 4),
            ("HALVES", halves),
            ("COLUMNS", most if sliced else columns),
            ("SLICED", int(sliced)),
            ("STAGES", stages),
            ("PIECES", pieces),
            ("UNALIGNED", int(problem.alignment < (4 if packets else 16))),
            ("TABLE", int(problem.table)),
            ("OPERANDS_U8", int(operands == "u8")),
            ("THREADS", threads),
            ("MIN_BLOCKS", _min_blocks(operands, layout, columns, sliced=sliced) * 128 // threads),
        ),
    )


def bitmatmul_launch(problem: Problem, device: DeviceInfo, tuning: Tuning = Tuning()) -> Launch:
    """Configure the matrix-product kernel for a problem on a device."""
    build = bitmatmul_build(problem, device, tuning)
    pieces, threads, stages = build.define("PIECES"), build.define("THREADS"), build.define("STAGES")
    piece = _piece(problem, pieces)
    tiles, whole = _matrix_tiles(problem, pieces, piece)
    groups = -(-problem.r * pieces // 4)
    words = _block_words(packets=bool(build.define("PACKETS")), halves=build.define("HALVES"))
    shared = stages * (build.define("COLUMNS") // build.define("HALVES")) * words * 4 * threads if stages > 1 else 0
    span = 0
    if build.define("SLICED"):
        most = max(1, (_SHARED_PER_BLOCK - shared) // (words * 4 * threads))
        turns = -(-groups // most)
        span = -(-groups // turns)
        shared += span * words * 4 * threads
    resident = min(build.define("MIN_BLOCKS"), device.shared_bytes // (shared + 1024))
    blocks = _grid(problem.stripes, device, tiles, threads, tuning.blocks or max(1, resident))
    return Launch(build, blocks, threads, shared, tiles, whole, piece, span)


def _grid(stripes: int, device: DeviceInfo, tiles: int, threads: int, resident: int) -> int:
    """Blocks of a persistent grid: as many as fit at once, and no more than there are tiles."""
    needed = -(-tiles * stripes // (threads // _LANES))
    return max(1, min(needed, device.processors * resident))


def xor_launch(problem: Problem, device: DeviceInfo, source: str, program: str, live: int, tuning: Tuning) -> Launch:
    """Configure an XOR kernel.

    Parameters
    ----------
    source, program : str
        The kernel's source and its generated header.
    live : int
        Most words that the program holds at once for each word of a plane.
    """
    layout, planes, threads = problem.layout, planes_of(problem.layout), 128
    packets = layout.name == "packets"
    vector = 1
    if packets:
        vector = tuning.vector or next((v for v in (4, 2) if live * v <= 168), 1)
        while vector > 1 and (layout.packet_bytes % (4 * vector) or problem.alignment < 4 * vector):
            vector //= 2
    registers = live * vector + 48
    minimum = max(1, min(8, 65536 // (threads * registers)))
    if packets:
        strip, units = layout.strip_bytes, layout.packet_bytes // (4 * vector)
        strips = problem.length // strip
        tiles, whole = -(-strips * units // _LANES), strips * units // _LANES
    else:
        tile = 128 * planes
        tiles, whole = -(-problem.length // tile), problem.length // tile
    build = Build(
        source,
        (
            ("PACKETS", int(packets)),
            ("PACKET_BYTES", layout.packet_bytes if packets else 4),
            ("PLANES", planes),
            ("VECTOR", vector),
            ("UNALIGNED", int(problem.alignment < (4 * vector if packets else 16))),
            ("TABLE", int(problem.table)),
            ("THREADS", threads),
            # The second bound of a launch is of wavefronts for an execution unit on AMD's GPUs: none is set there.
            ("MIN_BLOCKS", 1 if device.gfx else minimum),
        ),
        program,
    )
    tiles = max(1, tiles)
    blocks = _grid(problem.stripes, device, tiles, threads, tuning.blocks or minimum)
    return Launch(build, blocks, threads, 0, tiles, whole, max(1, problem.length))


def bit_search_launch(stripes: int, length: int, device: DeviceInfo) -> Launch:
    """Configure the kernel that tells which blocks have a one. A tile is 512 bytes of all blocks of a stripe."""
    threads = 128
    tiles = max(1, -(-length // 512))
    blocks = _grid(stripes, device, tiles, threads, 8)
    return Launch(Build("bit_search.cu", (("THREADS", threads),)), blocks, threads, 0, tiles, length // 512, length)
