"""Run PyECLib's published tests, unmodified, upon gfcode's driver.

``python -m tests.compat.run_pyeclib_suite`` downloads PyECLib's source distribution by pip into a temporary folder,
puts `gfcode.compat.pyeclib` where the tests import `pyeclib.ec_iface`, and runs them by unittest. PyECLib need not be
installed; of its package only `pyeclib.cli`, which is pure Python above `ec_iface`, is used, from the same archive.
The last line of output is a JSON object of outcomes by test.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gfcode.compat.pyeclib
from tests.compat import pyeclib_c_on_driver

__all__ = ["SuiteMissingError", "fetch", "run"]

VERSION = "1.8.0"
MODULES = ("test_pyeclib_api", "test_pyeclib_c", "test_pyeclib_cli")


class SuiteMissingError(Exception):
    """The source distribution cannot be had; the message says why."""


def fetch(folder: Path) -> Path:
    """Download and unpack PyECLib's source distribution, and return where it lies.

    Raises
    ------
    SuiteMissingError
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
    command += ["--no-build-isolation", "--dest", str(folder), f"pyeclib=={VERSION}"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired as error:
        raise SuiteMissingError("pip could not download PyECLib's source distribution within 60 s") from error
    archives = list(folder.glob("*.tar.gz"))
    if not archives:
        lines = found.stderr.strip().splitlines() or ["no reason given"]
        raise SuiteMissingError(f"pip could not download PyECLib's source distribution: {lines[-1]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    return folder / archives[0].name.removesuffix(".tar.gz")


def install_in_place_of_pyeclib(source: Path) -> None:
    """Make `import pyeclib.ec_iface` and `import pyeclib_c` mean gfcode, in this process.

    A wheel of PyECLib that is installed beside is hidden with its record: its command asks that for a liberasurecode
    that came in the wheel, and there is none in what stands here for it.
    """
    package = types.ModuleType("pyeclib")
    package.__path__ = [str(source / "src" / "pyeclib")]
    interface: Any = gfcode.compat.pyeclib
    package.ec_iface = interface  # type: ignore[attr-defined] # a module object made by hand
    record_of = importlib.metadata.files

    def files(distribution_name: str) -> Any:
        if distribution_name == "pyeclib":
            raise importlib.metadata.PackageNotFoundError(distribution_name)
        return record_of(distribution_name)

    importlib.metadata.files = files
    sys.modules.update({"pyeclib": package, "pyeclib.ec_iface": interface, "pyeclib_c": pyeclib_c_on_driver})


class Outcomes(unittest.TextTestResult):
    """Keeps how each test ended, and how long it took."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.outcomes: dict[str, str] = {}
        self.seconds: dict[str, float] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.seconds[test.id()] = time.monotonic()
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.outcomes.setdefault(test.id(), "passed")
        self.seconds[test.id()] = time.monotonic() - self.seconds[test.id()]
        super().stopTest(test)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id()] = f"failed: {err[1]}"
        super().addFailure(test, err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id()] = f"failed: {err[0].__name__}: {err[1]}"
        super().addError(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id()] = f"skipped: {reason}"
        super().addSkip(test, reason)


def cases(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    """All tests of a suite."""
    found: list[unittest.TestCase] = []
    for part in suite:
        found += cases(part) if isinstance(part, unittest.TestSuite) else [part]
    return found


def run(source: Path, *, only: Sequence[str] = (), leave_out: Sequence[str] = ()) -> dict[str, str]:
    """Run the tests and return how each ended.

    Parameters
    ----------
    source : Path
        PyECLib's unpacked source distribution.
    only, leave_out : sequence of str
        Parts of names: tests that have one of `only`, if there are any, and none of `leave_out`.
    """
    install_in_place_of_pyeclib(source)
    suite = unittest.TestSuite()
    for name in MODULES:
        spec = importlib.util.spec_from_file_location(name, source / "test" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for case in cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
            chosen = not only or any(part in case.id() for part in only)
            if chosen and not any(part in case.id() for part in leave_out):
                suite.addTest(case)
    result = unittest.TextTestRunner(sys.stderr, verbosity=2, resultclass=Outcomes).run(suite)
    assert isinstance(result, Outcomes)
    return {name: f"{outcome} ({result.seconds[name]:.1f} s)" for name, outcome in result.outcomes.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="PyECLib's unpacked source distribution, instead of a download")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="run tests with this in their name")
    parser.add_argument("--leave-out", action="append", default=[], metavar="PART", help="do not run such tests")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(options.source or fetch(Path(folder)), only=options.only, leave_out=options.leave_out)
    print(json.dumps(outcomes))
    return any(outcome.startswith("failed") for outcome in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
