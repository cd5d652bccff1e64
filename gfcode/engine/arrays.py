"""Arrays in device memory, told from all others by the protocols that they speak."""

from typing import Final

__all__ = ["is_device_array"]

#: Device types of DLPack that are a GPU's memory: kDLCUDA, kDLROCM and kDLCUDAManaged.
_GPUS: Final = {2, 10, 13}


def is_device_array(value: object) -> bool:
    """Tell whether an object is an array in a GPU's memory: of CuPy, torch, JAX, numba, or any other that says so.

    What counts is `__cuda_array_interface__`, or a GPU in `__dlpack_device__`.
    """
    if hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and int(device()[0]) in _GPUS
