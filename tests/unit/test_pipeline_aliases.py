"""Files that have several names: a repair must replace the shard, not an alias of it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import gfcode


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("alias", ["a.gfs", "z.gfs"])
@pytest.mark.parametrize("offset", [600, 4096 + 600], ids=["metadata", "block"])
def test_the_shard_itself_is_repaired(
    tmp_path: Path, link: Callable[[str, str], None], alias: str, offset: int
) -> None:
    source, folder = tmp_path / "f", tmp_path / "d"
    source.write_bytes(os.urandom(20_000))
    report = gfcode.encode_file(source, k=4, m=2, frame=4096, out=folder, durable=False)
    shard = Path(report.paths[1])
    good = shard.read_bytes()
    link(str(shard), str(folder / alias))
    bad = bytearray(good)
    bad[offset] ^= 1
    with shard.open("r+b") as file:
        file.write(bad)
    done = gfcode.repair_set(folder, durable=False)
    assert [item.path for item in done.repaired] == [str(shard)]
    assert shard.read_bytes() == good
    after = gfcode.verify_set(folder)
    assert after.state == "intact"
    assert after.shards[1].path == str(shard)
    assert [Path(stray.path).name for stray in after.strays] == [alias]


def test_a_link_alone_is_the_shard(tmp_path: Path) -> None:
    source, folder, elsewhere = tmp_path / "f", tmp_path / "d", tmp_path / "e"
    source.write_bytes(os.urandom(20_000))
    report = gfcode.encode_file(source, k=4, m=2, frame=4096, out=folder, durable=False)
    elsewhere.mkdir()
    shard = Path(report.paths[0])
    shard.rename(elsewhere / shard.name)
    shard.symlink_to(elsewhere / shard.name)
    assert gfcode.verify_set(folder).state == "intact"
    assert gfcode.verify_set([folder, elsewhere]).shards[0].path == str(elsewhere / shard.name)


def test_a_directory_without_a_name_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "f"
    source.write_bytes(b"x")
    with pytest.raises(gfcode.ParameterError, match="empty name"):
        gfcode.encode_file(source, out="")
