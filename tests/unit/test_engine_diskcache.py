"""The disk cache of kernels: whatever is wrong with it costs time, one warning at most, and never a wrong entry."""

import os
import threading
import warnings
from pathlib import Path

import pytest

from gfcode.engine import diskcache
from gfcode.engine.diskcache import ENVIRONMENT_VARIABLE, DiskCache, cache_directory


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(diskcache, "_warnings_given", [])
    return tmp_path / "cache"


def only_entry(folder: Path) -> Path:
    (entry,) = (folder / "kernels").iterdir()
    return entry


def test_entries_come_back_by_key(folder: Path) -> None:
    cache = DiskCache("kernels")
    assert cache.load(b"key") is None
    cache.store(b"key", b"payload")
    cache.store(b"other", b"")
    assert cache.load(b"key") == b"payload"
    assert cache.load(b"other") == b""
    cache.store(b"key", b"new")
    assert cache.load(b"key") == b"new"
    assert DiskCache("other kernels").load(b"key") is None
    assert len(list((folder / "kernels").iterdir())) == 2


def test_damaged_entries_are_misses_and_are_replaced(folder: Path) -> None:
    cache = DiskCache("kernels")
    cache.store(b"key", b"payload")
    good = only_entry(folder).read_bytes()
    damaged = [good[:cut] for cut in range(len(good))]
    damaged += [good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :] for i in range(len(good))]
    damaged += [good + b"x", b"", os.urandom(100)]
    for content in damaged:
        only_entry(folder).write_bytes(content)
        assert cache.load(b"key") is None
    cache.store(b"key", b"payload")
    assert cache.load(b"key") == b"payload"


def test_an_entry_under_another_name_is_a_miss(folder: Path) -> None:
    cache = DiskCache("kernels")
    cache.store(b"one", b"first")
    first = only_entry(folder)
    cache.store(b"two", b"second")
    (second,) = (entry for entry in (folder / "kernels").iterdir() if entry != first)
    second.write_bytes(first.read_bytes())
    assert cache.load(b"two") is None


@pytest.mark.parametrize("obstacle", ["file for directory", "file for folder", "device", "long name"])
def test_an_unusable_directory_warns_once(
    obstacle: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if obstacle == "file for directory":
        folder.write_text("in the way")
    elif obstacle == "file for folder":
        folder.mkdir()
        (folder / "kernels").write_text("in the way")
    elif obstacle == "device":
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/dev/null/cache")
    else:
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / ("x" * 300)))
    cache = DiskCache("kernels")
    with pytest.warns(RuntimeWarning, match=f"cannot be kept on disk .*{ENVIRONMENT_VARIABLE}"):
        cache.store(b"key", b"payload")
    cache.store(b"key", b"payload")  # another warning would be an error
    DiskCache("more").store(b"key", b"payload")
    assert cache.load(b"key") is None


def test_what_others_can_write_is_not_trusted(folder: Path) -> None:
    cache = DiskCache("kernels")
    cache.store(b"key", b"payload")
    only_entry(folder).chmod(0o666)
    assert cache.load(b"key") is None
    only_entry(folder).chmod(0o600)
    assert cache.load(b"key") == b"payload"
    (folder / "kernels").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="other users"):
        cache.store(b"key", b"payload")


def test_a_failed_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(RuntimeWarning, match="No space left"):
        DiskCache("kernels").store(b"key", b"payload")
    assert list((folder / "kernels").iterdir()) == []


def test_new_directories_are_private(folder: Path) -> None:
    DiskCache("kernels").store(b"key", b"payload")
    assert (folder / "kernels").stat().st_mode & 0o077 == 0
    assert only_entry(folder).stat().st_mode & 0o077 == 0


def test_many_threads_on_one_entry(folder: Path) -> None:
    cache = DiskCache("kernels")
    payloads = [bytes([i]) * 5000 for i in range(8)]
    wrong: list[object] = []

    def work(payload: bytes) -> None:
        for _ in range(40):
            cache.store(b"key", payload)
            loaded = cache.load(b"key")
            if loaded not in payloads:
                wrong.append(loaded)

    threads = [threading.Thread(target=work, args=(payload,)) for payload in payloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert only_entry(folder).is_file()


def test_the_directory_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if os.name == "posix":
        assert cache_directory() in {tmp_path / "gfcode", Path.home() / "Library/Caches/gfcode"}
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "relative")
    assert cache_directory() == Path.cwd() / "relative"


def test_no_home_directory_is_no_directory_named_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: "~/.cache/gfcode")
    monkeypatch.setattr(diskcache, "_warnings_given", [])
    with pytest.warns(RuntimeWarning, match="no home directory"):
        DiskCache("kernels").store(b"key", b"payload")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DiskCache("kernels").load(b"key") is None
    assert not Path("~").exists()
