"""What a scene is: a run that is to be disturbed, what is there before it, and what must hold whatever happens."""

import functools
import io
import os
import random
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gfcode.errors import GFCodeError
from gfcode.pipeline import decode_file, verify_set
from gfcode.pipeline.files import is_temporary
from gfcode.pipeline.probe import read_metadata
from tests.reliability.samples import Sample, make_sample

__all__ = [
    "LARGE", "BrokenPromiseError", "Scene", "Tree", "damaged", "decoded", "id_of", "is_whole", "named_for", "read_tree",
    "require", "sample_of", "shard_files", "temporaries",
]  # fmt: skip

#: Paths below the base directory, and contents.
Tree = dict[str, bytes]

#: Bytes of a file that takes several batches and two workers.
LARGE = 3 * 512 * 600 + 9
#: What a hidden name adds to that of a shard.
_HIDDEN = r"\.[0-9a-f]{16}\.tmp"


class BrokenPromiseError(AssertionError):
    """Something that must hold after a disturbed run does not."""


def require(held: bool, message: str) -> None:
    """Raise BrokenPromiseError unless something holds."""
    if not held:
        raise BrokenPromiseError(message)


@dataclass(frozen=True)
class Scene(ABC):
    """One command and its surroundings.

    Attributes
    ----------
    name : str
    arguments : tuple of str
        The command line; {} stands for the base directory.
    victim : str
        A file that is read, below the base directory.
    code : int
        Exit code of a run that nothing disturbs.
    files : int
        Files that the process may have open, where that is to be few; 0 for as many as ever.
    """

    name: str
    arguments: tuple[str, ...]
    victim: str
    code: int = 0
    files: int = 0

    def command(self, base: Path) -> list[str]:
        """Return the command line in a base directory."""
        return [argument.replace("{}", str(base)) for argument in self.arguments]

    @abstractmethod
    def before(self, base: Path) -> Tree:
        """Return what is there before the run."""

    def set_up(self, base: Path) -> Tree:
        """Make the base directory what `before` says."""
        tree = self.before(base)
        for entry in os.scandir(base):
            shutil.rmtree(entry.path)
        for path, content in tree.items():
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_bytes(content)
        return tree

    @abstractmethod
    def check_safe(self, base: Path, before: Tree, *, changed: str = "", any_bytes: bool = False) -> Tree:
        """Check what must hold after a run that ended in any way.

        Parameters
        ----------
        base : Path
        before : Tree
            What `set_up` returned.
        changed : str
            A file that others changed meanwhile.
        any_bytes : bool
            Whether a set may hold other bytes than those of its input.

        Returns
        -------
        Tree
            What is there.

        Raises
        ------
        BrokenPromiseError
            If something does not hold.
        """

    @abstractmethod
    def is_done(self, base: Path) -> bool:
        """Return whether everything is as after a run that nothing disturbed."""

    def is_settled(self, base: Path, tree: Tree, before: Tree) -> bool:
        """Return whether what is there may be left by a run that could still clean up: all as before, or all done."""
        return tree == before or self.is_done(base)

    @property
    def reports_damage(self) -> bool:
        """Whether a set that is beyond repair is an answer, on stdout."""
        return False

    @property
    def many(self) -> bool:
        """Whether the run is over several sets, so that one may fail and another be done."""
        return False

    @property
    def writes_what_it_reads(self) -> bool:
        """Whether bytes of an input that are read wrongly, without an error, end up in a set."""
        return False


@functools.cache
def sample_of(name: str) -> Sample:
    """Return a set: "new" of 3 + 2, "old" of as many bytes, "other" of 4 + 3, and "small" and "tiny" ones."""
    k, m, size, seed = {
        "new": (3, 2, LARGE, 5),
        "old": (3, 2, LARGE, 6),
        "other": (4, 3, 500_000, 6),
        "small": (3, 2, 9_000, 7),
        "small old": (3, 2, 9_000, 8),
        "tiny": (3, 2, 100, 9),
    }[name]
    return make_sample(k, m, size, seed, {"frame": 1024})


def shard_files(sample: Sample, *directories: str, name: str = "file") -> Tree:
    """Return the files of a set, dealt out to directories."""
    return {
        f"{directories[shard % len(directories)]}/{name}.{shard:03d}.gfs": content
        for shard, content in enumerate(sample.shards)
    }


def damaged(sample: Sample, directory: str, name: str = "file") -> Tree:
    """Return a set with shard 1 lost, damage at both ends of shard 3, and a stripe of shard 0 damaged."""
    tree = shard_files(sample, directory, name=name)
    del tree[f"{directory}/{name}.001.gfs"]
    rng = random.Random(1)
    last = sample.stripes - 1
    for shard, stripes in ((3, (0, 1, last)), (0, (last // 2,))):
        content = bytearray(tree[f"{directory}/{name}.{shard:03d}.gfs"])
        for stripe in stripes:
            content[sample.starts[stripe + 1] + rng.randrange(900)] ^= 0xFF
        tree[f"{directory}/{name}.{shard:03d}.gfs"] = bytes(content)
    return tree


def read_tree(base: Path) -> Tree:
    """Return all files below a directory."""
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def temporaries(tree: Tree) -> list[str]:
    """Return those files that have temporary names."""
    return [
        path for path in tree
        if is_temporary(os.path.basename(path)) or re.search(rf"\.json{_HIDDEN}$", path)
    ]  # fmt: skip


def named_for(tree: Iterable[str], directories: Iterable[str], name: str, *, hidden: bool) -> list[str]:
    """Return the files with the names of a set's shards, and those with hidden names for them."""
    shard = rf"{re.escape(name)}\.[0-9]{{3}}\.gfs"
    pattern = re.compile(rf"{shard}|\.{shard}{_HIDDEN}" if hidden else shard)
    there = set(directories)
    return sorted(path for path in tree if os.path.dirname(path) in there and pattern.fullmatch(os.path.basename(path)))


def decoded(paths: Path | Sequence[Path], set_id: str | None = None) -> bytes:
    """Return the bytes that a set decodes to."""
    out = io.BytesIO()
    decode_file(paths, out, threads=1, set_id=set_id)
    return out.getvalue()


def id_of(path: Path) -> str | None:
    """Return the id of the set that a file says it is of."""
    try:
        return read_metadata(str(path))[0].set_id.hex()
    except GFCodeError:
        return None


def is_whole(path: Path) -> bool:
    """Return whether a file is a shard without any damage."""
    try:
        report = verify_set(path, threads=1)
    except GFCodeError:
        return False
    return [shard.intact for shard in report.shards if shard.path == str(path)] == [True]
