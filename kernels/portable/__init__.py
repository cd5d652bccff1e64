"""The `numba` engine: every w, both layouts, any CPU that LLVM compiles for."""
