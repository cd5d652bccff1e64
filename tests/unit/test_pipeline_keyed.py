"""Hashes by choice, and keys: what is forged without the key is lost, and nothing unproven passes for authentic."""

import itertools
import json
import os
from functools import partial
from pathlib import Path

import pytest
from blake3 import blake3

from gfcode.errors import AuthenticationError, ParameterError, TargetExistsError, UnrecoverableError
from gfcode.pipeline import decode_file, encode_file, inspect_shard, repair_set, verify_set
from gfcode.pipeline.frame import BLAKE3, HEADER_BYTES, XXH3, is_sealed, keyed_hash, seal
from gfcode.pipeline.keys import KEY_CONTEXT, read_key
from gfcode.pipeline.report import FrameStatus
from tests.unit.shard_files import FileSet, make_set, random_bytes

DATA = random_bytes(3 * 512 * 20 + 9)
SECRET = b"correct horse battery staple\n"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def keyed(tmp_path: Path, key: Path) -> FileSet:
    return make_set(tmp_path, DATA, 3, 2, frame=1024, key=key)


def frames(files: FileSet, shard: int) -> list[bytes]:
    content = files.paths[shard].read_bytes()
    at = [0, *(files.offset(stripe) for stripe in range(files.report.stripes)), len(content)]
    return [content[first:end] for first, end in itertools.pairwise(at)]


def forge(files: FileSet, shard: int, stripe: int, hash_id: int) -> None:
    """Change a block and give it a hash that anybody can compute."""
    at = files.offset(stripe)
    frame = bytearray(files.original[str(files.paths[shard])][at : at + 1024])
    frame[HEADER_BYTES] ^= 1
    frame[26:28] = hash_id.to_bytes(2, "little")
    seal(frame, {1: XXH3, 2: BLAKE3, 3: keyed_hash(bytes(32))}[hash_id])
    files.change(shard, at, bytes(frame))


def test_hashes_are_blake3s_first_16_bytes(tmp_path: Path, key: Path) -> None:
    plain = make_set(tmp_path / "a", DATA, checksum="blake3")
    keyed = make_set(tmp_path / "b", DATA, key=key)
    secret = blake3(SECRET, derive_key_context=KEY_CONTEXT).digest()
    for files, hash_id, name, used in (
        (plain, 2, "blake3", blake3),
        (keyed, 3, "blake3-keyed", partial(blake3, key=secret)),
    ):
        for frame in (*frames(files, 0), *frames(files, 4)):
            assert frame[8:24] == used(frame[24:]).digest()[:16]
            assert int.from_bytes(frame[26:28], "little") == hash_id
        assert json.loads(frames(files, 1)[0][512:].rstrip(b"\0"))["hash"] == name


def test_blake3_set_lives_as_any_other(tmp_path: Path) -> None:
    files = make_set(tmp_path, DATA, checksum="blake3")
    files.remove(0)
    files.change(1, files.offset(2) + 600)
    assert files.verify().check.startswith("blake3: against accidents")
    files.assert_decodes()
    files.repair()
    files.assert_original()
    assert inspect_shard(files.paths[0]).check.startswith("blake3: ")


def test_with_its_key_a_keyed_set_lives_as_any_other(keyed: FileSet, key: Path) -> None:
    keyed.remove(0)
    keyed.change(1, keyed.offset(2) + 600)
    keyed.change(2, 600)
    report = keyed.verify(key=key)
    assert (report.state, report.check) == ("repairable", "blake3-keyed: authentic")
    keyed.assert_decodes(key=key)
    assert keyed.decode(key=key)[1].check == "blake3-keyed: authentic"
    keyed.repair(key=key)
    keyed.assert_original()
    assert keyed.report.check == inspect_shard(keyed.paths[0], key=key).check == "blake3-keyed: authentic"


def test_stream_with_a_key(tmp_path: Path, key: Path) -> None:
    with (tmp_path / "key").open("rb") as stream:
        encode_file(stream, k=2, m=1, out=tmp_path / "s", name="stream", key=key, durable=False)
    decode_file(tmp_path / "s", tmp_path / "out", key=key, durable=False)
    assert (tmp_path / "out").read_bytes() == SECRET


@pytest.mark.parametrize("hash_id", [1, 2, 3])
def test_forged_frames_are_erasures(keyed: FileSet, key: Path, hash_id: int) -> None:
    for stripe in range(21):
        forge(keyed, stripe % 5, stripe, hash_id)
        forge(keyed, (stripe + 1) % 5, stripe, hash_id)
    report = keyed.verify(key=key)
    assert (report.damage == FrameStatus.CHECKSUM).sum() == 42
    assert report.state == "repairable"
    keyed.assert_decodes(key=key)
    keyed.repair(key=key)
    keyed.assert_original()
    for shard in (0, 1, 2):
        forge(keyed, shard, 5, hash_id)
    with pytest.raises(UnrecoverableError):
        keyed.decode(key=key)


