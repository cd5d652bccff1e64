"""Configurations: pure functions of a problem and a device, right for every shape and within a device's limits."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gfcode.kernels.cuda.launch import (
    DeviceInfo,
    Launch,
    Problem,
    Tuning,
    bitmatmul_launch,
    halves_of,
    operands_for,
    planes_of,
    xor_launch,
)
from gfcode.kernels.cuda.source import build_key
from gfcode.kernels.cuda.tuner import candidates
from gfcode.params import Layout

DEVICES = [
    DeviceInfo("Turing", 75, 40, 64 << 10),
    DeviceInfo("Ampere", 80, 108, 164 << 10),
    DeviceInfo("Hopper", 90, 132, 228 << 10),
    DeviceInfo("Blackwell", 100, 148, 228 << 10),
]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    w = draw(st.sampled_from((4, 8, 16)))
    name = draw(st.sampled_from(("packets", "words")))
    layout = Layout("packets", w, draw(st.sampled_from((8, 24, 64, 1024)))) if name == "packets" else Layout("words", w)
    strips = draw(st.integers(1, 5000))
    return Problem(
        layout,
        draw(st.integers(1, 200)),
        draw(st.integers(1, 100)),
        draw(st.integers(1, 1 << 20)),
        strips * layout.strip_bytes,
        draw(st.sampled_from((1, 2, 4, 8, 16))),
        draw(st.booleans()),
    )


def check_walk(launch: Launch, problem: Problem) -> None:
    """Check that the steps of a warp visit every tile: whole stripes and tiles add up to the number of warps."""
    stripes, tiles = launch.steps
    assert stripes * launch.tiles + tiles == launch.blocks * launch.threads // 32
    assert 0 <= tiles < launch.tiles
    assert 0 <= launch.whole_tiles <= launch.tiles
    assert launch.blocks >= 1
    assert launch.threads % 32 == 0
    assert (launch.blocks - 1) * (launch.threads // 32) < launch.tiles * problem.stripes


# Seven columns of packets, copied ahead, would take 56 KiB of the 48 that a block may have.
@example(Problem(Layout("packets", 4, 8), 25, 1, 1, 32, 1, table=False), DEVICES[1], 2, None)
@given(problems(), st.sampled_from(DEVICES), st.sampled_from((None, 1, 2, 3)), st.sampled_from((None, 1, 4)))
def test_matrix_products(problem: Problem, device: DeviceInfo, stages: int | None, pieces: int | None) -> None:
    launch = bitmatmul_launch(problem, device, Tuning(stages=stages, pieces=pieces))
    assert launch == bitmatmul_launch(problem, device, Tuning(stages=stages, pieces=pieces))
    check_walk(launch, problem)
    build, halves = launch.build, halves_of(problem.layout.w)
    cut, columns = build.define("PIECES"), build.define("COLUMNS")
    assert launch.shared_bytes <= 48 << 10
    assert columns % halves == 0
    assert columns <= 7
    assert build.define("SLICED") == (4 * columns // halves < problem.c * cut)
    assert build.define("STAGES") == 1 or device.capability >= 80
    assert build.define("OPERANDS_U8") == (operands_for(device) == "u8")
    # Pieces: as many outputs as four columns, none of them empty, each a whole number of tiles.
    assert cut * problem.r <= 4 or cut == 1
    assert (cut - 1) * launch.piece < problem.length <= cut * launch.piece
    layout = problem.layout
    if layout.name == "words":
        tile = 128 * halves
        assert launch.piece % tile == 0
        assert (launch.tiles - 1) * tile < min(launch.piece, problem.length) <= launch.tiles * tile
        assert launch.whole_tiles * tile <= problem.length - (cut - 1) * launch.piece
    else:
        window = 8 * halves * layout.packet_bytes
        assert launch.piece % math.lcm(window, 256 * halves) % window == 0
        units = layout.packet_bytes // 4
        assert launch.piece // window * units % 8 == 0
        assert launch.whole_tiles * 8 <= (problem.length - (cut - 1) * launch.piece) // window * units
    if build.define("SLICED"):
        groups = -(-problem.r * cut // 4)
        assert 1 <= launch.span <= groups


@given(problems(), st.sampled_from(DEVICES), st.integers(10, 190), st.sampled_from((None, 1, 2, 4)))
def test_xor_kernels(problem: Problem, device: DeviceInfo, live: int, vector: int | None) -> None:
    launch = xor_launch(problem, device, "xor_program.cu", "text", live, Tuning(vector=vector))
    check_walk(launch, problem)
    build, layout = launch.build, problem.layout
    words = build.define("VECTOR")
    assert build.define("PLANES") == planes_of(layout)
    assert words == 1 or (layout.name == "packets" and layout.packet_bytes % (4 * words) == 0)
    assert build.define("UNALIGNED") == (problem.alignment < (4 * words if layout.name == "packets" else 16))
    assert build.define("UNALIGNED") == 0 or words == 1
    lane = 4 * words * planes_of(layout)
    assert (launch.tiles - 1) * 32 * lane < problem.length <= launch.tiles * 32 * lane
    assert launch.whole_tiles == problem.length // (32 * lane)


def test_small_m_takes_pieces_and_wide_codes_slices() -> None:
    hopper, layout = DEVICES[2], Layout("words", 8)
    two = bitmatmul_launch(Problem(layout, 10, 2, 100, 1 << 20), hopper).build
    assert (two.define("PIECES"), two.define("COLUMNS"), two.define("SLICED")) == (2, 5, 0)
    four = bitmatmul_launch(Problem(layout, 10, 4, 100, 1 << 20), hopper).build
    assert (four.define("PIECES"), four.define("COLUMNS"), four.define("SLICED")) == (1, 3, 0)
    wide = bitmatmul_launch(Problem(layout, 50, 20, 100, 1 << 20), hopper)
    assert (wide.build.define("COLUMNS"), wide.build.define("SLICED"), wide.build.define("STAGES")) == (7, 1, 2)
    assert wide.span == 5


def test_one_build_serves_all_lengths_and_stripes() -> None:
    layout = Layout("packets", 8)
    builds = {
        bitmatmul_launch(Problem(layout, 10, 4, stripes, 512 * strips), DEVICES[2]).build
        for stripes in (1, 7, 100_000)
        for strips in (1, 2, 127, 2048)
    }
    assert len(builds) == 1


def test_key_of_a_cubin_holds_all_that_its_code_depends_on() -> None:
    problem = Problem(Layout("words", 8), 10, 4, 100, 4096)
    build = bitmatmul_launch(problem, DEVICES[2]).build
    other = bitmatmul_launch(Problem(Layout("words", 8), 12, 4, 100, 4096, 1), DEVICES[2]).build
    program = xor_launch(problem, DEVICES[2], "xor_program.cu", "one", 40, Tuning()).build
    changed = xor_launch(problem, DEVICES[2], "xor_program.cu", "two", 40, Tuning()).build
    keys = [
        build_key(build, DEVICES[2], "NVRTC 12.9"),
        build_key(build, DEVICES[1], "NVRTC 12.9"),
        build_key(build, DEVICES[2], "NVRTC 13.0"),
        build_key(build, DeviceInfo("AMD", 90, 104, 64 << 10, "gfx90a"), "NVRTC 12.9"),
        build_key(build, DeviceInfo("AMD", 90, 104, 64 << 10, "gfx942"), "NVRTC 12.9"),
        build_key(other, DEVICES[2], "NVRTC 12.9"),
        build_key(program, DEVICES[2], "NVRTC 12.9"),
        build_key(changed, DEVICES[2], "NVRTC 12.9"),
    ]
    assert len(set(keys)) == len(keys)
    assert build_key(build, DEVICES[2], "NVRTC 12.9") == keys[0]


@pytest.mark.parametrize("kernel", ["matrix", "program", "horner"])
def test_the_rules_choice_is_the_first_candidate(kernel: str) -> None:
    problem = Problem(Layout("packets", 8), 10, 2, 100, 1 << 20)
    for device in DEVICES:
        found = candidates(kernel, problem, device)
        assert found[0] == Tuning()
        assert len(set(found)) == len(found)
        if kernel == "matrix":
            assert len(found) == (2 if device.capability < 80 else 6)
