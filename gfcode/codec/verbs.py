"""What a storage system asks of a codec beside encoding and decoding whole blocks; modules of their own do the work."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gfcode.codec import device, lean
from gfcode.codec.arguments import (
    BlockLike,
    BlocksLike,
    arrays_of,
    check_indices,
    join,
    refuse_overlap,
    rows_of,
    shape_of,
    shards_of,
)
from gfcode.codec.base import BlockCodec
from gfcode.codec.locate import Locator
from gfcode.codec.progressive import ProgressiveEncoder
from gfcode.codec.ranges import RepairPlan, decode_range, plan_repair
from gfcode.codec.spans import VerifyReport, accumulate, verify
from gfcode.codec.split import join_blocks, split_data
from gfcode.errors import BlockError

__all__ = ["StorageCodec"]


class StorageCodec(BlockCodec):
    """A code with parts of blocks, parity that changes or accumulates, verification, and data of any length."""

    def progressive(self, length: int, stripes: int | None = None, out: BlocksLike | None = None) -> ProgressiveEncoder:
        """Begin a parity that accumulates while data shards arrive one by one, in any order.

        Parameters
        ----------
        length : int
            Bytes of a block.
        stripes : int, optional
            Stripes of a batch; by default blocks have no axis for them.
        out : as for `encode`, optional
            Where the parity accumulates; what is there is overwritten.

        Raises
        ------
        BlockError, ParameterError
        """
        return ProgressiveEncoder(self.k, self.m, self.block_multiple, self._plans().patch, length, stripes, out)

    def decode_range(
        self, shards: Mapping[int, BlockLike], offset: int, length: int, out: BlockLike | None = None
    ) -> Any:
        """Give a part of the data back, touching only the strips that it needs.

        The data is that of all data blocks one behind the other, stripe by stripe, as `join` would give it.

        Parameters
        ----------
        shards : mapping of shard index to block
            Those that are at hand, as in `decode`: the data shards that hold the part, or any k.
        offset, length : int
            The part, in bytes.
        out : writable buffer of `length` bytes, optional
            Must not overlap the shards.

        Returns
        -------
        ndarray of uint8, shape (length,)
            Or `out`, if that is given.

        Raises
        ------
        UnrecoverableError
            If the part lies in a lost shard and fewer than k are given.
        ParameterError
            For a part that reaches beyond the data.
        BlockError
        """
        given = shards_of(shards, self.n)
        shape_of(given, self.k, self.block_multiple)
        return decode_range(self.plan, self.k, self.block_multiple, given, offset, length, out)

    def repair_plan(
        self,
        lost: Iterable[int],
        length: int,
        *,
        available: Iterable[int] | None = None,
        within: tuple[int, int] | None = None,
    ) -> RepairPlan:
        """Say what must be read to make lost shards again.

        Parameters
        ----------
        lost : iterable of int
        length : int
            Bytes of a shard: of one block, or of all of its blocks.
        available : iterable of int, optional
            Shards that can be read; by default all but the lost ones.
        within : (int, int), optional
            First byte and end of the part of the lost shards that is wanted, in place of all of them.

        Returns
        -------
        RepairPlan

        Raises
        ------
        UnrecoverableError, ParameterError, BlockError
        """
        return plan_repair(self.plan, self.n, self.block_multiple, lost, length, available, within)

    def verify(self, shards: Mapping[int, BlockLike]) -> VerifyReport:
        """Tell whether shards belong together, and which are wrong if they can tell.

        Some shards are computed from others and compared. Where they disagree, the smallest sets of shards are looked
        for whose absence lets the others agree: with e spare shards (more than needed to determine all) up to ⌊e/2⌋
        wrong ones are found for certain at each place, if the code is MDS and no more are wrong there.

        Parameters
        ----------
        shards : mapping of shard index to block
            As in `decode`, but more than k, so that there is something to compare; or all n. Arrays in a GPU's memory
            are compared there; the answer is waited for, and stripes that disagree are copied to the host.

        Returns
        -------
        VerifyReport

        Raises
        ------
        BlockError
            If there is nothing to compare: for k shards or fewer, or where no shard is determined by the others.
        """
        on_device = device.holds_device_arrays(shards)
        given: Mapping[int, Any] = shards if on_device else shards_of(shards, self.n)
        check_indices(given, self.n)
        basis = self.basis(given)
        spare = tuple(shard for shard in sorted(given) if shard not in basis)
        if not spare and len(given) < self.n:
            raise BlockError(
                f"more than k = {self.k} shards are needed to compare any, and {len(given)} are given: "
                "none is determined by the others, and nothing can be compared"
            )
        plan = self._plans().find(basis, spare)
        if on_device:
            return device.verify(self, given, basis, plan, self.verify)
        shape_of(given, self.k, self.block_multiple)
        return verify(given, basis, plan, self.block_multiple, Locator(self, tuple(sorted(given))))

    def update(
        self,
        parity: BlocksLike | Mapping[int, BlockLike],
        index: int,
        old: BlockLike,
        new: BlockLike,
    ) -> None:
        """Patch parity blocks in place for one data block that changed, without reading any other data.

        Parameters
        ----------
        parity : array of uint8, shape (m, length) or (stripes, m, length), sequence of m blocks, or mapping
            Writable. A mapping of shard index (k .. n − 1) to block patches only those.
        index : int
            The data shard that changes, 0 .. k − 1.
        old, new : block of shape (length,) or (stripes, length)
            Its bytes before and after. Arrays in a GPU's memory are worked on there, as in `encode`, if all are there.

        Raises
        ------
        BlockError, ParameterError
        """
        if type(index) is int and 0 <= index < self.k and self.m:
            run = self._plans().change(index)
            if run is not None and lean.update(run, parity, self.m, old, new, self.block_multiple):
                return
        if type(old) is not np.ndarray and device.holds_device_arrays(old):
            device.update(self, parity, index, old, new)
            return
        (data,) = check_indices([index], self.k)
        if not isinstance(parity, Mapping):
            parity = dict(enumerate(rows_of(parity, self.m, "parity"), self.k))
        targets = shards_of(parity, self.n, self.k, writable=True)
        names = ["the old block", "the new block", *(f"shard {shard}" for shard in targets)]
        before, after, *_ = arrays_of([old, new, *targets.values()], names.__getitem__)
        shape_of({data: before}, self.k, self.block_multiple)
        if targets:
            refuse_overlap(join([before, after]), join(list(targets.values())))
            operator = self._plans().patch(tuple(shard - self.k for shard in targets), data, 2)
            accumulate(list(targets.values()), operator, [before, after], self.block_multiple)

    # Between data of any length and blocks

    def split(self, data: BlockLike, *, block: int | None = None, out: BlocksLike | None = None) -> Any:
        """Cut data into k blocks, the rest of which is zeros. Whole blocks are not copied.

        Parameters
        ----------
        data : buffer of at least one byte
        block : int, optional
            Bytes of a block, for a batch of as many stripes as it takes; by default the shortest block with which one
            stripe is enough.
        out : as `data` of `encode`, optional
            Blocks to fill, zeros included.

        Returns
        -------
        list of ndarray of uint8, shape (length,)
            The k blocks: views of `data`, read-only where that is, save those that need zeros, which are copies.
        ndarray of uint8, shape (stripes, k, block)
            If `block` is given: a view of `data` if it is whole stripes, or else a copy.
        object
            `out`, if that is given.

        Raises
        ------
        BlockError, ParameterError
        """
        return split_data(data, self.k, self.block_multiple, block, out)

    def join(self, blocks: BlocksLike | Mapping[int, BlockLike], size: int, out: BlockLike | None = None) -> Any:
        """Give the first `size` bytes of data blocks back, one behind the other, stripe by stripe; undoes `split`.

        Parameters
        ----------
        blocks : as `data` of `encode`, or mapping with all data shards
        size : int
        out : writable buffer of `size` bytes, optional
            Must not overlap the blocks.

        Returns
        -------
        bytes
            Or `out`, if that is given.

        Raises
        ------
        BlockError, ParameterError
        """
        return join_blocks(blocks, self.k, size, out)
