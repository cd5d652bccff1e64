"""GPUs through CuPy: its allocator, its streams, its NVRTC (or HIPRTC) and its handle on the driver.

CuPy for ROCm has the same calls with other names and numbers behind some, and no `__cuda_array_interface__`.
"""

import contextlib
import ctypes
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gfcode.errors import BlockError, DeviceError, DeviceMemoryError, EngineUnavailableError
from gfcode.kernels.cuda.device import Event, Kernel, Location, Memory, PinnedMemory, Stream
from gfcode.kernels.cuda.launch import Build, DeviceInfo, Launch
from gfcode.kernels.cuda.source import headers_for, kernel_source, options_for
from gfcode.kernels.cuda.work import Work

__all__ = ["CupyDevice"]

#: Turing is the first to have integer matrix products.
_OLDEST: Final = 75
#: In what the drivers call their errors for want of memory.
_NO_MEMORY: Final = ("MemoryAllocation", "OUT_OF_MEMORY", "OutOfMemory")
_MEMCPY_DEFAULT: Final = 4  # the driver sees from the addresses which way a copy goes
_MEMORY_KINDS: Final = {0: "host", 1: "pinned", 2: "device", 3: "device"}  # of cudaPointerAttributes


def _import_cupy() -> Any:
    try:
        import cupy  # noqa: PLC0415 - heavy, optional, and only needed where this engine is asked for
    except ModuleNotFoundError as error:
        raise EngineUnavailableError("cupy is not installed: pip install 'gfcode[cuda]'") from error
    except Exception as error:
        raise EngineUnavailableError(f"cupy cannot be imported: {_line(error)}") from error
    return cupy


def _line(error: BaseException) -> str:
    """First line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


class _DeviceMemory:
    """A block of CuPy's pool."""

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self.address: int = int(pointer.ptr)


class _PinnedMemory:
    """A block of CuPy's pool of page-locked memory."""

    def __init__(self, pointer: Any, size: int) -> None:
        self._pointer = pointer
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(pointer, np.uint8, size)


