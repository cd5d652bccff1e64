"""Engines: the contract (`protocol`), the oracle (`naive`), the choice among engines (`registry`)."""
