"""The commands on small real files: what they write, print and refuse."""

import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Runner

K, M = 4, 2
#: Enough for several stripes of 4 KiB frames, with a short last one.
CONTENT = os.urandom(100_001)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a file in the current directory, which is the test's own."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data.bin"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def shards(source: Path, gfcode: Runner) -> Path:
    """Make a folder with the 4 + 2 shards of the file."""
    assert gfcode("encode", source, "-k", "4", "-m", "2", "--frame", "4KiB", "--out", "shards", "-q").code == 0
    return source.parent / "shards"


def shard(folder: Path, index: int) -> Path:
    return folder / f"data.bin.{index:03}.gfs"


def corrupt(path: Path, *offsets: int) -> None:
    content = bytearray(path.read_bytes())
    for offset in offsets:
        content[offset] ^= 0x55
    path.write_bytes(content)


def test_encode_names_shards_and_says_what_it_did(source: Path, gfcode: Runner) -> None:
    done = gfcode("encode", source, "--out", "d", "--json")
    assert (done.code, done.err) == (0, "")
    report = done.json
    assert (report["k"], report["m"], report["w"], report["layout"], report["family"]) == (
        10,
        4,
        8,
        "packets",
        "powers",
    )
    assert (report["size"], report["name"], report["frame_length"]) == (100_001, "data.bin", 65536)
    assert report["paths"] == [f"d/data.bin.{index:03}.gfs" for index in range(14)]
    assert sorted(os.listdir("d")) == [f"data.bin.{index:03}.gfs" for index in range(14)]
    assert report["bytes_written"] == sum(os.path.getsize(path) for path in report["paths"])


def test_encode_takes_every_option(source: Path, gfcode: Runner) -> None:
    done = gfcode(
        "encode", source, "-k", "3", "-m", "2", "--w", "16", "--matrix", "cauchy", "--layout", "words", "--frame", "8K",
        "--out", "a", "--out", "b", "--name", "other", "--engine", "numpy", "--threads", "1", "--json",
    )  # fmt: skip
    assert done.code == 0
    report = done.json
    assert (report["k"], report["m"], report["w"], report["layout"], report["family"]) == (3, 2, 16, "words", "cauchy")
    assert report["frame_length"] == 8192
    assert report["paths"] == [f"{'ab'[index % 2]}/other.{index:03}.gfs" for index in range(5)]
    assert gfcode("decode", "a", "b", "-o", "back", "--engine", "numba", "--threads", "2").code == 0
    assert Path("back").read_bytes() == CONTENT


def test_encode_in_words_for_people(source: Path, gfcode: Runner) -> None:
    done = gfcode("encode", source, "-k", "4", "-m", "2")
    assert (done.code, done.err) == (0, "")
    assert re.match(
        r"data\.bin: 97\.7 KiB in 4 \+ 2 shards of 1 stripe \(powers, w = 8, packets\); \S+ KiB written in ", done.out
    )
    assert len(done.out.splitlines()) == 1
    assert gfcode("encode", source, "-k", "4", "-m", "2", "--force", "-q").out == ""


def test_nothing_is_overwritten_without_force(shards: Path, source: Path, gfcode: Runner) -> None:
    before = {path: path.read_bytes() for path in shards.iterdir()}
    done = gfcode("encode", source, "-k", "4", "-m", "2", "--out", "shards")
    assert done.code == 1
    assert "data.bin.000.gfs exists" in done.error
    assert {path: path.read_bytes() for path in shards.iterdir()} == before
    done = gfcode("decode", "shards")
    assert done.code == 1
    assert "data.bin exists" in done.error
    source.write_bytes(b"other")
    assert gfcode("decode", "shards", "--force").code == 0
    assert source.read_bytes() == CONTENT
    assert gfcode("encode", source, "-k", "3", "-m", "1", "--out", "shards", "--force").code == 0
    assert len(list(shards.iterdir())) == 4


