"""Rooflines: instructions are counted as the kernels do them, bounds follow from ceilings, and plots can be read."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.harness import place
from bench.methods import Prepared
from bench.roofline import CASES, Case, Subject, bounds, cases_here, main, measure, table
from bench.roofline_ceilings import Sizes, ceilings
from bench.roofline_counts import count, kinds
from bench.roofline_gpu import Path as GpuPath
from bench.roofline_gpu import bounds as gpu_bounds
from bench.roofline_gpu import disassembly, follow
from bench.roofline_gpu import table as gpu_table
from gfcode.codec import Codec
from gfcode.engine.protocol import Product
from gfcode.kernels.simd.target import host, host_variants
from gfcode.params import LayoutName

TARGET = host()
pytestmark = pytest.mark.skipif(TARGET is None, reason="engine 'simd' has no kernels for this CPU")
SMALL = Sizes(8 << 10, 64 << 10, 1 << 20)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("vpternlogq\t$150, (%rax,%rdx), %zmm1, %zmm2", {"ternary": 1, "loads": 1}),
        ("vpxorq\t%zmm1, %zmm2, %zmm3 # zmm3", {"xor": 1}),
        ("vpxor\t%xmm0, %xmm0, %xmm0", {}),
        ("pxor\t64(%rdi), %xmm1", {"xor": 1, "loads": 1}),
        ("vgf2p8affineqb\t$0, %zmm1, %zmm2, %zmm3", {"affine": 1}),
        ("vpshufb\t%ymm1, %ymm2, %ymm3", {"shuffle": 1}),
        ("vpandq\t%zmm1, %zmm2, %zmm3", {"other": 1}),
        ("vmovdqu64\t128(%rsi), %zmm4", {"loads": 1}),
        ("vmovntdq\t%zmm4, 64(%rsi)", {"stores": 1}),
        ("vmovdqa64\t%zmm4, %zmm5", {}),
        ("vpbroadcastq\t8(%rcx), %zmm5", {"loads": 1}),
        ("prefetcht0\t512(%r13,%rdx)", {"loads": 1}),
        ("movq\t(%rax,%rbx,8), %rcx", {"loads": 1}),
        ("leaq\t(%rax,%rbx), %rcx", {}),
        ("addq\t$2, %r12", {}),
    ],
)
def test_instructions_are_told_apart(line: str, found: dict[str, int]) -> None:
    assert kinds(line) == {"instructions": 1, **found}


@pytest.mark.parametrize(
    ("variant", "layout", "lost"),
    [
        *((variant, layout, 0) for variant in host_variants() for layout in ("packets", "words")),
        ("host", "packets", 2),
        ("host", "words", 2),
    ],
)
def test_what_is_counted_is_what_must_be_done(variant: str, layout: LayoutName, lost: int) -> None:
    """Outputs are written, inputs read; packets cost XORs only, words a product for each element that is not 1."""
    target = host_variants()[variant]
    codec = Codec(5, 3, layout=layout, matrix="powers")
    data, parity, out = place((5, 3, 3), 4096, "staggered")
    codec.encode(data, parity)
    plan = codec.plan(range(lost, 8), range(lost)) if lost else codec.plan(range(5), range(5, 8))
    shards = [*data, *parity]
    outputs = list(out[: len(plan.want)])
    counted = count(Product(plan.matrix, codec.layout), target, [shards[index] for index in plan.sources], outputs)
    for block, index in zip(outputs, plan.want, strict=True):
        assert (block == shards[index]).all()
    takes = counted.per_byte(target.vector_bytes, 5 * 4096)
    written = len(outputs) / 5
    # The outputs, and what kernels that are short of registers put aside.
    assert written <= takes["stores"] < 4 * written
    assert takes["loads"] >= 1
    assert takes["instructions"] >= sum(takes[kind] for kind in ("xor", "ternary", "affine", "shuffle", "other"))
    if layout == "packets":
        assert takes["affine"] == takes["shuffle"] == 0 < takes["xor"] + takes["ternary"]
    else:
        products = takes["affine"] + takes["shuffle"] / 2
        # Of three rows one is a sum, of two likewise; of the first of five inputs every row takes the bytes as such.
        assert products == pytest.approx(2 * 4 / 5 if lost == 0 else 1)


def test_ceilings_are_measured() -> None:
    assert TARGET is not None
    found = ceilings(TARGET, SMALL, [(10, 4)], rounds=1)
    assert {"read L1", "read L2", "read memory", "write L1", "write L2", "write memory"} <= set(found)
    assert {"xor", "shuffle", "instructions", "move 10 to 4 L2", "move 10 to 4 memory"} <= set(found)
    assert all(figure.median > 0 for figure in found.values())


def test_bounds_follow_from_ceilings() -> None:
    takes = {"xor": 2.0, "ternary": 1.0, "affine": 1.0, "shuffle": 0.0, "other": 0.0, "loads": 3.0, "stores": 0.5}
    rates = {"xor": 400.0, "ternary": 300.0, "affine": 50.0, "read L1": 240.0, "write L1": 100.0, "instructions": 900.0}
    found = bounds(takes | {"instructions": 9.0}, rates, 70.0, "L2")
    assert found == pytest.approx({"arithmetic": 50, "loads": 80, "stores": 200, "instructions": 100, "L2": 70})
    # Without products, all vector operations share what does the fastest of them.
    found = bounds(takes | {"affine": 0.0, "instructions": 0.0}, rates, 70.0, "memory")
    assert found == pytest.approx({"arithmetic": 400 / 3, "loads": 80, "stores": 200, "memory": 70})


def test_cases_cover_the_kernels() -> None:
    assert {"Horner", "threaded constants", "words, split tables"} <= {case.kernel for case in CASES}
    assert {case.kernel for case in cases_here()} <= {case.kernel for case in CASES}
    assert Case("x", 4, 2, 1, "words").operation == "decode 1"


def test_program_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'gfcode[bench]'")
    few = [case for case in cases_here() if case.kernel in {"Horner", "plain sum"}]
    monkeypatch.setattr("bench.roofline.cases_here", lambda: iter(few))
    monkeypatch.setattr("bench.roofline.Sizes.here", lambda: SMALL)
    out = tmp_path / "roofline.json"
    main(["--cpu", "--rounds", "1", "--out", str(out), "--images", str(tmp_path)])
    result = json.loads(out.read_text())
    assert len(result["cases"]) == 2 * len(few)
    assert {case["where"] for case in result["cases"]} == {"L2", "memory"}
    assert all(case["bounds"][case["bound"]] == min(case["bounds"].values()) for case in result["cases"])
    assert (tmp_path / "roofline-cpu.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "roofline-cpu.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(table(result["cases"]))) == 2 + len(result["cases"])
    assert "| Horner | (10,4), encode | L2 |" in capsys.readouterr().out
    result["gpu"] = {
        "ceilings": {"processors": 100, "clock": 1e9, "logic": 64},
        "cases": [
            {
                "kernel": "horner, packets", "k": 10, "m": 4, "bound": "memory",
                "takes": {"logic": 1.0, "instructions": 2.0, "products": 0.0},
                "bounds": {"logic": 6.4, "instructions": 6.0, "memory": 3.0},
            }
        ],
    }  # fmt: skip
    out.write_text(json.dumps(result))
    result["cases"] = []
    main(["--draw", str(out), "--images", str(tmp_path / "again")])
    assert (tmp_path / "again/roofline-gpu.svg").is_file()


def test_xor_programs_are_counted_as_their_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 instructions of four operands, on 80 packets: 180 XORs, 240 loads, 60 stores."""
    monkeypatch.setattr("bench.methods.Method.prepare", lambda *_: Prepared(lambda: None, 180, 300))
    (case,) = [case for case in CASES if case.kernel == "XOR program, plain loops"]
    takes = Subject(case, 1 << 14).takes
    assert (takes["xor"], takes["loads"], takes["stores"]) == (180 / 80, 240 / 80, 60 / 80)


