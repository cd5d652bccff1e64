"""--hash and --key: what the commands say, and that none of them goes on without proof."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import CONTENT, Runner, corrupt, shard_path


@pytest.fixture
def key(source: Path) -> Path:
    path = source.parent / "key"
    path.write_bytes(os.urandom(32))
    return path


@pytest.fixture
def keyed(source: Path, key: Path, gfcode: Runner) -> Path:
    assert gfcode("encode", source, "-k", "4", "-m", "2", "--out", "shards", "--key", key, "-q").code == 0
    return source.parent / "shards"


def test_every_command_takes_the_key_and_says_what_was_checked(keyed: Path, key: Path, gfcode: Runner) -> None:
    corrupt(shard_path(keyed, 2), 9000)
    done = gfcode("verify", keyed, "--key", key)
    assert done.code == 3
    assert done.out.splitlines()[-2].endswith("; checked: blake3-keyed: authentic")
    assert gfcode("decode", keyed, "-o", "back", "--key", key).out.endswith("checked: blake3-keyed: authentic\n")
    assert Path("back").read_bytes() == CONTENT
    done = gfcode("repair", keyed, "--key", key)
    assert done.code == 0
    assert "checked: blake3-keyed: authentic" in done.out
    assert "check          blake3-keyed: authentic" in gfcode("info", shard_path(keyed, 2), "--key", key).out
    for command in ("verify", "decode"):
        report = gfcode(command, keyed, "--key", key, "--json", *(["-o", "b2"] if command == "decode" else [])).json
        assert report["check"] == "blake3-keyed: authentic"
    assert gfcode("repair", keyed, "--key", key, "--json").json["before"]["check"] == "blake3-keyed: authentic"


def test_other_checks_are_named(source: Path, gfcode: Runner) -> None:
    for name, meaning in (("xxh3-128", "against accidents"), ("blake3", "not authentic without a key")):
        report = gfcode("encode", source, "--hash", name, "--out", name, "--json").json
        assert report["check"].startswith(f"{name}: ")
        assert gfcode("verify", name).out.splitlines()[-2].endswith(meaning)


def test_no_key_no_result(keyed: Path, gfcode: Runner) -> None:
    for command in ("verify", "decode", "repair", "info"):
        done = gfcode(command, keyed, *(["-o", "back"] if command == "decode" else []))
        assert (done.code, done.out) == (1, "")
        assert "data.bin.000.gfs: the shard is keyed" in done.error
        assert "give the key" in done.error
    assert not Path("back").exists()


def test_key_on_a_set_without_one_is_refused(shards: Path, key: Path, gfcode: Runner) -> None:
    for command in ("verify", "decode", "repair", "info"):
        done = gfcode(command, shards, "--key", key, *(["-o", "back"] if command == "decode" else []))
        assert (done.code, done.out) == (1, "")
        assert "data.bin.000.gfs: the shard is not keyed (xxh3-128: against accidents)" in done.error


def test_keys_that_are_none_are_wrong_usage(keyed: Path, source: Path, gfcode: Runner) -> None:
    Path("short").write_text("password")
    for command in ("verify", "decode", "repair", "info"):
        done = gfcode(command, keyed, "--key", "short")
        assert done.code == 2
        assert "short has 8 bytes; a key file has 16 to 1048576" in done.error
    assert gfcode("encode", source, "--key", "short", "--out", "d").code == 2
    assert gfcode("encode", source, "--key", "nowhere", "--out", "d").error == "nowhere: No such file or directory"
    done = gfcode("encode", source, "--key", keyed.parent / "key", "--hash", "xxh3-128", "--out", "d")
    assert (done.code, "a key goes with blake3" in done.error) == (2, True)
    assert not Path("d").exists()