@pytest.mark.parametrize("hash_id", [1, 2, 3])
def test_forged_metadata_is_not_read(keyed: FileSet, key: Path, hash_id: int) -> None:
    """A shard whose metadata frame is forged is damaged; the name and size in it count for nothing."""
    head = bytearray(keyed.original[str(keyed.paths[0])][:4096])
    head[512:] = head[512:].replace(b'"name": "file"', b'"name": "evil"').replace(b"blake3-keyed", b"xxh3-128    ")
    head[26:28] = hash_id.to_bytes(2, "little")
    seal(head, {1: XXH3, 2: BLAKE3, 3: keyed_hash(bytes(32))}[hash_id])
    keyed.change(0, 0, bytes(head))
    report = keyed.verify(key=key)
    assert (report.name, report.state, report.strays) == ("file", "repairable", ())
    assert report.shards[0].metadata is FrameStatus.CHECKSUM
    keyed.repair(key=key)
    keyed.assert_original()


def test_without_the_key_everything_is_refused(keyed: FileSet, tmp_path: Path) -> None:
    keyed.change(1, keyed.offset(2) + 600)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for run in (keyed.verify, keyed.decode, keyed.repair, lambda: inspect_shard(keyed.paths[0])):
        with pytest.raises(AuthenticationError, match=r"file\.000\.gfs: the shard is keyed, .*; give the key"):
            run()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_another_key_is_refused(keyed: FileSet, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(SECRET + b"\n")
    for run in (keyed.verify, keyed.decode, keyed.repair):
        with pytest.raises(AuthenticationError, match="not authentic: made with another key, or changed"):
            run(key=other)
    with pytest.raises(AuthenticationError, match="not authentic"):
        inspect_shard(keyed.paths[0], key=other)


@pytest.mark.parametrize("checksum", ["xxh3-128", "blake3"])
def test_set_without_a_key_is_refused_where_one_is_given(tmp_path: Path, key: Path, checksum: str) -> None:
    """Or else a whole set could be replaced by one without a key."""
    files = make_set(tmp_path, DATA, checksum=checksum)
    for run in (files.verify, files.decode, files.repair):
        with pytest.raises(AuthenticationError, match=rf"not keyed \({checksum}: .*gives no proof of the key"):
            run(key=key)
    with pytest.raises(AuthenticationError, match="not keyed"):
        inspect_shard(files.paths[0], key=key)


def test_planted_set_is_a_stray(keyed: FileSet, key: Path, tmp_path: Path) -> None:
    """More shards of a set without a key than are left of the keyed one."""
    planted = make_set(tmp_path / "planted", b"x" * len(DATA), 3, 2, frame=1024)
    for path in planted.paths:
        os.link(path, keyed.directory / f"0{path.name}")
    keyed.remove(0, 1)
    report = keyed.verify(key=key)
    assert (report.state, len(report.strays)) == ("repairable", 5)
    keyed.assert_decodes(key=key)
    # Without a key the planted set can be read, and the keyed shards are not taken for damage of it.
    assert verify_set(keyed.directory).state == "intact"


def test_keyed_shards_are_not_repaired_as_damage_of_another_set(keyed: FileSet, tmp_path: Path) -> None:
    planted = make_set(tmp_path / "planted", b"x" * len(DATA), 3, 2, frame=1024)
    for shard in (0, 1, 2):
        planted.paths[shard].replace(keyed.paths[shard])
    before = {shard: keyed.paths[shard].read_bytes() for shard in (3, 4)}
    repair_set(keyed.directory, durable=False)
    assert {shard: keyed.paths[shard].read_bytes() for shard in (3, 4)} == before


def test_force_needs_the_key_of_what_it_replaces(keyed: FileSet, key: Path, tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(b"new")
    with pytest.raises(TargetExistsError, match=r"file\.000\.gfs is a shard of a keyed set; give its key"):
        encode_file(source, k=2, m=1, out=keyed.directory, force=True, durable=False)
    keyed.assert_original()
    encode_file(source, k=2, m=1, out=keyed.directory, force=True, durable=False, key=key)
    assert len(os.listdir(keyed.directory)) == 3
    plain = make_set(tmp_path / "plain", DATA, 3, 2)
    encode_file(source, k=2, m=1, out=plain.directory, name="file", force=True, durable=False, key=key)
    assert len(os.listdir(plain.directory)) == 3


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"x" * 15)
    with pytest.raises(ParameterError, match="key has 15 bytes; a key file has 16 to 1048576"):
        read_key(path)
    path.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(ParameterError, match="more than 1048576 bytes"):
        read_key(path)
    path.write_bytes(b"x" * 16)
    frame = bytearray(600)
    seal(frame, read_key(path))
    assert is_sealed(frame, keyed_hash(blake3(b"x" * 16, derive_key_context=KEY_CONTEXT).digest()))
    path.write_bytes(b"x" * 17)
    assert not is_sealed(frame, read_key(path))
    with pytest.raises(FileNotFoundError):
        read_key(tmp_path / "nothing")


def test_hash_and_key_must_go_together(tmp_path: Path, key: Path) -> None:
    with pytest.raises(ParameterError, match="a key goes with blake3, not with 'xxh3-128'"):
        encode_file(key, out=tmp_path / "s", checksum="xxh3-128", key=key)
    with pytest.raises(ParameterError, match="needs a key"):
        encode_file(key, out=tmp_path / "s", checksum="blake3-keyed")
    assert not (tmp_path / "s").exists()
