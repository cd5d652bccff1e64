"""What one launch of a kernel is told: the mirror of `struct Work` in src/work.cuh."""

import ctypes

__all__ = ["Work"]


class Work(ctypes.Structure):
    """Addresses, strides and counts, in the order and with the padding of the device's compiler."""

    _fields_ = (
        ("input", ctypes.c_uint64),
        ("output", ctypes.c_uint64),
        ("input_table", ctypes.c_uint64),
        ("output_table", ctypes.c_uint64),
        ("input_stripe", ctypes.c_int64),
        ("input_block", ctypes.c_int64),
        ("output_stripe", ctypes.c_int64),
        ("output_block", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("piece", ctypes.c_int64),
        ("matrix", ctypes.c_uint64),
        ("live", ctypes.c_uint64),
        ("which", ctypes.c_uint64),
        ("c", ctypes.c_uint32),
        ("r", ctypes.c_uint32),
        ("stripes", ctypes.c_uint32),
        ("tiles", ctypes.c_uint32),
        ("whole_tiles", ctypes.c_uint32),
        ("step_stripe", ctypes.c_uint32),
        ("step_tile", ctypes.c_uint32),
        ("span", ctypes.c_uint32),
    )
