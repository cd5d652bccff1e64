"""Benchmark programs: `python -m bench.NAME` runs one."""
