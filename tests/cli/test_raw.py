"""`gfcode raw`: headerless shards from the command line."""

from pathlib import Path

import pytest

from gfcode.codec.presets import PRESETS
from tests.cli.conftest import Runner

CODE = ("--preset", "isa-l-rs", "-k", "10", "-m", "4")


@pytest.fixture
def raw_shards(source: Path, gfcode: Runner) -> list[Path]:
    """Make the 14 raw shards of the file."""
    done = gfcode("raw", "encode", source, *CODE, "--out", "raw", "--name", "s")
    assert done.code == 0, done.err
    assert "10 + 4 shards" in done.out
    return [source.parent / "raw" / f"s.{index}" for index in range(14)]


def contents(paths: list[Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths]


def test_presets_are_listed(gfcode: Runner) -> None:
    assert set(gfcode("raw", "presets", "--json").json) == set(PRESETS)
    text = gfcode("raw", "presets").out
    assert len(text.splitlines()) == len(PRESETS)
    assert "Jerasure cauchy_good (w 8, packet-bytes 2048)" in text


def test_lost_shards_come_back(raw_shards: list[Path], gfcode: Runner) -> None:
    before = contents(raw_shards)
    for index in (3, 7):
        raw_shards[index].unlink()
    # As a shell expands shard.*: 0, 1, 10, 11, 12, 13, 2, ...
    files = sorted(raw_shards[0].parent.iterdir())
    done = gfcode("raw", "repair", *files, *CODE, "--missing", "3,7")
    assert done.code == 0, done.err
    assert "by the numbers in their names" in done.out
    assert "2 shards made from 10 shards, checked by 2 more" in done.out
    assert contents(raw_shards) == before
    assert sorted(path.name for path in raw_shards[0].parent.iterdir()) == sorted(path.name for path in raw_shards)


def test_what_is_missing_can_be_told_from_the_names(raw_shards: list[Path], gfcode: Runner) -> None:
    before = contents(raw_shards)
    for index in (0, 5, 10, 13):
        raw_shards[index].unlink()
    files = sorted(raw_shards[0].parent.iterdir())
    done = gfcode("raw", "repair", *files, *CODE, "--json")
    # 0 is not among the numbers, which could then count from 1.
    assert done.code == 2
    assert "may count from 1" in done.json["error"]
    done = gfcode("raw", "repair", *files, *CODE, "--missing", "0,5,10,13")
    assert done.code == 0, done.err
    assert "no shard is left over to check" in done.out
    assert contents(raw_shards) == before


def test_by_order_into_named_files(raw_shards: list[Path], gfcode: Runner, tmp_path: Path) -> None:
    files = [path for index, path in enumerate(raw_shards) if index not in {2, 11}]
    renamed = [
        path.rename(path.with_name(f"disk-{letter}")) for path, letter in zip(files, "abcdefghijkl", strict=True)
    ]
    targets = ("--to", tmp_path / "two", "--to", tmp_path / "eleven")
    done = gfcode("raw", "repair", *renamed, *CODE, "--missing", "11,2", *targets, "--json")
    assert done.code == 0, done.err
    assert done.json["made"] == {"2": str(tmp_path / "two"), "11": str(tmp_path / "eleven")}
    assert (tmp_path / "two").read_bytes() == raw_shards[2].read_bytes()
    assert (tmp_path / "eleven").read_bytes() == raw_shards[11].read_bytes()
    assert gfcode("raw", "repair", *renamed, *CODE, "--missing", "2,11").code == 2
    assert "1 name for 2 missing shards" in gfcode(
        "raw", "repair", *renamed, *CODE, "--missing", "2,11", "--to", "x"
    ).error  # fmt: skip


def test_wrong_order_is_noticed(raw_shards: list[Path], gfcode: Runner, tmp_path: Path) -> None:
    files = sorted(path for path in raw_shards if path.name != "s.3")
    done = gfcode("raw", "repair", *files, *CODE, "--missing", "3", "--by-order", "--to", tmp_path / "three")
    assert done.code == 1
    assert "do not belong together" in done.error
    assert not (tmp_path / "three").exists()


def test_wrong_shards_are_named_and_replaced(raw_shards: list[Path], gfcode: Runner) -> None:
    before = contents(raw_shards)
    for index, offset in ((5, 1000), (12, 1001), (5, 1002)):
        content = bytearray(raw_shards[index].read_bytes())
        content[offset] ^= 0x55
        raw_shards[index].write_bytes(content)
    done = gfcode("raw", "verify", *raw_shards, *CODE)
    assert done.code == 3
    assert f"shard 5 is wrong: {raw_shards[5]}: 2 bytes at 1000, 1002" in done.out
    assert f"shard 12 is wrong: {raw_shards[12]}: 1 byte at 1001" in done.out
    report = gfcode("raw", "verify", *raw_shards, *CODE, "--json").json
    assert report["state"] == "repairable"
    assert [shard["index"] for shard in report["wrong"]] == [5, 12]
    assert "--force" in gfcode("raw", "repair", *raw_shards, *CODE, "--missing", "5,12").error
    assert gfcode("raw", "repair", *raw_shards, *CODE, "--missing", "5,12", "--force", "-q").code == 0
    assert contents(raw_shards) == before
    done = gfcode("raw", "verify", *raw_shards, *CODE)
    assert done.code == 0
    assert "consistent: 14 shards" in done.out


def test_another_preset_is_beyond_repair(raw_shards: list[Path], gfcode: Runner) -> None:
    done = gfcode("raw", "verify", *raw_shards, "--preset", "zfec", "-k", "10", "-m", "4")
    assert done.code == 4
    assert "4 spare shards cannot tell which" in done.out
    assert "beyond repair" in done.out


def test_too_few_shards(raw_shards: list[Path], gfcode: Runner, tmp_path: Path) -> None:
    done = gfcode("raw", "repair", *raw_shards[:9], *CODE, "--missing", "9", "--out", tmp_path / "new")
    assert done.code == 4
    assert "any k = 10 shards are needed and 9 are there" in done.error
    assert not (tmp_path / "new").exists()
    done = gfcode("raw", "verify", *raw_shards[:10], *CODE, "--by-name")
    assert done.code == 1
    assert "none to compare" in done.error


def test_existing_targets_stay(raw_shards: list[Path], gfcode: Runner) -> None:
    files = [path for index, path in enumerate(raw_shards) if index != 3]
    assert gfcode("raw", "repair", *files, *CODE, "--missing", "3").code == 1
    assert gfcode("raw", "encode", raw_shards[0], *CODE, "--out", raw_shards[0].parent, "--name", "s").code in {1, 2}


def test_uncertified_codes(source: Path, gfcode: Runner) -> None:
    code = ("--preset", "isa-l-rs", "-k", "6", "-m", "5")
    done = gfcode("raw", "encode", source, *code, "--out", "raw")
    assert done.code == 2
    assert "--allow-uncertified" in done.error
    done = gfcode("raw", "encode", source, *code, "--out", "raw", "--allow-uncertified")
    assert done.code == 0
    assert done.err.startswith("gfcode: warning: preset 'isa-l-rs' with k = 6, m = 5")
    bad = {0, 3, 5, 8, 9}
    files = [Path("raw") / f"data.bin.{index}" for index in range(11) if index not in bad]
    done = gfcode("raw", "repair", *files, *code, "--allow-uncertified", "--missing", "0,3,5", "--out", "new")
    assert done.code == 4
    assert "any one of shards 0, 3, 5, 8, 9 besides would be enough" in done.error


def test_striped_with_short_cells(source: Path, gfcode: Runner) -> None:
    code = ("--preset", "hdfs-rs", "-k", "6", "-m", "3", "--unit", "4KiB")
    assert gfcode("raw", "encode", source, *code, "--out", "raw", "--name", "blk", "--short-last").code == 0
    paths = [Path("raw") / f"blk.{index}" for index in range(9)]
    before = contents(paths)
    assert [len(shard) for shard in before] == [18_081, *[16_384] * 5, *[18_081] * 3]
    for index in (0, 1, 7):
        paths[index].unlink()
    files = sorted(Path("raw").iterdir())
    # One of the parities that are left says how long the last cell was.
    done = gfcode("raw", "repair", *files, *code, "--missing", "0,1,7")
    assert done.code == 0, done.err
    assert contents(paths) == before
    paths[1].unlink()
    done = gfcode("raw", "repair", *files, *code, "--missing", "1", "--size", "100002")
    assert done.code == 1
    assert "has 18081 bytes, where shard 6 of a file of 100002 bytes has 18082" in done.error


def test_packet_codes(source: Path, gfcode: Runner) -> None:
    code = ("--preset", "jerasure-liberation", "-k", "5", "-m", "2", "--w", "5", "--packet-bytes", "512")
    assert gfcode("raw", "encode", source, *code, "--out", "raw").code == 0
    paths = [Path("raw") / f"data.bin.{index}" for index in range(7)]
    before = contents(paths)
    paths[1].unlink()
    paths[2].unlink()
    assert gfcode("raw", "repair", *(path for path in paths if path.exists()), *code).code == 0
    assert contents(paths) == before
    wrong = ("--preset", "jerasure-liberation", "-k", "5", "-m", "2", "--w", "7", "--packet-bytes", "512")
    done = gfcode("raw", "verify", *paths, *wrong)
    assert done.code == 1
    assert "no whole number of strips" in done.error


@pytest.mark.parametrize("text", ["3;7", "x", "", "1.5"])
def test_missing_is_a_list_of_numbers(raw_shards: list[Path], gfcode: Runner, text: str) -> None:
    done = gfcode("raw", "repair", *raw_shards[1:], *CODE, "--missing", text)
    assert done.code == 2
    assert "list of shard indices" in done.error
