"""Products on GPUs: bit matrices on tensor cores, XOR programs on CUDA cores, through CuPy."""
