"""The site: it is built strictly, needs nothing from elsewhere, and has every page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.fences import ROOT

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: pip install '.[docs]'")


def build(project: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as `make docs` does, without a network: whatever would be fetched is an error."""
    (command,) = re.findall(r"/mkdocs (build .*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *command.split(), "--site-dir", str(site)],
        cwd=project, env=os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize(
    ("page", "nav", "words"),
    [
        ("[gone](gone.md)", "[index.md]", "gone.md"),
        ("[here](#no-such-heading)", "[index.md]", "no-such-heading"),
        ("Words.", "[index.md, gone.md]", "gone.md"),
        ("Words.", "[other.md]", "index.md"),
    ],
)
def test_a_broken_site_is_not_built(tmp_path: Path, page: str, nav: str, words: str) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (validation,) = re.findall(r"^validation:\n(?:  .*\n)+", settings, re.MULTILINE)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# A page\n\n{page}\n")
    if "other" in nav:
        (tmp_path / "docs/other.md").write_text("# Another\n")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\nplugins: []\ntheme: mkdocs\n{validation}nav: {nav}\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe|source)[^>]*\bsrc=[\"']?(?:https?:)?//|<link[^>]*\bhref=[\"']?(?:https?:)?//"
    )
    imports = re.compile(r"@import|url\(['\"]?(?:https?:)?//")
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not loads.search(text), page
        # The theme loads this one library, for diagrams that no page has, from elsewhere.
        assert 'class="mermaid"' not in text
    for sheet in site.rglob("*.css"):
        assert not imports.search(sheet.read_text(encoding="utf-8")), sheet


def test_every_page_is_built_and_found_by_search(site: Path) -> None:
    pages = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in (ROOT / "docs").rglob("*.md")}
    index = (site / "search/search_index.json").read_text(encoding="utf-8")
    for page in pages:
        assert (site / page).is_file()
        assert f'"location":"{page}' in index


def test_the_reference_has_the_docstrings(site: Path) -> None:
    codec = (site / "reference/codec.html").read_text(encoding="utf-8")
    for name in ("encode", "decode", "reconstruct", "verify", "update", "preset", "plan"):
        assert f'id="gfcode.codec.Codec.{name}"' in codec
    assert "any k of the n = k + m give everything back" in codec
