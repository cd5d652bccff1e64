"""The manual page and the versions: made from what the program is, complete, and readable by `man`."""

import platform
import re
import shutil
import subprocess
from importlib.metadata import version

import click
import pytest

from gfcode.cli.exits import EXIT_CODES
from gfcode.cli.main import COMMANDS, ENVIRONMENT, root
from gfcode.cli.man import COMPLETIONS, files, manual
from gfcode.cli.versions import FOUNDATIONS, text
from gfcode.engine.registry import ENGINES
from tests.cli.conftest import Runner
from tests.cli.test_main import leaves
from tests.docs.fences import ROOT


@pytest.fixture
def page(gfcode: Runner) -> str:
    done = gfcode("man")
    assert done.code == 0
    return done.out


def test_every_command_option_exit_code_and_variable_is_in_the_page(page: str, gfcode: Runner) -> None:
    plain = page.replace("\\-", "-")
    for name in COMMANDS:
        assert re.search(rf'^\.SS "gfcode {name}\b', plain, re.MULTILINE), name
        command = root.get_command(click.Context(root), name)
        for leaf in leaves(command):
            for parameter in leaf.params:
                if isinstance(parameter, click.Option):
                    assert re.search(rf"^\\fB(.*, )?{re.escape(parameter.opts[0])}\b", plain, re.MULTILINE)
    for code in EXIT_CODES:
        assert f"\\fB{int(code)}\\fR\n" in plain
    assert all(f"\\fB{variable}\\fR\n" in plain for variable in ENVIRONMENT)
    assert gfcode("man", "--json").json == {"page": page}


def test_requests_are_only_those_meant(page: str) -> None:
    """No line of help is taken for a request, and no backslash of it for an escape."""
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".B", ".PP", ".TP", ".nf", ".fi"}
    assert set(re.findall(r"\\(.)", page)) <= set("-efe(&")
    assert "" not in page.removesuffix("\n").split("\n")


def test_odd_help_is_text() -> None:
    group = click.Group("g", help=".SH it's \\n: x", commands=[click.Command("c", help='\'a "b"', epilog="-c")])
    page = manual(group, "1-2", {"A": ".b"})
    assert page.splitlines()[:3] == [
        '.TH GFCODE 1 "" "gfcode 1\\-2" "User Commands"',
        ".SH NAME",
        "gfcode \\- .sh it's \\en",
    ]
    assert "\n\\&.SH it's \\en: x\n" in page
    assert "\n\\&'a \\(dqb\\(dq\n" in page
    assert "\n\\-c\n" in page
    assert "\n\\&.b\n" in page


def test_the_page_and_completions_that_are_installed_are_those_of_the_commands() -> None:
    """Other versions of click word some lines otherwise; commands and options are the same all the same."""
    wanted = files(root, version("gfcode"), ENVIRONMENT)
    installed = {name: (ROOT / "share" / name).read_text(encoding="utf-8") for name in wanted}
    assert {str(path.relative_to(ROOT / "share")) for path in (ROOT / "share").rglob("*") if path.is_file()} == set(
        wanted
    )
    page = "man/man1/gfcode.1"
    if wanted[page].partition("\n")[0] == installed[page].partition("\n")[0]:
        assert installed == wanted, "the commands have changed: run `make share`"
    names = re.compile(r'^(?:\.SS "[^"]*|\\fB[^ ]*)', re.MULTILINE)
    assert names.findall(installed[page]) == names.findall(wanted[page]), "the commands have changed: run `make share`"
    assert set(COMPLETIONS.values()) | {page} == set(wanted)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not here")
def test_groff_reads_it_without_complaint(page: str) -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=80n"],
        input=page,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "gfcode repair [OPTIONS] PATH..." in done.stdout
    assert "beyond repair: some stripes have fewer than k good frames" in " ".join(done.stdout.split())


def test_versions_name_every_engine(gfcode: Runner) -> None:
    assert set(FOUNDATIONS) == set(ENGINES)
    done = gfcode("--version")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == f"gfcode {version('gfcode')}"
    assert platform.python_version() in lines[1]
    assert [line.split()[0] for line in lines[2:6]] == list(FOUNDATIONS)
    for name in ("llvmlite", "numba", "numpy"):
        assert f"{name} {version(name)}" in done.out


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "gfcode.cli.versions.FOUNDATIONS", {"warp": ("no-such-thing", "nor-this"), "x": ("nor", "click")}
    )
    assert text().splitlines()[2:4] == ["warp  no-such-thing is not installed", f"x     click {version('click')}"]
