"""A module in CuPy's place that knows only what a device is asked for when it is opened and compiled for."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any


class FakeRuntimeError(RuntimeError):
    """What the calls of the fake runtime fail with."""


class FakeNvrtcError(RuntimeError):
    """What the fake compiler fails with."""


class FakeArray:
    """An array of CuPy for ROCm, which has no `__cuda_array_interface__`."""

    def __init__(self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.data, self.shape, self.strides = SimpleNamespace(ptr=pointer), shape, strides
        self.dtype = SimpleNamespace(str="|u1")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (10, 0)


def fake_cupy(
    *,
    count: int | Exception = 1,
    capability: tuple[int, int] = (9, 0),
    compiler: tuple[int, int] | Exception = (12, 9),
    hip: bool = False,
) -> ModuleType:
    """Make one. An exception in place of an answer is raised when it is asked for."""

    def answer(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    properties: dict[str, Any] = {
        "name": b"Some GPU",
        "major": capability[0],
        "minor": capability[1],
        "multiProcessorCount": 4,
    }
    # The same figure has another name there.
    properties |= (
        {"maxSharedMemoryPerMultiProcessor": 1 << 16, "gcnArchName": b"gfx90a:sramecc+:xnack-"}
        if hip
        else {"sharedMemPerMultiprocessor": 1 << 16}
    )
    runtime = SimpleNamespace(
        is_hip=hip,
        CUDARuntimeError=FakeRuntimeError,
        getDeviceCount=lambda: answer(count),
        getDevice=lambda: 0,
        getDeviceProperties=lambda _number: properties,
        runtimeGetVersion=lambda: 50221153,
        pointerGetAttributes=_attributes,
    )
    driver = SimpleNamespace(CUDADriverError=FakeRuntimeError)
    module: Any = ModuleType("cupy")
    module.ndarray = FakeArray
    module.cuda = SimpleNamespace(
        runtime=runtime,
        driver=driver,
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        nvrtc=FakeCompiler(lambda: answer(compiler)).namespace,
        Device=_Current,
    )
    found: ModuleType = module
    return found


def _attributes(address: int) -> SimpleNamespace:
    """Answer as HIP does: ordinary memory is an error, and a kind of memory has no number to rely on."""
    if address < 100:
        raise FakeRuntimeError("hipErrorInvalidValue: invalid argument")
    return SimpleNamespace(type=-1, device=0, devicePointer=address, hostPointer=address if address < 200 else 0)


class _Current:
    """The current device, as a context."""

    number: "int | None" = None

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        _Current.number = self._number

    def __exit__(self, *_: object) -> None:
        _Current.number = None


class FakeCompiler:
    """Takes programs, keeps what it was told, and gives back some code. Its namespace is CuPy's `nvrtc`."""

    def __init__(self, version: Callable[[], Any]) -> None:
        self.options: list[str] = []
        self.headers: list[bytes] = []
        self.device: int | None = None
        self.fails = False
        self.namespace = SimpleNamespace(
            compiler=self,
            NVRTCError=FakeNvrtcError,
            getVersion=version,
            createProgram=self.create,
            compileProgram=self.compile,
            getPTX=lambda _program: b"\x7fELF code for AMD",
            getCUBIN=self._fail,
            getProgramLog=lambda _program: "in file included\nprogram.cuh:1:3: error: no such name",
            destroyProgram=lambda _program: None,
        )

    def create(self, source: str, name: str, _texts: list[bytes], names: list[bytes]) -> int:
        """Take a program."""
        assert isinstance(source, str)
        assert name.endswith(".cu")
        self.headers = names
        return 7

    def compile(self, program: int, options: list[str]) -> None:
        """Keep the options, and for which device it is."""
        self.options, self.device = options, _Current.number
        if self.fails:
            self._fail(program)

    @staticmethod
    def _fail(_program: int) -> None:
        raise FakeNvrtcError("HIPRTC_ERROR_COMPILATION (6)")
