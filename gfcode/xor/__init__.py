"""Straight-line XOR programs: a bit matrix lowered, compressed, fused and scheduled; searches for cheaper matrices."""
