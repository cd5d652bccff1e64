"""Runs that are to be disturbed: what is there before, the command line, and what must hold whatever happens."""

import functools
import io
import os
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from gfcode.errors import GFCodeError, ShardSetError
from gfcode.pipeline import decode_file, verify_set
from gfcode.pipeline.files import is_temporary
from tests.reliability.samples import NAME, Sample, make_sample

__all__ = ["SCENES", "BrokenPromiseError", "Scene", "Tree", "require"]

#: Paths below the base directory, and contents.
Tree = dict[str, bytes]

#: Large enough for several batches and two workers.
_SIZE = 3 * 512 * 600 + 9
_SHARD = re.compile(rf"s/{NAME}\.([0-9]{{3}})\.gfs")


class BrokenPromiseError(AssertionError):
    """Something that must hold after a disturbed run does not."""


def require(held: bool, message: str) -> None:
    """Raise BrokenPromiseError unless something holds."""
    if not held:
        raise BrokenPromiseError(message)


@functools.cache
def _sets() -> dict[str, Sample]:
    """Return the new set's sample, and an old one of more shards."""
    return {
        "new": make_sample(3, 2, _SIZE, 5, {"frame": 1024}),
        "old": make_sample(4, 3, 500_000, 6, {"frame": 1024}),
    }


@dataclass(frozen=True)
class Scene:
    """One command and its surroundings.

    Attributes
    ----------
    name : str
    arguments : tuple of str
        The command line; {} stands for the base directory.
    """

    name: str
    arguments: tuple[str, ...]

    def command(self, base: Path) -> list[str]:
        """Return the command line in a base directory."""
        return [argument.replace("{}", str(base)) for argument in self.arguments]

    def before(self) -> Tree:
        """Return what is there before the run."""
        new, old = _sets()["new"], _sets()["old"]
        match self.name:
            case "encode":
                return {f"in/{NAME}": new.data}
            case "encode --force":
                return {f"in/{NAME}": new.data, **_shards(old)}
            case "repair":
                return damaged(new)
            case _:
                return {**damaged(new), f"out/{NAME}": b"what was there before"}

    def set_up(self, base: Path) -> Tree:
        """Make the base directory what `before` says."""
        tree = self.before()
        for entry in os.scandir(base):
            shutil.rmtree(entry.path)
        for path, content in tree.items():
            (base / path).parent.mkdir(exist_ok=True)
            (base / path).write_bytes(content)
        return tree

    @property
    def victim(self) -> str:
        """The file that is read, below the base directory."""
        return f"in/{NAME}" if self.name.startswith("encode") else f"s/{NAME}.000.gfs"

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
            Whether the set may hold other bytes than those of the input.

        Returns
        -------
        Tree
            What is there.
        """
        new = _sets()["new"]
        tree = read_tree(base)
        for path in before:
            if path.startswith("in/") and path != changed:
                require(tree.get(path) == before[path], f"the input {path} was changed")
        for path, content in tree.items():
            shard = _SHARD.fullmatch(path)
            if shard is None or path == changed or content == before.get(path):
                continue
            if self.name.startswith("encode"):
                require(_whole(base / path), f"{path} has its name and is not whole")
            else:
                require(content == new.shards[int(shard[1])], f"{path} is neither as before nor repaired")
        if self.name == "decode":
            require(tree.get(f"out/{NAME}") in {new.data, before[f"out/{NAME}"]}, "the output is neither old nor new")
        if self.name != "encode" and not changed:
            self._check_recoverable(base, any_bytes=any_bytes)
        return tree

    def _check_recoverable(self, base: Path, *, any_bytes: bool) -> None:
        """Check that the old set or the new one decodes."""
        allowed = {_sets()["new"].data} | ({_sets()["old"].data} if self.name == "encode --force" else set())
        try:
            texts = [decoded(base / "s")]
        except ShardSetError as error:  # two whole sets: each must decode when its id is given
            texts = [decoded(base / "s", set_id) for set_id in re.findall(r"\b[0-9a-f]{32}\b", str(error))]
            require(len(texts) == 2, f"what was recoverable is not: {error}")
        except GFCodeError as error:
            raise BrokenPromiseError(f"what was recoverable is not: {error}") from error
        require(any_bytes or set(texts) <= allowed, "a set decodes to wrong bytes")

    def is_done(self, base: Path) -> bool:
        """Return whether everything is as after a run that nothing disturbed."""
        new = _sets()["new"]
        tree = read_tree(base)
        if self.name == "decode":
            return tree == {**self.before(), f"out/{NAME}": new.data}
        if self.name == "repair":
            return tree == _shards(new)
        names = {f"in/{NAME}", *_shards(new)}
        return set(tree) == names and verify_set(base / "s").state == "intact" and decoded(base / "s") == new.data


SCENES = {
    scene.name: scene
    for scene in (
        Scene("encode", ("encode", f"{{}}/in/{NAME}", "-k", "3", "-m", "2", "--frame", "1024", "--out", "{}/s")),
        Scene(
            "encode --force",
            ("encode", f"{{}}/in/{NAME}", "-k", "3", "-m", "2", "--frame", "1024", "--out", "{}/s", "--force"),
        ),
        Scene("repair", ("repair", "{}/s")),
        Scene("decode", ("decode", "{}/s", "-o", f"{{}}/out/{NAME}", "--force")),
    )
}


def damaged(sample: Sample) -> Tree:
    """Return a set with shard 1 lost, damage at both ends of shard 3, and a stripe of shard 0 damaged."""
    tree = _shards(sample)
    del tree[f"s/{sample.name(1)}"]
    rng = random.Random(1)
    for shard, stripes in ((3, (0, 1, 599)), (0, (300,))):
        content = bytearray(tree[f"s/{sample.name(shard)}"])
        for stripe in stripes:
            content[sample.starts[stripe + 1] + rng.randrange(900)] ^= 0xFF
        tree[f"s/{sample.name(shard)}"] = bytes(content)
    return tree


def _shards(sample: Sample) -> Tree:
    return {f"s/{sample.name(shard)}": content for shard, content in enumerate(sample.shards)}


def read_tree(base: Path) -> Tree:
    """Return all files below a directory."""
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def temporaries(tree: Tree) -> list[str]:
    """Return those files that have temporary names."""
    return [path for path in tree if is_temporary(os.path.basename(path))]


def decoded(directory: Path, set_id: str | None = None) -> bytes:
    """Return the bytes that a set decodes to."""
    out = io.BytesIO()
    decode_file(directory, out, threads=1, set_id=set_id)
    return out.getvalue()


def _whole(path: Path) -> bool:
    """Return whether a file is a shard without any damage."""
    try:
        report = verify_set(path, threads=1)
    except GFCodeError:
        return False
    return [shard.intact for shard in report.shards if shard.path == str(path)] == [True]