class CupyDevice:
    """One GPU; `open` makes one."""

    def __init__(self, cupy: Any, number: int) -> None:
        self._cupy = cupy
        self._runtime = cupy.cuda.runtime
        self.number = number
        properties = self._runtime.getDeviceProperties(number)
        hip = bool(self._runtime.is_hip)
        shared = "maxSharedMemoryPerMultiProcessor" if hip else "sharedMemPerMultiprocessor"
        self.info = DeviceInfo(
            _text(properties["name"]),
            10 * int(properties["major"]) + int(properties["minor"]),
            int(properties["multiProcessorCount"]),
            int(properties[shared]),
            _text(properties["gcnArchName"]).split(":")[0] if hip else "",
        )
        try:
            version = cupy.cuda.nvrtc.getVersion()
        except Exception as error:
            name = "HIPRTC, ROCm's compiler," if hip else "NVRTC, CUDA's compiler,"
            advice = "install it with ROCm" if hip else "pip install 'gfcode[cuda]'"
            raise EngineUnavailableError(f"{name} is not installed: {advice} ({_line(error)})") from error
        # HIPRTC gives the same version in every release: that of the runtime tells them apart.
        self.compiler = f"HIPRTC {self._runtime.runtimeGetVersion()}" if hip else f"NVRTC {version[0]}.{version[1]}"
        self._own_streams: dict[int, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, number: int | None = None) -> "CupyDevice":
        """Open a device, by default CuPy's current one.

        Raises
        ------
        EngineUnavailableError
            If there is no cupy, no driver, no device, or only one that is too old.
        """
        cupy = _import_cupy()
        runtime = cupy.cuda.runtime
        maker = "AMD" if runtime.is_hip else "NVIDIA"
        try:
            count = int(runtime.getDeviceCount())
            number = int(runtime.getDevice()) if count and number is None else number
        except Exception as error:
            reason = f"no {maker} driver is loaded, or one too old for this cupy"
            if "NoDevice" in str(error):
                reason = f"there is no {maker} GPU that this process may use"
            raise EngineUnavailableError(f"{reason} ({_line(error)})") from error
        if count == 0:
            raise EngineUnavailableError(f"there is no {maker} GPU that this process may use")
        device = cls(cupy, number or 0)
        if device.info.capability < _OLDEST and not device.info.gfx:
            major, minor = divmod(device.info.capability, 10)
            raise EngineUnavailableError(
                f"{device.info.name} has compute capability {major}.{minor}; the engine needs 7.5 or newer"
            )
        return device

    @contextlib.contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """On this device; with CuPy's errors as ours."""
        cuda = self._cupy.cuda
        try:
            with cuda.Device(self.number):
                yield
        except cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(f"{self.info.name}: {_line(error)}") from error
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            if any(name in str(error) for name in _NO_MEMORY):
                raise DeviceMemoryError(f"{self.info.name}: {_line(error)}") from error
            raise DeviceError(f"{self.info.name}: {what} failed: {_line(error)}") from error

    def compile(self, build: Build) -> bytes:
        """Compile a kernel with NVRTC or HIPRTC."""
        nvrtc = self._cupy.cuda.nvrtc
        headers = headers_for(build)
        names, texts = [name.encode() for name in headers], [text.encode() for text in headers.values()]
        program = nvrtc.createProgram(kernel_source(build), build.source, texts, names)
        try:
            # HIPRTC compiles for the current device; NVRTC needs none.
            with self._translated("compiling") if self.info.gfx else contextlib.nullcontext():
                nvrtc.compileProgram(program, list(options_for(build, self.info)))
            # What CuPy calls PTX is machine code where HIPRTC made it.
            return bytes(nvrtc.getPTX(program) if self.info.gfx else nvrtc.getCUBIN(program))
        except nvrtc.NVRTCError as error:
            log = str(nvrtc.getProgramLog(program)).strip().splitlines()
            reason = next((line for line in log if "error" in line), _line(error))
            raise DeviceError(f"{self.compiler} cannot compile {build.source}: {reason}") from error
        finally:
            nvrtc.destroyProgram(program)

    def load(self, image: bytes, kernel: str) -> Kernel:
        """Load a cubin."""
        with self._translated(f"loading the kernel {kernel}"):
            module = self._cupy.cuda.function.Module()
            module.load(image)
            return module.get_function(kernel)  # keeps its module

    def launch(self, kernel: Kernel, launch: Launch, work: Work, stream: Stream) -> None:
        """Start a kernel by the driver's own call, which takes the address of each argument."""
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(work))
        function: Any = kernel
        with self._translated(f"launching the kernel {launch.build.kernel}"):
            self._cupy.cuda.driver.launchKernel(
                function.ptr, launch.blocks, 1, 1, launch.threads, 1, 1, launch.shared_bytes, stream,
                ctypes.addressof(arguments), 0,
            )  # fmt: skip

    def current_stream(self) -> Stream:
        """Return CuPy's current stream on this device."""
        with self._translated("asking for the current stream"):
            return int(self._cupy.cuda.get_current_stream().ptr)

    def new_stream(self) -> Stream:
        """Make a stream that waits for no other."""
        with self._translated("making a stream"):
            made = self._cupy.cuda.Stream(non_blocking=True)
        with self._lock:
            self._own_streams[int(made.ptr)] = made
        return int(made.ptr)

    def close_stream(self, stream: Stream) -> None:
        """Give back a stream made by `new_stream`."""
        with self._lock:
            self._own_streams.pop(stream, None)

    def record(self, stream: Stream) -> Event:
        """Mark where a stream is."""
        with self._translated("recording an event"):
            event = self._cupy.cuda.Event()
            self._runtime.eventRecord(event.ptr, stream)
            return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Let a stream go on only after a mark."""
        mark: Any = event
        with self._translated("ordering streams"):
            self._runtime.streamWaitEvent(stream, mark.ptr)

    def synchronize(self, event: Event) -> None:
        """Wait on the host until a mark is reached."""
        mark: Any = event
        with self._translated("the work before this point"):
            self._runtime.eventSynchronize(mark.ptr)

    def elapsed(self, start: Event, end: Event) -> float:
        """Seconds between two marks."""
        first: Any = start
        last: Any = end
        with self._translated("timing"):
            return float(self._runtime.eventElapsedTime(first.ptr, last.ptr)) / 1000

    def allocate(self, size: int, stream: Stream) -> Memory:
        """Take device memory from CuPy's pool, in the arena of a stream."""
        with self._translated("allocating memory"), self._cupy.cuda.ExternalStream(stream, self.number):
            return _DeviceMemory(self._cupy.cuda.alloc(size))

    def allocate_pinned(self, size: int) -> PinnedMemory:
        """Take page-locked memory from CuPy's pool."""
        with self._translated("allocating page-locked memory"):
            return _PinnedMemory(self._cupy.cuda.alloc_pinned_memory(size), size)

    def copy(self, to: int, source: int, size: int, stream: Stream) -> None:
        """Copy bytes between any two addresses."""
        with self._translated("a copy"):
            self._runtime.memcpyAsync(to, source, size, _MEMCPY_DEFAULT, stream)

    def copy_rows(
        self, to: int, to_stride: int, source: int, source_stride: int, width: int, rows: int, stream: Stream
    ) -> None:
        """Copy runs of bytes at strides."""
        with self._translated("a copy"):
            self._runtime.memcpy2DAsync(to, to_stride, source, source_stride, width, rows, _MEMCPY_DEFAULT, stream)

    def locate(self, address: int) -> Location:
        """Say whose memory an address is."""
        if self.info.gfx:
            return self._locate_on_rocm(address)
        with self._translated("looking an address up"):
            attributes = self._runtime.pointerGetAttributes(address)
        kind = _MEMORY_KINDS.get(int(attributes.type), "host")
        return Location(kind, int(attributes.device))  # type: ignore[arg-type] # a value of the table above

    def _locate_on_rocm(self, address: int) -> Location:
        """Do so where ordinary memory is an error, and kinds have other numbers from release to release."""
        try:
            with self._cupy.cuda.Device(self.number):
                attributes = self._runtime.pointerGetAttributes(address)
        except self._runtime.CUDARuntimeError:
            return Location("host", 0)
        if int(attributes.hostPointer):
            return Location("pinned", int(attributes.device))
        return Location("device" if int(attributes.devicePointer) else "host", int(attributes.device))

    def new_array(self, shape: tuple[int, ...]) -> object:
        """Make an uninitialised CuPy array."""
        with self._translated("allocating an array"):
            return self._cupy.empty(shape, np.uint8)

    def from_dlpack(self, array: object) -> object:
        """Make a CuPy array of any that has `__dlpack__`."""
        if isinstance(array, self._cupy.ndarray):
            return array
        try:
            with self._translated("taking an array over"):
                return self._cupy.from_dlpack(array)
        except (BufferError, TypeError, ValueError) as error:
            raise BlockError(f"a {type(array).__name__} cannot be taken over by DLPack: {_line(error)}") from error

    def interface_of(self, array: object) -> Mapping[str, Any]:
        """Describe a CuPy array, on ROCm too, where CuPy itself does not."""
        own: Any = array
        return {
            "shape": own.shape,
            "typestr": own.dtype.str,
            "data": (int(own.data.ptr), False),
            "strides": own.strides,
            "stream": None,
        }