def test_decode_takes_the_name_of_the_set(shards: Path, source: Path, gfcode: Runner) -> None:
    source.unlink()
    done = gfcode("decode", shards)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("data.bin: 97.7 KiB in ")
    assert source.read_bytes() == CONTENT
    done = gfcode("decode", shards, "-o", "again", "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["path"], done.json["size"], done.json["rebuilt_blocks"]) == ("again", 100_001, 0)


def test_decode_says_what_was_missing(shards: Path, gfcode: Runner) -> None:
    shard(shards, 0).unlink()
    corrupt(shard(shards, 2), 5000)
    (shards / "notes.txt").write_text("no shard")
    done = gfcode("decode", shards, "-o", "back")
    assert (done.code, done.err) == (0, "")
    assert Path("back").read_bytes() == CONTENT
    lines = done.out.splitlines()
    assert lines[0].startswith(f"not used: {shards}/notes.txt: no shard")
    assert lines[1] == "no file holds shards 0"
    assert lines[2] == "damaged are shards 2"
    assert re.fullmatch(r"\d+ data blocks rebuilt from others", lines[3])
    assert "gfcode repair" in lines[4]
    report = gfcode("decode", shards, "-o", "back", "--force", "--json").json
    assert (report["missing_shards"], report["damaged_shards"]) == ([0], [2])


def test_verify_of_an_intact_set(shards: Path, gfcode: Runner) -> None:
    done = gfcode("verify", shards)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[-1] == "intact"
    assert [line.split()[2:] for line in lines[1:7]] == [["good", f"data.bin.{i:03}.gfs"] for i in range(6)]
    assert gfcode("verify", shards, "-q").out == ""
    done = gfcode("verify", shards, "--json")
    assert done.code == 0
    assert done.json["state"] == "intact"
    assert done.json["damage"] == {}


def test_verify_and_repair_of_damage_in_many_shards(shards: Path, source: Path, gfcode: Runner) -> None:
    """One shard gone, one cut short, two with a flipped bit in stripes of their own: all come back byte for byte."""
    before = {path.name: path.read_bytes() for path in shards.iterdir()}
    first, frame = 4096, 4096
    shard(shards, 1).unlink()
    os.truncate(shard(shards, 3), first + 5 * frame + 17)
    corrupt(shard(shards, 0), first + 2 * frame + 600)
    corrupt(shard(shards, 5), first + 3 * frame + 4000)
    done = gfcode("verify", shards)
    assert done.code == 3
    lines = done.out.splitlines()
    assert [line.split()[1] for line in lines[1:8]] == [
        "██x████",
        "░░░░░░░",
        "███████",
        "█████░░",
        "███████",
        "███x███",
        "1100100",
    ]
    assert lines[-1] == f"damaged: repairable: run `gfcode repair {shards}`"
    report = gfcode("verify", shards, "--json")
    assert report.code == 3
    assert report.json["state"] == "repairable"
    assert report.json["damage"] == {
        "0": [[2, 2, "checksum"]],
        "1": [[0, 6, "missing"]],
        "3": [[5, 6, "missing"]],
        "5": [[3, 3, "checksum"]],
    }
    done = gfcode("repair", shards)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[-1] == "repaired 4 shards: intact"
    assert f"shard 1: new: {shards}/data.bin.001.gfs: 7 frames rebuilt" in lines
    assert f"shard 3: repaired: {shards}/data.bin.003.gfs: 2 frames rebuilt" in lines
    assert {path.name: path.read_bytes() for path in shards.iterdir()} == before
    done = gfcode("repair", shards, "--json")
    assert done.code == 0
    assert (done.json["state"], done.json["repaired"]) == ("intact", [])
    assert gfcode("repair", shards).out.splitlines()[-1] == "intact"


def test_repair_elsewhere(shards: Path, gfcode: Runner) -> None:
    original = shard(shards, 2).read_bytes()
    corrupt(shard(shards, 2), 9000)
    damaged = shard(shards, 2).read_bytes()
    done = gfcode("repair", shards, "--out", "elsewhere", "--json")
    assert done.code == 0
    assert [(item["index"], item["path"]) for item in done.json["repaired"]] == [(2, "elsewhere/data.bin.002.gfs")]
    assert os.listdir("elsewhere") == ["data.bin.002.gfs"]
    assert Path("elsewhere/data.bin.002.gfs").read_bytes() == original
    assert shard(shards, 2).read_bytes() == damaged


def test_more_than_m_lost_is_4_everywhere(shards: Path, source: Path, gfcode: Runner) -> None:
    """Whole files gone: the line says how many shards are left and which are missing; nothing is written."""
    for index in range(M + 1):
        shard(shards, index).unlink()
    left = sorted(os.listdir(shards))
    source.unlink()
    for arguments in (["decode", "shards"], ["decode", "shards", "-o", "back"], ["decode", "shards", "-o", "-"]):
        done = gfcode(*arguments)
        assert (done.code, done.out) == (4, "")
        assert "all 7 stripes of 'data.bin'" in done.error
        assert "3 shards are here and 4 are needed" in done.error
        assert "0, 1, 2" in done.error
    done = gfcode("verify", "shards")
    assert (done.code, done.err) == (4, "")
    assert done.out.splitlines()[-1] == ("beyond repair: stripes 0-6 (7 of 7) have fewer than the 4 good frames needed")
    assert gfcode("verify", "shards", "--json").json["state"] == "beyond repair"
    done = gfcode("repair", "shards")
    assert (done.code, done.err) == (4, "")
    assert done.out.splitlines()[-1].endswith("needed; nothing was changed")
    assert os.listdir() == ["shards"]
    assert sorted(os.listdir(shards)) == left


def test_stripes_beyond_repair_are_named(shards: Path, source: Path, gfcode: Runner) -> None:
    """Three of six frames of stripes 2 and 5 are bad, in all six files: these stripes are lost, and named."""
    for index in range(6):
        corrupt(shard(shards, index), 4096 + (2 if index < 3 else 5) * 4096 + 700)
    done = gfcode("verify", shards)
    assert done.code == 4
    lines = done.out.splitlines()
    assert lines[7].split() == ["spare", "22!22!2"]
    assert lines[-1] == "beyond repair: stripes 2, 5 (2 of 7) have fewer than the 4 good frames needed"
    done = gfcode("decode", shards, "-o", "back")
    assert done.code == 4
    assert "2 of 7 stripes of 'data.bin' are beyond repair (stripe 2, 5)" in done.error
    done = gfcode("decode", shards, "-o", "back", "--json")
    assert (done.code, done.json["exit_code"]) == (4, 4)
    assert "beyond repair" in done.json["error"]
    assert sorted(os.listdir()) == ["data.bin", "shards"]
    assert gfcode("repair", shards, "--json").json["state"] == "beyond repair"


def test_names_mean_nothing(shards: Path, gfcode: Runner) -> None:
    """Two swapped, one renamed at random, one given twice, one of another set of the same size: all are told apart."""
    a, b = shard(shards, 0), shard(shards, 4)
    spare = shards / "spare"
    a.rename(spare)
    b.rename(a)
    spare.rename(b)
    shard(shards, 1).rename(shards / "q7XbT.doc")
    (shards / "copy").write_bytes(shard(shards, 2).read_bytes())
    Path("other").mkdir()
    Path("other/data.bin").write_bytes(os.urandom(len(CONTENT)))
    assert gfcode("encode", "other/data.bin", "-k", "4", "-m", "2", "--frame", "4KiB", "--out", "other").code == 0
    foreign = shard(Path("other"), 3)
    (shards / "foreign.gfs").write_bytes(foreign.read_bytes())
    done = gfcode("decode", shards, shard(shards, 5), "-o", "back")
    assert (done.code, done.err) == (0, "")
    assert Path("back").read_bytes() == CONTENT
    done = gfcode("verify", shards, shard(shards, 5))
    assert done.code == 0
    lines = done.out.splitlines()
    assert any(line.startswith(f"not used: {shards}/foreign.gfs: shard 3 of another set") for line in lines)
    assert any(line.startswith("not used:") and "second copy of shard 2" in line for line in lines)
    assert any(line.startswith("not used:") and line.endswith("given twice") for line in lines)
    for index, name in ((0, "data.bin.000.gfs"), (1, "data.bin.001.gfs"), (4, "data.bin.004.gfs")):
        assert f"shard {index}: holds shard {index}, whose name is {name}" in lines
    assert lines[-1] == "intact"


def test_one_of_two_sets_is_asked_for(shards: Path, source: Path, gfcode: Runner) -> None:
    report = gfcode("encode", source, "-k", "3", "-m", "1", "--name", "second", "--out", "shards", "--json").json
    done = gfcode("verify", shards)
    assert done.code == 1
    assert report["set_id"] in done.error
    done = gfcode("verify", shards, "--set", report["set_id"][:9], "--json")
    assert done.code == 0
    assert done.json["name"] == "second"
    done = gfcode("decode", shards, "--set", "xyz")
    assert done.code == 2
    assert "'xyz'" in done.error


def test_a_lost_directory_is_no_obstacle(source: Path, gfcode: Runner) -> None:
    outs = [f"disk{index}" for index in range(6)]
    assert gfcode("encode", source, "-k", "4", "-m", "2", *(x for out in outs for x in ("--out", out))).code == 0
    original = Path("disk3/data.bin.003.gfs").read_bytes()
    Path("disk3/data.bin.003.gfs").unlink()
    Path("disk3").rmdir()
    assert gfcode("verify", *outs).code == 3
    assert gfcode("decode", *outs, "-o", "back").code == 0
    assert Path("back").read_bytes() == CONTENT
    Path("disk3").mkdir()
    assert gfcode("repair", *outs).code == 0
    assert Path("disk3/data.bin.003.gfs").read_bytes() == original


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 4 * 3584 - 1, 4 * 3584, 4 * 3584 + 1])
def test_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gfcode: Runner, size: int) -> None:
    monkeypatch.chdir(tmp_path)
    content = os.urandom(size)
    Path("data.bin").write_bytes(content)
    assert gfcode("encode", "data.bin", "-k", "4", "-m", "2", "--frame", "4KiB", "--out", "d").code == 0
    for index in (0, 5):
        shard(Path("d"), index).unlink()
    assert gfcode("verify", "d").code == 3
    assert gfcode("repair", "d").code == 0
    assert gfcode("decode", "d", "--force").code == 0
    assert Path("data.bin").read_bytes() == content


