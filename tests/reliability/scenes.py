"""All scenes: the runs that the campaigns of crashes and of I/O faults disturb."""

from tests.reliability.scene import Scene
from tests.reliability.scenes_encode import Encoding, Goal
from tests.reliability.scenes_read import Decoding, Repairing, Scrubbing

__all__ = ["SCENES"]

_CODE = ("-k", "3", "-m", "2", "--frame", "1024")
#: Files that may be open, of which 64 are for all else, so that two sets of five shards get their names together.
_FEW = 64 + 2 * 5


def _encode(name: str, victim: str, goals: tuple[Goal, ...], *arguments: str, files: int = 0) -> Encoding:
    return Encoding(name, ("encode", *arguments, *_CODE, "--out", "{}/s"), victim, files=files, goals=goals)


def _one(there: str) -> tuple[Goal, ...]:
    return (Goal(("s",), "file", "in/file", "new", there),)


def _tree() -> tuple[Goal, ...]:
    """Return five new sets, of which two get their names together."""
    held = {"a": "small", "b/c": "tiny", "b/large": "new", "d": "small old", "e": "tiny"}
    return tuple(
        Goal((f"s/in/{path.rpartition('/')[0]}".rstrip("/"),), path.rpartition("/")[2], f"in/{path}", content)
        for path, content in held.items()
    )


def _update() -> tuple[Goal, ...]:
    """Return sets in two directories: changed with the same size, of another code, new, current."""
    both = ("s", "t")
    return (
        Goal(both, "a", "in/a", "small", "small old"),
        Goal(both, "b", "in/b", "new", "other"),
        Goal(both, "c", "in/c", "tiny"),
        Goal(("s/d", "t/d"), "e", "in/d/e", "small old", "small old"),
        Goal(("s/d", "t/d"), "f", "in/d/f", "small", "small old"),
    )


_ALL: tuple[Scene, ...] = (
    _encode("encode", "in/file", _one(""), "{}/in/file"),
    _encode("encode --force", "in/file", _one("other"), "{}/in/file", "--force"),
    _encode("encode --update", "in/file", _one("old"), "{}/in/file", "--update"),
    _encode("encode of a tree", "in/b/large", _tree(), "{}/in", files=_FEW),
    Encoding(
        "encode --update of several",
        ("encode", "{}/in/a", "{}/in/b", "{}/in/c", "{}/in/d", *_CODE, "--update", "--out", "{}/s", "--out", "{}/t"),
        "in/b", files=_FEW, goals=_update(),
    ),
    Encoding(
        "encode --archive", ("encode", "{}/in", *_CODE, "--archive", "--name", "in.tar", "--out", "{}/s"), "in/a",
        goals=(Goal(("s",), "in.tar", "in"),), more=(("in/a", "small"), ("in/b/large", "new"), ("in/c", "tiny")),
    ),
    Repairing("repair", ("repair", "{}/s"), "s/file.000.gfs"),
    Repairing("repair --out", ("repair", "{}/s", "--out", "{}/o"), "s/file.000.gfs", out="o"),
    Repairing(
        "repair of several", ("repair", "{}/s"), "s/a/file.000.gfs",
        sets=(("s/a", "new"), ("s/b", "small"), ("s/b/c", "small old")),
    ),
    Decoding("decode", ("decode", "{}/s", "-o", "{}/out/file", "--force"), "s/file.000.gfs"),
    Scrubbing(
        "scrub", ("scrub", "{}/s", "--state", "{}/state/s.json"), "s/a/file.000.gfs", code=3,
        sets=(("s/a", "small"), ("s/b", "small old")),
    ),
)  # fmt: skip
SCENES: dict[str, Scene] = {scene.name: scene for scene in _ALL}
