"""Damage of every kind on real shards: what is reported, what comes back, what is beyond repair."""

import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import CONTENT, Runner, corrupt, shard_path


def test_decode_says_what_was_missing(shards: Path, gfcode: Runner) -> None:
    shard_path(shards, 0).unlink()
    corrupt(shard_path(shards, 2), 5000)
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
    shard_path(shards, 1).unlink()
    os.truncate(shard_path(shards, 3), first + 5 * frame + 17)
    corrupt(shard_path(shards, 0), first + 2 * frame + 600)
    corrupt(shard_path(shards, 5), first + 3 * frame + 4000)
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
    original = shard_path(shards, 2).read_bytes()
    corrupt(shard_path(shards, 2), 9000)
    damaged = shard_path(shards, 2).read_bytes()
    done = gfcode("repair", shards, "--out", "elsewhere", "--json")
    assert done.code == 0
    assert [(item["index"], item["path"]) for item in done.json["repaired"]] == [(2, "elsewhere/data.bin.002.gfs")]
    assert os.listdir("elsewhere") == ["data.bin.002.gfs"]
    assert Path("elsewhere/data.bin.002.gfs").read_bytes() == original
    assert shard_path(shards, 2).read_bytes() == damaged


def test_more_than_m_lost_is_4_everywhere(shards: Path, source: Path, gfcode: Runner) -> None:
    """Whole files gone: the line says how many shards are left and which are missing; nothing is written."""
    for index in range(3):
        shard_path(shards, index).unlink()
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
        corrupt(shard_path(shards, index), 4096 + (2 if index < 3 else 5) * 4096 + 700)
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
    a, b = shard_path(shards, 0), shard_path(shards, 4)
    spare = shards / "spare"
    a.rename(spare)
    b.rename(a)
    spare.rename(b)
    shard_path(shards, 1).rename(shards / "q7XbT.doc")
    (shards / "copy").write_bytes(shard_path(shards, 2).read_bytes())
    Path("other").mkdir()
    Path("other/data.bin").write_bytes(os.urandom(len(CONTENT)))
    assert gfcode("encode", "other/data.bin", "-k", "4", "-m", "2", "--frame", "4KiB", "--out", "other").code == 0
    foreign = shard_path(Path("other"), 3)
    (shards / "foreign.gfs").write_bytes(foreign.read_bytes())
    done = gfcode("decode", shards, shard_path(shards, 5), "-o", "back")
    assert (done.code, done.err) == (0, "")
    assert Path("back").read_bytes() == CONTENT
    done = gfcode("verify", shards, shard_path(shards, 5))
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
    done = gfcode("decode", shards, "-o", "back")
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
        shard_path(Path("d"), index).unlink()
    assert gfcode("verify", "d").code == 3
    assert gfcode("repair", "d").code == 0
    assert gfcode("decode", "d", "--force").code == 0
    assert Path("data.bin").read_bytes() == content