def test_info(shards: Path, gfcode: Runner) -> None:
    done = gfcode("info", shard(shards, 5))
    assert (done.code, done.err) == (0, "")
    values = dict(re.split(r" {2,}", line, maxsplit=1) for line in done.out.splitlines())
    assert values["shard"] == "5 of 6 (parity)"
    assert values["name"] == "data.bin"
    assert values["size"] == "100,001 bytes, 97.7 KiB"
    assert values["polynomial"] == "0x11d"
    assert values["parity"] == "2 x 4 matrix, last row 1 2 4 8"
    assert values["file length"] == f"{shard(shards, 5).stat().st_size:,} bytes"
    done = gfcode("info", shards, "--json")
    assert done.code == 0
    assert [item["index"] for item in done.json["shards"]] == list(range(6))
    assert done.json["shards"][0]["metadata"]["parity"] == [[1, 1, 1, 1], [1, 2, 4, 8]]
    os.truncate(shard(shards, 5), 5000)
    length = f"{gfcode('info', shard(shards, 0), '--json').json['shards'][0]['file_length']:,}"
    assert f"file length    5,000 bytes, should be {length}" in gfcode("info", shard(shards, 5)).out


def test_info_of_what_is_no_shard(shards: Path, source: Path, gfcode: Runner) -> None:
    done = gfcode("info", source)
    assert (done.code, done.out) == (1, "")
    assert done.error.startswith(f"{source}: ")
    done = gfcode("info", source, "nowhere", shard(shards, 0), "--json")
    assert done.code == 1
    assert len(done.json["shards"]) == 1
    assert set(done.json["errors"]) == {str(source), "nowhere"}
    assert done.json["exit_code"] == 1
    assert "1 more path" in done.json["error"]
    Path("empty").mkdir()
    assert "no shard file" in gfcode("info", "empty").error


