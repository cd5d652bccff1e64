"""`verify --deep` and `repair --deep`: what they say, and their exit codes."""

from pathlib import Path

from gfcode.pipeline.frame import XXH3, seal
from tests.cli.conftest import Runner, shard_path


def change_and_seal(path: Path, stripe: int) -> None:
    content = bytearray(path.read_bytes())
    at = 4096 + 4096 * stripe
    content[at + 700] ^= 1
    seal(memoryview(content)[at : at + 4096], XXH3)
    path.write_bytes(content)


def test_wrong_parity_with_a_right_checksum(shards: Path, gfcode: Runner) -> None:
    before = shard_path(shards, 5).read_bytes()
    change_and_seal(shard_path(shards, 5), 2)
    assert gfcode("verify", shards).code == 0
    done = gfcode("verify", shards, "--deep")
    assert done.code == 3
    lines = done.out.splitlines()
    assert lines[-2] == "parity compared in 7 stripes"
    assert lines[-1] == f"damaged: repairable: run `gfcode repair --deep {shards}`"
    assert gfcode("verify", shards, "--deep", "--json").json["damage"] == {"5": [[2, 2, "parity"]]}
    assert gfcode("repair", shards, "-q").code == 0
    assert gfcode("verify", shards, "--deep", "-q").code == 3
    done = gfcode("repair", shards, "--deep")
    assert done.out.splitlines()[-1] == "repaired 1 shard: intact"
    assert shard_path(shards, 5).read_bytes() == before


def test_contradiction_that_nothing_resolves(shards: Path, gfcode: Runner) -> None:
    change_and_seal(shard_path(shards, 5), 2)
    shard_path(shards, 0).unlink()
    done = gfcode("verify", shards, "--deep")
    assert done.code == 4
    assert done.out.splitlines()[-1].startswith("beyond repair: 1 of 7 stripes of 'data.bin' contradict themselves")
    done = gfcode("repair", shards, "--deep")
    assert (done.code, "nothing was changed" in done.out) == (4, True)
    shard_path(shards, 1).unlink()
    done = gfcode("verify", shards, "--deep")
    assert done.out.splitlines()[-2] == "parity compared in 0 stripes, 7 stripes could not be (no frame to spare)"
