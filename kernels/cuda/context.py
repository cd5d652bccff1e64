"""Kernels of one device: compiled once, kept on disk, loaded once a process."""

import threading

from gfcode.engine.diskcache import DiskCache
from gfcode.errors import DeviceError
from gfcode.kernels.cuda.device import Device, Kernel, Stream
from gfcode.kernels.cuda.launch import Build, Launch
from gfcode.kernels.cuda.source import build_key
from gfcode.kernels.cuda.tuner import TuningStore
from gfcode.kernels.cuda.work import Work

__all__ = ["Context"]


class Context:
    """A device with its loaded kernels and its tuning. Safe to use from many threads.

    Parameters
    ----------
    device : Device
    cache : DiskCache, optional
        Where compiled kernels are kept; by default the user's own cache directory.
    tuning : TuningStore, optional
        What was measured on this kind of device; by default what the user's cache directory holds.
    """

    def __init__(self, device: Device, cache: DiskCache | None = None, tuning: TuningStore | None = None) -> None:
        self.device = device
        self.tuning = tuning or TuningStore(device.info.name, device.compiler)
        self._cache = cache or DiskCache("cuda")
        self._kernels: dict[Build, Kernel] = {}
        self._lock = threading.Lock()

    def kernel(self, build: Build) -> Kernel:
        """Return a kernel ready to launch: loaded already, from disk, or compiled here."""
        kernel = self._kernels.get(build)
        if kernel is None:
            with self._lock:
                kernel = self._kernels.get(build)
                if kernel is None:
                    kernel = self._kernels[build] = self._make(build)
        return kernel

    def _make(self, build: Build) -> Kernel:
        key = build_key(build, self.device.info, self.device.compiler)
        image = self._cache.load(key)
        if image is not None:
            try:
                return self.device.load(image, build.kernel)
            except DeviceError:
                pass  # whole, but not to this driver's taste: compiled anew below
        image = self.device.compile(build)
        kernel = self.device.load(image, build.kernel)
        self._cache.store(key, image)
        return kernel

    def launch(self, launch: Launch, work: Work, stream: Stream) -> None:
        """Start a kernel with the configuration's own fields of `work` filled in."""
        work.piece = launch.piece
        work.tiles, work.whole_tiles, work.span = launch.tiles, launch.whole_tiles, launch.span
        work.step_stripe, work.step_tile = launch.steps
        self.device.launch(self.kernel(launch.build), launch, work, stream)