def test_streams_have_no_size_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gfcode: Runner) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    pid = os.fork()
    if pid == 0:
        with open("fifo", "wb") as fifo:
            fifo.write(CONTENT)
        os._exit(0)
    done = gfcode("encode", "fifo", "-k", "4", "-m", "2", "--out", "d")
    os.waitpid(pid, 0)
    assert done.code == 0
    assert "size           unknown, it was a stream" in gfcode("info", "d/fifo.000.gfs").out
    assert gfcode("decode", "d", "-o", "back").code == 0
    assert Path("back").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-k", "250", "-m", "125"], "GF(2^8)"),
        (["-k", "10", "-m", "5", "--matrix", "powers"], "{0,3,5,12,13}"),
        (["--matrix", "nonsense"], "'nonsense'"),
        (["--frame", "100"], "100 bytes are too short"),
        (["--frame", "1GiB"], "too long"),
        (["--w", "17"], "17"),
        (["--layout", "words", "--w", "5"], "'words'"),
        (["--name", "a/b"], "'a/b'"),
        (["-m", "-1"], "-1"),
    ],
)
def test_parameters_that_no_code_has_are_wrong_usage(
    source: Path, gfcode: Runner, arguments: list[str], words: str
) -> None:
    done = gfcode("encode", source, *arguments, "--out", "d")
    assert (done.code, done.out) == (2, "")
    assert words in done.error
    assert os.listdir() == ["data.bin"]


def test_engine_is_a_demand(source: Path, gfcode: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from gfcode.engine import registry
    from gfcode.errors import EngineUnavailableError

    monkeypatch.setitem(registry._loaded, "cuda", EngineUnavailableError("no GPU here"))
    for environment in ("", "cuda"):
        if environment:
            monkeypatch.setenv("GFCODE_ENGINE", environment)
        done = gfcode("encode", source, "--out", "d", *([] if environment else ["--engine", "cuda"]))
        assert (done.code, done.out) == (1, "")
        assert "no GPU here" in done.error
    assert os.listdir() == ["data.bin"]


def test_missing_and_unreadable_inputs(source: Path, gfcode: Runner) -> None:
    assert gfcode("encode", "nowhere").error == "nowhere: No such file or directory"
    assert gfcode("encode", ".").code == 1
    done = gfcode("verify", "nowhere")
    assert done.code == 1
    assert "nowhere" in done.error
    done = gfcode("decode", source, "--json")
    assert done.code == 1
    assert "no shard" in done.json["error"]
