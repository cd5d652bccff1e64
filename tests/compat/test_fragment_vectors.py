"""Fragments hold PyECLib's bytes also where PyECLib is not installed: golden vectors."""

import json
from typing import Any

import pytest

from gfcode.compat.checksums import ENVIRONMENT_VARIABLE
from gfcode.compat.pyeclib import ECDriver
from tests.compat.make_vectors import FILE, data_of, digest
from tests.compat.shapes import SHAPES

VECTORS = json.loads(FILE.read_text(encoding="ascii"))["vectors"]


@pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda v: "-".join(map(str, [*v["options"].values(), "legacy" if v["legacy"] else "usual"]))
)
def test_bytes(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "1" if vector["legacy"] else "0")
    driver = ECDriver(**vector["options"])
    made = {length: digest(driver.encode(data_of(int(length)))) for length in vector["sha256"]}
    assert made == vector["sha256"]


def test_every_shape_has_vectors() -> None:
    found = {(v["options"]["ec_type"], v["options"]["k"], v["options"]["m"]) for v in VECTORS}
    assert found == {(ec_type, k, m) for ec_type, shapes in SHAPES.items() for k, m in shapes}
