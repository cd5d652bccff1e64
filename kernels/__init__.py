"""Kernels: what runs products on the hardware. Loaded by name through `gfcode.engine.registry`, imported by nothing."""
