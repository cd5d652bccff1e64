"""Other implementations of the codes, driven as they are installed: ctypes, PyPI modules, Go and Java programs."""
