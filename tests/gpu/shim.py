"""A device that is this CPU: it runs the kernels' own sources through g++ and the host shim, and defers all it is told.

Work enqueued on a stream is done only when something waits for it, as late as possible, or, where `early` is set, older
streams run as far ahead of younger ones as their waits allow. Memory is poisoned where it is taken and given back. So
an order between streams that the engine forgets, or memory that it drops too early, shows as wrong bytes.
"""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import DeviceError, DeviceMemoryError
from gfcode.kernels.cuda.device import Event, Kernel, Location, Memory, PinnedMemory, Stream
from gfcode.kernels.cuda.launch import Build, DeviceInfo, Launch
from gfcode.kernels.cuda.source import headers_for, kernel_source
from gfcode.kernels.cuda.work import Work

HERE = Path(__file__).parent
SHIM_FILES = ("host_shim.h", "host_entry.cpp")


def missing() -> str | None:
    """Why kernels cannot be run here; None if they can."""
    return None if shutil.which("g++") else "g++ is not installed"


@functools.cache
def compiler_version() -> str:
    """Return the name of the compiler and of the shim, for keys of caches."""
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    shim = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SHIM_FILES)).hexdigest()
    return f"{version} shim {shim}"


def compile_host(
    build: Build, changes: Callable[[str, str], str] = lambda _, text: text, *, plain: bool = False
) -> bytes:
    """Compile a kernel for this CPU; `changes` may alter each source by name, `plain` is what is compiled for ROCm."""
    with tempfile.TemporaryDirectory(prefix="gfcode-shim-") as folder:
        sources = {**headers_for(build), build.source: kernel_source(build)}
        for name, text in sources.items():
            Path(folder, name).write_text(changes(name, text))
        defines = [f"-D{name}={value}" for name, value in build.defines] + ["-DGFCODE_NO_PTX=1"] * plain
        target = Path(folder, "kernel.so")
        command = ["g++", "-O1", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wno-unknown-pragmas", "-Werror"]
        command += ["-DGFCODE_HOST_SHIM", f'-DSHIM_SOURCE="{build.source}"', f"-DSHIM_KERNEL={build.kernel}", *defines]
        command += [f"-I{HERE}", f"-I{folder}", "-o", str(target), str(HERE / "host_entry.cpp")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise DeviceError(
                f"g++ cannot compile {build.source} (exit code {result.returncode}): {result.stderr[:2000]}"
            )
        return target.read_bytes()


class HostKernel:
    """A kernel as a library of this process."""

    def __init__(self, image: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(image)
            file.flush()
            self.library = ctypes.CDLL(file.name)
        self.library.shim_products.restype = ctypes.c_ulonglong
        self.lock = threading.Lock()  # the shim has one CUDA thread at a time

    def set(self, name: str, value: int) -> None:
        """Set a switch of the shim."""
        ctypes.c_int.in_dll(self.library, name).value = value

    def products(self) -> int:
        """Matrix products that were made so far."""
        return int(self.library.shim_products())

    def run(self, work: Work, blocks: int, threads: int, shared_bytes: int) -> None:
        """Run to the end; raise what the shim finds wrong."""
        with self.lock:
            failed = self.library.shim_launch(ctypes.byref(work), blocks, threads, shared_bytes)
            if failed:
                raise DeviceError((ctypes.c_char * 256).in_dll(self.library, "shim_message").value.decode())


def _held(action: Callable[[], None]) -> bool:
    """Whether an action waits for something that is still to be done."""
    return isinstance(action, _Wait) and not action.mark.reached


def _known(stream: Stream) -> Stream:
    """Return the default stream for what `__cuda_array_interface__` calls it."""
    return 0 if stream == 1 else stream


class _Memory:
    def __init__(self, address: int) -> None:
        self.address = address


class _Pinned:
    def __init__(self, array: npt.NDArray[np.uint8]) -> None:
        self.bytes = array


class _Mark:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.reached = False


class _Wait:
    def __init__(self, device: "ShimDevice", mark: _Mark) -> None:
        self.device, self.mark = device, mark

    def __call__(self) -> None:
        self.device._advance(self.mark)


class DeviceArray:
    """An array that claims to be in device memory."""

    def __init__(self, array: npt.NDArray[Any], stream: int | None = None) -> None:
        self.array = array
        self.stream = stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        contiguous = self.array.flags.c_contiguous
        return {
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "data": (self.array.__array_interface__["data"][0], not self.array.flags.writeable),
            "strides": None if contiguous else self.array.strides,
            "version": 3,
            "stream": self.stream,
        }

    def __getitem__(self, key: Any) -> "DeviceArray":
        return DeviceArray(self.array[key])


class _OnHost:
    """An array whose DLPack device is the CPU, as it truly is: NumPy takes no other."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **_: object) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return (1, 0)


class _Writable:
    """Memory that NumPy got by DLPack, which it takes for read-only."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


class ShimDevice:
    """See the module.

    Parameters
    ----------
    capability : int
    limit : int
        Bytes of device memory that there are.
    gfx : str
        Of an AMD GPU: kernels are compiled as for ROCm.
    beside : ShimDevice, optional
        Another device of the same process.
    """

    def __init__(
        self, capability: int = 90, limit: int = 1 << 40, gfx: str = "", beside: "ShimDevice | None" = None
    ) -> None:
        self.info = DeviceInfo(f"host shim as {gfx or f'sm_{capability}'}", capability, 1, 64 << 10, gfx)
        self.number: int = 0 if beside is None else beside.number + 1
        self.compiler = compiler_version()
        self.limit = limit
        self.used = 0
        self.compiled: list[Build] = []
        self.kernels: list[HostKernel] = []
        self.launches: list[tuple[Launch, Stream]] = []
        self.copies: list[tuple[str, int]] = []
        self.arrays: list[npt.NDArray[np.uint8]] = []  # work that is put off may still need them
        self.fail_launch: str | None = None
        self.early = False  # see the module
        self.seconds: list[float] = []  # what `elapsed` returns next
        self.places: dict[int, tuple[int, Location]] = {} if beside is None else beside.places
        self.queues: dict[Stream, list[Callable[[], None]]] = {0: []}
        self.current: Stream = 0
        self._next_stream = 1 << 32
        self._lock = threading.RLock()

    # Kernels

    def compile(self, build: Build) -> bytes:
        self.compiled.append(build)
        return compile_host(build, plain=bool(self.info.gfx))

    def load(self, image: bytes, kernel: str) -> Kernel:
        if image[:4] != b"\x7fELF":
            raise DeviceError(f"loading the kernel {kernel} failed: not an image")
        self.kernels.append(HostKernel(image))
        return self.kernels[-1]

    def launch(self, kernel: Kernel, launch: Launch, work: Work, stream: Stream) -> None:
        if self.fail_launch:
            raise DeviceError(self.fail_launch)
        assert isinstance(kernel, HostKernel)
        own = Work.from_buffer_copy(work)
        self.launches.append((launch, stream))
        self._enqueue(stream, lambda: kernel.run(own, launch.blocks, launch.threads, launch.shared_bytes))

    # Streams

    def _enqueue(self, stream: Stream, action: Callable[[], None]) -> None:
        with self._lock:
            self.queues[_known(stream)].append(action)

    def _advance(self, mark: _Mark) -> None:
        while self.early and not mark.reached:
            # What waits for a mark that is not reached stays; streams are in the order in which they were made.
            ready = (queue for queue in self.queues.values() if queue and not _held(queue[0]))
            if (queue := next(ready, None)) is None:
                raise DeviceError("streams wait for each other")
            queue.pop(0)()
        while not mark.reached:
            self.queues[_known(mark.stream)].pop(0)()

    def current_stream(self) -> Stream:
        return self.current

    def new_stream(self) -> Stream:
        with self._lock:
            self._next_stream += 1
            self.queues[self._next_stream] = []
            return self._next_stream

    def close_stream(self, stream: Stream) -> None:
        with self._lock:
            self.finish(stream)
            del self.queues[stream]

    def record(self, stream: Stream) -> Event:
        mark = _Mark(stream)

        def reach() -> None:
            mark.reached = True

        self._enqueue(stream, reach)
        return mark

    def wait(self, stream: Stream, event: Event) -> None:
        assert isinstance(event, _Mark)
        self._enqueue(stream, _Wait(self, event))

    def synchronize(self, event: Event) -> None:
        assert isinstance(event, _Mark)
        with self._lock:
            self._advance(event)

    def finish(self, stream: Stream) -> None:
        """Do all that a stream has before it."""
        self.synchronize(self.record(stream))

    def elapsed(self, start: Event, end: Event) -> float:
        assert isinstance(start, _Mark)
        assert isinstance(end, _Mark)
        assert start.reached
        assert end.reached
        return self.seconds.pop(0) if self.seconds else 1.0

    # Memory

    def _take(self, size: int, kind: str) -> tuple[npt.NDArray[np.uint8], int]:
        if kind == "device" and self.used + size > self.limit:
            raise DeviceMemoryError(f"{self.info.name}: out of memory allocating {size} bytes")
        memory = np.full(size + 256, 0xA5, np.uint8)
        start = -memory.ctypes.data % 256
        array = memory[start : start + size]
        address = int(array.ctypes.data)
        self.places[address] = (size, Location("device" if kind == "device" else "pinned", self.number))
        if kind == "device":
            self.used += size
        return array, address

    def allocate(self, size: int, stream: Stream) -> Memory:
        with self._lock:
            array, address = self._take(size, "device")
        memory = _Memory(address)

        def poison() -> None:
            array[:] = 0x5A
            self.places.pop(address, None)

        def give_back() -> None:  # at once for the books, but in the order of the stream that took it, as pools do
            self.used -= size
            self.queues.get(stream, []).append(poison)

        weakref.finalize(memory, give_back)
        return memory

    def allocate_pinned(self, size: int) -> PinnedMemory:
        with self._lock:
            return _Pinned(self._take(size, "pinned")[0])

    def pinned_array(self, *shape: int) -> npt.NDArray[np.uint8]:
        """Return page-locked memory as a caller would have it."""
        return self.allocate_pinned(int(np.prod(shape))).bytes.reshape(shape)

    def device_array(self, array: npt.NDArray[Any]) -> DeviceArray:
        """Return a copy in device memory; it lives as long as the device."""
        memory, _ = self._take(max(1, array.nbytes), "device")
        self.arrays.append(memory)
        memory[: array.nbytes] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        return DeviceArray(memory[: array.nbytes].view(array.dtype).reshape(array.shape))

    def copy(self, to: int, source: int, size: int, stream: Stream) -> None:
        self.copies.append(("out" if self._leaves(to, source) else "copy", size))
        self._move(to, size, source, size, size, 1, stream)

    def copy_rows(
        self, to: int, to_stride: int, source: int, source_stride: int, width: int, rows: int, stream: Stream
    ) -> None:
        assert min(to_stride, source_stride) >= width
        self.copies.append(("rows out" if self._leaves(to, source) else "rows", width * rows))
        self._move(to, to_stride, source, source_stride, width, rows, stream)

    def _leaves(self, to: int, source: int) -> bool:
        return self.locate(source).kind == "device" != self.locate(to).kind

    def _move(
        self, to: int, to_stride: int, source: int, source_stride: int, width: int, rows: int, stream: Stream
    ) -> None:
        kept = None
        if self.locate(source).kind == "host":  # ordinary memory has been read when the call returns
            kept = ctypes.create_string_buffer(ctypes.string_at(source, (rows - 1) * source_stride + width))
            source = ctypes.addressof(kept)

        def move() -> None:
            for row in range(rows):
                ctypes.memmove(to + row * to_stride, source + row * source_stride, width)
            kept  # noqa: B018 - lives until here

        self._enqueue(stream, move)
        if self.locate(to).kind == "host":  # and it has been written
            self.finish(stream)

    def locate(self, address: int) -> Location:
        for start, (size, location) in self.places.items():
            if start <= address < start + size:
                return location
        return Location("host", 0)

    def new_array(self, shape: tuple[int, ...]) -> object:
        return self.device_array(np.full(shape, 0xA5, np.uint8))

    def from_dlpack(self, array: object) -> object:
        return DeviceArray(np.asarray(_Writable(np.from_dlpack(_OnHost(array)))))

    def interface_of(self, array: object) -> Mapping[str, Any]:
        assert isinstance(array, DeviceArray)
        return array.__cuda_array_interface__
