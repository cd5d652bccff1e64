"""Scenes of commands that read sets: repair, in place and elsewhere, of one set and of many; decode; scrub."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from gfcode.errors import GFCodeError
from gfcode.pipeline.scrub_state import ScrubState
from tests.reliability.scene import (
    Scene,
    Tree,
    damaged,
    decoded,
    named_for,
    read_tree,
    require,
    sample_of,
    shard_files,
)

__all__ = ["Decoding", "Repairing", "Scrubbing"]


@dataclass(frozen=True)
class _Reading(Scene):
    """A run on damaged sets.

    Attributes
    ----------
    sets : tuple of (str, str)
        Directories, and the samples whose damaged shards are in them.
    """

    sets: tuple[tuple[str, str], ...] = (("s", "new"),)

    def _damaged(self) -> Tree:
        tree: Tree = {}
        for directory, name in self.sets:
            tree.update(damaged(sample_of(name), directory))
        return tree

    @property
    def many(self) -> bool:
        """Whether there are several sets."""
        return len(self.sets) > 1

    @property
    def reports_damage(self) -> bool:
        """Yes."""
        return True

    def _check_recoverable(self, base: Path) -> None:
        for directory, name in self.sets:
            try:
                data = decoded(base / directory)
            except GFCodeError as error:
                require(False, f"what was recoverable is not: {error}")
            else:
                require(data == sample_of(name).data, f"the set in {directory} decodes to wrong bytes")


@dataclass(frozen=True)
class Repairing(_Reading):
    """A run of `repair`.

    Attributes
    ----------
    out : str
        Directory that repaired shards are written to; nothing for their own places.
    """

    out: str = ""

    def before(self, base: Path) -> Tree:  # noqa: ARG002
        """Return damaged sets."""
        return self._damaged()

    def check_safe(self, base: Path, before: Tree, *, changed: str = "", any_bytes: bool = False) -> Tree:  # noqa: ARG002
        """Require that every shard is as before or as it was encoded, and that each set decodes."""
        tree = read_tree(base)
        for directory, name in self.sets:
            right = shard_files(sample_of(name), directory)
            for path in named_for(tree, [directory], "file", hidden=False):
                if path != changed:
                    allowed = {before.get(path), None if self.out else right[path]}
                    require(tree[path] in allowed, f"{path} is neither as before nor repaired")
            if self.out:
                right = shard_files(sample_of(name), self.out)
                for path in named_for(tree, [self.out], "file", hidden=False):
                    require(tree[path] == right[path], f"{path} has its name and is not whole")
        for path in before.keys() - {changed}:
            require(path in tree, f"{path} is gone")
        if not changed:
            self._check_recoverable(base)
        return tree

    def is_done(self, base: Path) -> bool:
        """Return whether all shards are as they were encoded, and nothing else is there.

        Elsewhere more of them may be written than must be: a shard that was read wrongly, or not at all, may be sound.
        """
        wanted: Tree = {}
        tree = read_tree(base)
        for directory, name in self.sets:
            if self.out:
                wanted.update(damaged(sample_of(name), directory))
                right = shard_files(sample_of(name), self.out)
                must = {"000", "001", "003"}
                wanted.update({path: right[path] for path in right if path[-7:-4] in must or path in tree})
            else:
                wanted.update(shard_files(sample_of(name), directory))
        return tree == wanted

    def is_settled(self, base: Path, tree: Tree, before: Tree) -> bool:  # noqa: ARG002
        """Return True: shards get their names one after the other, and `check_safe` looks at each."""
        return True


@dataclass(frozen=True)
class Decoding(_Reading):
    """A run of `decode` that replaces a file."""

    def before(self, base: Path) -> Tree:  # noqa: ARG002
        """Return a damaged set, and an older output."""
        return {**self._damaged(), "out/file": b"what was there before"}

    @property
    def reports_damage(self) -> bool:
        """No: what cannot be decoded is an error."""
        return False

    def check_safe(self, base: Path, before: Tree, *, changed: str = "", any_bytes: bool = False) -> Tree:  # noqa: ARG002
        """Require that shards are untouched, and the output is the old one or the whole new one."""
        tree = read_tree(base)
        for path in before.keys() - {changed, "out/file"}:
            require(tree.get(path) == before[path], f"{path} was changed")
        allowed = {sample_of("new").data, before["out/file"]}
        require(tree.get("out/file") in allowed, "the output is neither old nor new")
        return tree

    def is_done(self, base: Path) -> bool:
        """Return whether the output is there, and nothing else has changed."""
        return read_tree(base) == {**self.before(base), "out/file": sample_of("new").data}


@dataclass(frozen=True)
class Scrubbing(_Reading):
    """A run of `scrub` after one that ended in its first set."""

    def before(self, base: Path) -> Tree:
        """Return damaged sets, and the state of an earlier run."""
        state = ScrubState(os.path.realpath(base / "s"), started="2026-01-01T00:00:00+00:00", worst="intact")
        path = base / "earlier.json"
        state.save(str(path))
        text = path.read_bytes()
        path.unlink()
        return {**self._damaged(), "state/s.json": text}

    def check_safe(self, base: Path, before: Tree, *, changed: str = "", any_bytes: bool = False) -> Tree:  # noqa: ARG002
        """Require that shards are untouched, and that the state is one that a run can go on from."""
        tree = read_tree(base)
        for path in before.keys() - {changed, "state/s.json"}:
            require(tree.get(path) == before[path], f"{path} was changed")
        require("state/s.json" in tree, "the state is gone")
        state = ScrubState.load(str(base / "state" / "s.json"), str(base / "s"))
        unseen = sum(problem.set_id is None for problem in state.problems.values())
        whole = state.last is None or state.last["sets"] + unseen >= len(self.sets)
        require(whole, "the state says of a pass that it is finished, and it is not")
        # A lock file stays, and who removed it could take it from another run.
        return {path: content for path, content in tree.items() if path != "state/s.json.lock"}

    def is_done(self, base: Path) -> bool:
        """Return whether the pass is finished, and every set's damage is known."""
        try:
            values = json.loads((base / "state" / "s.json").read_bytes())
        except (OSError, ValueError):
            return False
        tree = read_tree(base)
        names = {*self.before(base), "state/s.json.lock"}
        found = [problem["state"] for problem in values["problems"].values()]
        return set(tree) == names and values["last"] is not None and found == ["repairable"] * len(self.sets)

    def is_settled(self, base: Path, tree: Tree, before: Tree) -> bool:  # noqa: ARG002
        """Return True: what was done is noted, however far it went; `check_safe` looks at the state."""
        return True
