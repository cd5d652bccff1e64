"""Measuring codes on this machine: the harness that all benchmarks share, ISA-L beside it, and plots."""