def test_counts_of_gpu_kernels_are_kept_where_no_compiler_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "roofline.json"
    monkeypatch.setattr("bench.roofline_gpu.measure", lambda: {"missing": "no NVRTC"})
    main(["--gpu", "--out", str(out)])
    assert json.loads(out.read_text())["gpu"] == {"missing": "no NVRTC"}
    assert "were not counted: no NVRTC" in capsys.readouterr().out
    out.write_text(json.dumps({"gpu": {"cases": [], "nvrtc": "1"}}))
    main(["--gpu", "--out", str(out)])
    assert json.loads(out.read_text())["gpu"] == {"cases": [], "nvrtc": "1"}


def test_a_cpu_without_kernels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("bench.roofline.host_variants", dict)
    with pytest.raises(SystemExit):
        main(["--cpu"])
    assert "has no kernels for this CPU" in capsys.readouterr().err


def test_wrong_bytes_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.roofline._engine", lambda _: _Idle())
    with pytest.raises(AssertionError, match="Horner gives wrong bytes"):
        measure([CASES[1]], SMALL, 1)


class _Idle:
    """An engine that does nothing."""

    def prepare(self, _: Product) -> object:
        return lambda *_: np.zeros(0)


SASS = """
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_5:
        /*0010*/              @!P5 BRA `(.L_x_1) ;
        /*0020*/              @!P0 LDG.E.CONSTANT R4, desc[UR6][R8.64] ;
        /*0030*/              @!P1 LDG.E.CONSTANT R5, desc[UR6][R8.64+0x4] ;
        /*0040*/                   BRA `(.L_x_2) ;
.L_x_1:
        /*0050*/                   LDG.E.NA.128.CONSTANT R4, desc[UR6][R6.64] ;
.L_x_2:
        /*0060*/                   LOP3.LUT R4, R4, R5, R6, 0x96, !PT ;
.L_x_3:
        /*0070*/                   LDG.E.NA.128.CONSTANT R4, desc[UR6][R6.64] ;
        /*0080*/                   BMMA.168128.AND.POPC R20, R4.ROW, R17.COL, RZ ;
        /*0090*/               @P0 BRA `(.L_x_3) ;
        /*00a0*/                   STG.E.EF.128 desc[UR6][R24.64], R20 ;
        /*00b0*/               @P1 BRA `(.L_x_5) ;
        /*00c0*/                   EXIT ;
        /*00d0*/                   NOP ;
"""


