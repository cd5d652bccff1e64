"""The `simd` engine: kernels written in LLVM's language and compiled for the CPU at hand."""
