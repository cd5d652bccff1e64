"""PyECLib in a process of its own: answers pickled calls from standard input on standard output.

A process of its own has its own library path, where liberasurecode finds Jerasure, and may crash.
"""

import os
import pickle
import sys
import warnings
from typing import Any

LEGACY = "LIBERASURECODE_WRITE_LEGACY_CRC"


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever C code prints
    warnings.simplefilter("ignore")
    import pyeclib.ec_iface as interface

    drivers: dict[tuple[tuple[str, Any], ...], Any] = {}
    pickle.dump((interface.VALID_EC_TYPES, interface.__version__), answers)
    answers.flush()
    while True:
        try:
            options, legacy, method, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the tests
        except EOFError:
            return
        os.environ[LEGACY] = "1" if legacy else ""
        key = tuple(sorted(options.items()))
        try:
            if key not in drivers:
                drivers[key] = interface.ECDriver(**options)
            answer = ("returned", getattr(drivers[key], method)(*arguments) if method else None)
        except Exception as error:  # noqa: BLE001 - the caller is told
            answer = ("raised", type(error).__name__)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
