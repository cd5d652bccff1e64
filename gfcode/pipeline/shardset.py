"""An opened shard set: descriptors of its files, and where it ends."""

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from gfcode.errors import ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline.batch import Batch
from gfcode.pipeline.candidates import Candidate
from gfcode.pipeline.discovery import Found
from gfcode.pipeline.files import check_descriptors
from gfcode.pipeline.frame import FLAG_LAST
from gfcode.pipeline.probe import open_regular, sound_header
from gfcode.pipeline.report import Stray

__all__ = ["OpenShard", "ShardSet"]

#: Most frames that are told of one by one where more than half of a set is gone.
_MOST_LISTED = 1 << 20


@dataclass(slots=True)
class OpenShard:
    """A shard file that is open for reading."""

    path: str
    fd: int
    size: int


class ShardSet:
    """The files of a set, open for reading; a context manager that closes them.

    Attributes
    ----------
    found : Found
    metadata : Metadata
    geometry : Geometry
    files : list of list of OpenShard
        For each shard the files that hold it, the primary one first.
    extra : list of list of OpenShard
        For each shard other files, which hold some of its frames.
    stripes : int
    last_data : int
        Data bytes of the last stripe.
    end_known : bool
        False where the set was made from a stream and no frame that ends it is left; the last stripe is then lost.
    """

    def __init__(self, found: Found) -> None:
        self.found = found
        self.metadata = found.metadata
        self.geometry = found.metadata.geometry
        self.files: list[list[OpenShard]] = [[] for _ in range(self.metadata.n)]
        self.extra: list[list[OpenShard]] = [[] for _ in range(self.metadata.n)]
        check_descriptors(sum(map(len, (*found.files, *found.extra))))
        try:
            for opened, listed in ((self.files, found.files), (self.extra, found.extra)):
                for files, candidates in zip(opened, listed, strict=True):
                    for candidate in tuple(candidates):
                        if not self._open(files, candidate):
                            candidates.remove(candidate)
            self.end_known = True
            self.stripes, self.last_data = self._extent()
        except BaseException:
            self.close()
            raise

    def _open(self, files: list[OpenShard], candidate: Candidate) -> bool:
        """Open a file; return False for one that is gone since it was found, or cannot be opened: it is lost.

        Raises
        ------
        ShardSetError
            If another file has its name: another run is at work on the set.
        """
        try:
            fd = open_regular(candidate.path)
        except (OSError, ShardFormatError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            if all(stray.path != candidate.path for stray in self.found.strays):
                self.found.strays.append(Stray(candidate.path, f"lost while the set was looked at: {reason}"))
            self.found.notes.pop(candidate.path, None)
            return False
        status = os.fstat(fd)
        files.append(OpenShard(candidate.path, fd, status.st_size))
        if (status.st_dev, status.st_ino) != candidate.identity:
            raise ShardSetError(f"{candidate.path} was replaced while the set was looked at; try again")
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for files in (*self.files, *self.extra):
            for file in files:
                os.close(file.fd)
            files.clear()

    @property
    def size(self) -> int | None:
        """Bytes of the file that was encoded, if known."""
        if not self.end_known:
            return None
        return (self.stripes - 1) * self.geometry.stripe_data + self.last_data

    @property
    def shard_length(self) -> int:
        """Bytes that every shard file should have."""
        return self.geometry.shard_length(self.stripes, self.last_data)

    def place(self, batch: Batch, number: int) -> None:
        """Tell a batch that it holds batch `number` of the set."""
        first = number * batch.capacity
        count = min(batch.capacity, self.stripes - first)
        batch.place(first, count, self.last_data if first + count == self.stripes else None)

    def _extent(self) -> tuple[int, int]:
        """Find the stripes of the set and the data bytes of the last of them."""
        geometry = self.geometry
        if self.metadata.size is not None:
            self._check_plausible(geometry.stripes(self.metadata.size))
            return geometry.stripes(self.metadata.size), geometry.last_data(self.metadata.size)
        ends: dict[tuple[int, int], str] = {}
        most = 0
        for file in (file for files in self.files for file in files):
            most = max(most, -(-(file.size - geometry.metadata_length) // geometry.frame_length))
            found = self._end_of(file, quick=True)
            if found is not None:
                ends.setdefault(found, file.path)
        if not ends:
            for file in (file for files in self.files for file in files):
                found = self._end_of(file, quick=False)
                if found is not None:
                    ends.setdefault(found, file.path)
        if len(ends) > 1:
            first, second = list(ends.values())[:2]
            raise ShardSetError(
                f"{first} and {second} end set {self.metadata.set_id.hex()} at different stripes; "
                f"leave out the one that you do not trust"
            )
        if ends:
            return next(iter(ends))
        self.end_known = False
        return most + 1, geometry.stripe_data

    def _check_plausible(self, stripes: int) -> None:
        """Refuse a set that claims to be far larger than its files: a map of what is lost would be larger than they."""
        longest = sorted(
            max((file.size for file in (*own, *others)), default=0)
            for own, others in zip(self.files, self.extra, strict=True)
        )
        held = max(0, longest[-self.metadata.k] - self.geometry.metadata_length) // self.geometry.frame_length
        if self.metadata.n * stripes > _MOST_LISTED and stripes > 2 * (held + 1):
            raise UnrecoverableError(
                f"{stripes - held} of {stripes} stripes of {self.metadata.name!r} are beyond repair: fewer than "
                f"{self.metadata.k} shards are long enough to hold stripe {held + 1} and those behind it"
            )

    def _end_of(self, file: OpenShard, *, quick: bool) -> tuple[int, int] | None:
        """Return what the sound frame that ends the stream says, looking at the file's end only, or everywhere."""
        geometry = self.geometry
        frames = -(-(file.size - geometry.metadata_length) // geometry.frame_length)
        for stripe in range(frames - 1, max(-1, frames - 2) if quick else -1, -1):
            at = geometry.offset(stripe)
            header = sound_header(file.fd, at, geometry.block_length, None)  # cheap, and false for nearly all
            if header is None or header.flags != FLAG_LAST:
                continue
            header = sound_header(file.fd, at, geometry.block_length, self.metadata.checksum)
            if (
                header is not None
                and header.set_id == self.metadata.set_id
                and header.stripe == stripe
                and header.block_length == geometry.block_for(header.data_length)
            ):
                return stripe + 1, header.data_length
        return None
