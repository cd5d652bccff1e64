"""Drop-in replacements for the Python interfaces of other erasure-coding libraries."""
