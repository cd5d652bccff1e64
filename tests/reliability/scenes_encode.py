"""Scenes of encoding: one file, many, archives; anew and in the place of sets that are there."""

import io
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from gfcode.errors import GFCodeError, ShardSetError
from gfcode.pipeline import verify_set
from tests.reliability.samples import Sample
from tests.reliability.scene import (
    Scene,
    Tree,
    decoded,
    id_of,
    is_whole,
    named_for,
    read_tree,
    require,
    sample_of,
    shard_files,
)

__all__ = ["Encoding", "Goal"]


@dataclass(frozen=True)
class Goal:
    """A set that a run is to make, or to leave alone.

    Attributes
    ----------
    directories : tuple of str
        Where its shards go, below the base directory.
    name : str
    source : str
        The input: a file, or the directory that is archived; below the base directory.
    content : str
        Name of the sample that the input holds; nothing for an archive.
    there : str
        Name of the sample whose shards are there before the run; nothing if there are none.
    """

    directories: tuple[str, ...]
    name: str
    source: str
    content: str = ""
    there: str = ""

    @property
    def old(self) -> Sample | None:
        """What is there before the run."""
        return sample_of(self.there) if self.there else None

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to be done."""
        return bool(self.there) and self.there == self.content

    def shards(self, tree: Tree, *, hidden: bool) -> list[str]:
        """Return the files with the names of its shards, and those with hidden names."""
        return named_for(tree, self.directories, self.name, hidden=hidden)

    def wanted_names(self) -> set[str]:
        """Return the names of the shards of 3 + 2."""
        return set(shard_files(sample_of("tiny"), *self.directories, name=self.name))

    def is_right(self, data: bytes, inputs: Tree) -> bool:
        """Return whether the set holds what it should."""
        if self.content:
            return data == sample_of(self.content).data
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            held = {info.name: tar.extractfile(info) for info in tar if info.isfile()}
            above = self.source.rpartition("/")[0]
            found = {f"{above}/{name}".lstrip("/"): file.read() for name, file in held.items() if file is not None}
        return found == inputs

    def is_made(self, base: Path, inputs: Tree) -> bool:
        """Return whether the set is whole, and of the right content."""
        tree = read_tree(base)
        if self.is_current:
            return {path: tree.get(path) for path in self.wanted_names()} == self.files_before()
        if set(self.shards(tree, hidden=False)) != self.wanted_names():
            return False
        paths = [base / path for path in sorted(self.wanted_names())]
        try:
            return verify_set(paths, threads=1).state == "intact" and self.is_right(decoded(paths), inputs)
        except GFCodeError:
            return False

    def files_before(self) -> Tree:
        """Return the shards that are there before the run."""
        return shard_files(self.old, *self.directories, name=self.name) if self.old is not None else {}


@dataclass(frozen=True)
class Encoding(Scene):
    """A run of `encode`.

    Attributes
    ----------
    goals : tuple of Goal
    more : tuple of (str, str)
        Further inputs, and the samples that they hold.
    """

    goals: tuple[Goal, ...] = ()
    more: tuple[tuple[str, str], ...] = ()

    def _inputs(self) -> Tree:
        held = [(goal.source, goal.content) for goal in self.goals if goal.content]
        return {path: sample_of(name).data for path, name in (*held, *self.more)}

    def before(self, base: Path) -> Tree:  # noqa: ARG002
        """Return the inputs, and sets that are there."""
        tree = self._inputs()
        for goal in self.goals:
            tree.update(goal.files_before())
        return tree

    @property
    def many(self) -> bool:
        """Whether each input is a set of its own."""
        return len(self.goals) > 1

    @property
    def writes_what_it_reads(self) -> bool:
        """Yes: nobody can know that an input was read wrongly."""
        return True

    def check_safe(self, base: Path, before: Tree, *, changed: str = "", any_bytes: bool = False) -> Tree:
        """Require that inputs are untouched, named shards whole, and that each old set or its successor decodes."""
        tree = read_tree(base)
        inputs = self._inputs()
        for path in inputs.keys() - {changed}:
            require(tree.get(path) == before[path], f"the input {path} was changed")
        for goal in self.goals:
            for path in goal.shards(tree, hidden=False):
                known = path == changed or tree[path] == before.get(path)
                current = goal.is_current and not (changed or any_bytes)
                require(known or not current, f"{path} was replaced, though its set is current")
                require(known or is_whole(base / path), f"{path} has its name and is not whole")
            if goal.there and not changed:
                self._check_recoverable(base, tree, goal, any_bytes=any_bytes)
        return tree

    def _check_recoverable(self, base: Path, tree: Tree, goal: Goal, *, any_bytes: bool) -> None:
        """Check that the old set or the new one decodes, from their directories and by their ids."""
        texts: list[bytes] = []
        reasons: list[str] = []
        for set_id in {id_of(base / path) for path in goal.shards(tree, hidden=True)} - {None}:
            try:
                texts.append(decoded([base / directory for directory in goal.directories], set_id))
            except GFCodeError as error:
                reasons.append(str(error))
        if not self.many:  # without its id, unless there are two
            try:
                texts.append(decoded(base / goal.directories[0]))
            except GFCodeError as error:
                two = isinstance(error, ShardSetError) and len(set(re.findall(r"\b[0-9a-f]{32}\b", str(error)))) == 2
                require(two and len(texts) == 2, f"what was recoverable is not: {error}")
        require(bool(texts), f"what was recoverable is not: {'; '.join(reasons)}")
        old = None if goal.old is None else goal.old.data
        right = all(text == old or goal.is_right(text, self._inputs()) for text in texts)
        require(any_bytes or right, f"{goal.name} decodes to wrong bytes")

    def is_done(self, base: Path) -> bool:
        """Return whether all sets are made, and nothing else is there."""
        inputs = self._inputs()
        names = set(inputs).union(*(goal.wanted_names() for goal in self.goals))
        return set(read_tree(base)) == names and all(goal.is_made(base, inputs) for goal in self.goals)

    def is_settled(self, base: Path, tree: Tree, before: Tree) -> bool:  # noqa: ARG002
        """Return whether each set is as before or made."""
        inputs = self._inputs()
        return all(
            {path: tree[path] for path in goal.shards(tree, hidden=True)} == goal.files_before()
            or goal.is_made(base, inputs)
            for goal in self.goals
        )
