"""Campaigns against data loss: crashes, I/O faults, rot and hostile shards.

Each campaign is a module with a function that runs it and counts what came out; a broken promise raises at once, with
what is needed to run that one trial again. Tests run a fixed share; `make soak` runs them in full.
"""
