"""Random damage: each set is either restored byte for byte or reported beyond repair; never wrong bytes as success."""

import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gfcode.errors import ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
from tests.unit.shard_files import FileSet, make_set, random_bytes

SIZES = st.one_of(st.integers(0, 5000), st.integers(0, 40).map(lambda n: n * 512))
OPTIONS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@dataclass
class Case:
    """One of a few sets that all examples start from, and a second one to take foreign frames from."""

    files: FileSet
    other: FileSet
    scratch: Path

    def fresh(self) -> list[Path]:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        paths = []
        for path, content in self.files.original.items():
            paths.append(self.scratch / Path(path).name)
            paths[-1].write_bytes(content)
        return paths


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    made = []
    for number, (k, m, size, streamed) in enumerate(
        [(2, 1, 700, False), (3, 2, 9_000, False), (4, 3, 20_000, False), (3, 2, 9_100, True), (1, 2, 100, False)]
    ):
        base = tmp_path_factory.mktemp("case")
        data = random_bytes(size, number)
        files = make_set(base, data, k, m, frame=1024)
        if streamed:
            report = encode_file(
                io.BytesIO(data), k=k, m=m, name="file", frame=1024, out=base / "stream", durable=False, threads=1
            )
            paths = [Path(path) for path in report.paths]
            files = FileSet(data, base / "stream", report, paths, {str(p): p.read_bytes() for p in paths})
        other = make_set(base / "other", random_bytes(size, number + 99), k, m, frame=1024)
        made.append(Case(files, other, base / "scratch"))
    return made


def flip(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    if content:
        at = draw(st.integers(0, len(content) - 1))
        content[at] ^= 1 << draw(st.integers(0, 7))
        path.write_bytes(content)


def zero(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    at = draw(st.integers(0, max(0, len(content) - 1)))
    count = min(len(content) - at, draw(st.integers(1, 6000)))
    content[at : at + count] = bytes(count)
    path.write_bytes(content)


def truncate(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    path.write_bytes(content[: draw(st.integers(0, len(content)))])


def insert(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    at = draw(st.integers(0, len(content)))
    content[at:at] = draw(st.binary(min_size=1, max_size=600))
    path.write_bytes(content)


def cut_out(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    at = draw(st.integers(0, len(content)))
    del content[at : at + draw(st.integers(1, 3000))]
    path.write_bytes(content)


def swap_frames(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    (a, first), (b, second) = pick(draw, paths), pick(draw, paths)
    if first == second:
        b = a
    x, y = (4096 + 1024 * draw(st.integers(-4, 12)) for _ in range(2))
    a[x : x + 1024], b[y : y + 1024] = b[y : y + 1024], a[x : x + 1024]
    first.write_bytes(a)
    second.write_bytes(b)


def foreign_frame(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    source = draw(st.sampled_from(list(case.other.original.values())))
    at = draw(st.sampled_from([0, 4096, 5120, 6144]))
    length = 4096 if at == 0 else 1024
    content[at : at + length] = source[at : at + length]
    path.write_bytes(content)


def remove(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    path = draw(st.sampled_from(paths))
    path.unlink(missing_ok=True)


def swap_names(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    (a, first), (b, second) = pick(draw, paths), pick(draw, paths)
    first.write_bytes(b)
    second.write_bytes(a)


def copy(draw: Callable[..., Any], case: Case, paths: list[Path]) -> None:
    content, path = pick(draw, paths)
    path.with_name(f"copy{draw(st.integers(0, 9))}").write_bytes(content)


def pick(draw: Callable[..., Any], paths: list[Path]) -> tuple[bytearray, Path]:
    path = draw(st.sampled_from(paths))
    return bytearray(path.read_bytes() if path.exists() else b""), path


DAMAGES = [flip, zero, truncate, insert, cut_out, swap_frames, foreign_frame, remove, swap_names, copy]


@settings(OPTIONS, max_examples=250)
@given(draw=st.data())
def test_restored_or_reported(cases: list[Case], draw: st.DataObject) -> None:
    case = draw.draw(st.sampled_from(cases))
    paths = case.fresh()
    for _ in range(draw.draw(st.integers(1, 5))):
        draw.draw(st.sampled_from(DAMAGES))(draw.draw, case, paths)
    before = {path: path.read_bytes() for path in case.scratch.iterdir()}
    try:
        report = verify_set(case.scratch, threads=1)
    except (ShardSetError, ShardFormatError, UnrecoverableError) as error:
        event(type(error).__name__)
        return
    if report.set_id != case.files.report.set_id:
        event("the other set has more")
        return
    event(report.state)
    out = io.BytesIO()
    if report.state == "beyond repair":
        with pytest.raises(UnrecoverableError):
            decode_file(case.scratch, out, threads=1)
        assert case.files.data.startswith(out.getvalue())
        assert repair_set(case.scratch, durable=False, threads=1).repaired == ()
        assert {path: path.read_bytes() for path in case.scratch.iterdir()} == before
        return
    decode_file(case.scratch, out, threads=1)
    assert out.getvalue() == case.files.data
    fixed = repair_set(case.scratch, durable=False, threads=1)
    assert (fixed.repaired == ()) == (report.state == "intact")
    after = verify_set(case.scratch, threads=1)
    assert after.state == "intact"
    originals = list(case.files.original.values())
    for shard in after.shards:
        assert shard.path is not None
        assert Path(shard.path).read_bytes() == originals[shard.index]


@settings(OPTIONS, max_examples=60)
@given(
    data=SIZES.flatmap(lambda n: st.binary(min_size=min(n, 64), max_size=min(n, 64)).map(lambda b: (b * 200)[:n])),
    k=st.integers(1, 6),
    m=st.integers(0, 4),
    code=st.sampled_from([("packets", 8), ("packets", 4), ("packets", 5), ("words", 8), ("words", 16), ("words", 4)]),
    frame=st.integers(1, 6),
    lost=st.sets(st.integers(0, 9), max_size=4),
    streamed=st.booleans(),
)
def test_any_code_any_size(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, k: int, m: int, code: tuple[Any, int], frame: int,
    lost: set[int], streamed: bool,
) -> None:  # fmt: skip
    layout, w = code
    base = tmp_path_factory.mktemp("any")
    unit = 64 * w if layout == "packets" else 64
    options = {"k": k, "m": m, "w": w, "layout": layout, "frame": 512 + frame * unit, "durable": False, "threads": 1}
    (base / "f").write_bytes(data)
    source: Any = io.BytesIO(data) if streamed else base / "f"
    report = encode_file(source, name="f", out=base / "s", **options)
    original = [Path(path).read_bytes() for path in report.paths]
    gone = sorted(lost & set(range(k + m)))[:m]
    for shard in gone:
        os.unlink(report.paths[shard])
    out = io.BytesIO()
    decode_file(base / "s", out, threads=1)
    assert out.getvalue() == data
    assert [shard.index for shard in repair_set(base / "s", durable=False, threads=1).repaired] == gone
    assert [Path(path).read_bytes() for path in report.paths] == original
    shutil.rmtree(base)
