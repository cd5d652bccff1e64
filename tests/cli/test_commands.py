"""The commands on small real files: what they write, print and refuse."""

import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import CONTENT, Runner, shard_path


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


def test_info(shards: Path, gfcode: Runner) -> None:
    done = gfcode("info", shard_path(shards, 5))
    assert (done.code, done.err) == (0, "")
    values = dict(re.split(r" {2,}", line, maxsplit=1) for line in done.out.splitlines())
    assert values["shard"] == "5 of 6 (parity)"
    assert values["name"] == "data.bin"
    assert values["size"] == "100,001 bytes, 97.7 KiB"
    assert values["polynomial"] == "0x11d"
    assert values["parity"] == "2 x 4 matrix, last row 1 2 4 8"
    assert values["file length"] == f"{shard_path(shards, 5).stat().st_size:,} bytes"
    done = gfcode("info", shards, "--json")
    assert done.code == 0
    assert [item["index"] for item in done.json["shards"]] == list(range(6))
    assert done.json["shards"][0]["metadata"]["parity"] == [[1, 1, 1, 1], [1, 2, 4, 8]]
    os.truncate(shard_path(shards, 5), 5000)
    length = f"{gfcode('info', shard_path(shards, 0), '--json').json['shards'][0]['file_length']:,}"
    assert f"file length    5,000 bytes, should be {length}" in gfcode("info", shard_path(shards, 5)).out


def test_info_of_what_is_no_shard(shards: Path, source: Path, gfcode: Runner) -> None:
    done = gfcode("info", source)
    assert (done.code, done.out) == (1, "")
    assert done.error.startswith(f"{source}: ")
    done = gfcode("info", source, "nowhere", shard_path(shards, 0), "--json")
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
    done = gfcode("verify", "nowhere")
    assert done.code == 1
    assert "nowhere" in done.error
    done = gfcode("decode", source, "--json")
    assert done.code == 1
    assert "no shard" in done.json["error"]
