"""Shard files: encode, decode, verify and repair them, with bounded memory and nothing written that is not so."""