def test_gpu_code_is_followed_around_edges_and_through_loops() -> None:
    """Five instructions an item, and three of a loop for each 16 bytes of the 64 that its 16 bytes are made of."""
    path = follow(SASS, 4, 1)
    assert path == GpuPath(instructions=5 + 4 * 3, logic=1, products=4, stored=16)
    assert path.per_byte(4, 1)["products"] == 4 / 64
    with pytest.raises(ValueError, match="no loop"):
        follow("        /*0000*/ EXIT ;", 4, 1)


def test_gpu_bounds_and_table() -> None:
    found = gpu_bounds({"instructions": 2.0, "logic": 1.0, "products": 0.0}, 0.4)
    assert found["instructions"] == pytest.approx(found["logic"])
    assert found["memory"] == pytest.approx(4.3 / 1.4)
    assert list(gpu_table({"missing": "no compiler"})) == ["GPU kernels were not counted: no compiler"]


def test_gpu_kernels_are_compiled_and_counted() -> None:
    nvrtc = pytest.importorskip("tests.gpu.nvrtc")
    if reason := nvrtc.missing():
        pytest.skip(reason)
    from tests.gpu.kernel_table import Case as GpuCase

    path = follow(disassembly(GpuCase("matrix", "words", 8, 10, 4)), 10, 4)
    assert 0 < path.products < path.instructions
    # A byte of data costs more than its share of the stores, and no more than the kernel has instructions for.
    assert path.stored in {4, 8, 16}
    assert 1 < path.per_byte(10, 4)["instructions"] < 100
