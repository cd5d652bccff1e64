"""Move the fragments of changes/ into CHANGELOG.md, under the version that pyproject.toml has.

    python .ci/changelog.py [--draft] [--date YYYY-MM-DD]

With --draft the new section is printed and nothing is changed.
"""

import argparse
import datetime as dt
import re
import sys
import tomllib
from pathlib import Path

#: Kinds of change, by the last word of a fragment's name, with their headings and in their order.
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed"}


def fragments(folder: Path) -> dict[str, list[Path]]:
    """Return the fragments of each kind, by name; refuse what is none."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = re.fullmatch(r"[a-z0-9-]+\.(\w+)\.md", path.name)
        if match is None or match[1] not in KINDS:
            raise SystemExit(f"{path}: fragments are named SLUG.KIND.md, with a KIND of {', '.join(KINDS)}")
        found[match[1]].append(path)
    return found


def section(version: str, date: dt.date, found: dict[str, list[Path]]) -> str:
    """Return the section of a release."""
    parts = [f"## {version} ({date})"]
    for kind, heading in KINDS.items():
        if found[kind]:
            entries = []
            for path in found[kind]:
                lines = path.read_text(encoding="utf-8").strip().splitlines()
                if not lines:
                    raise SystemExit(f"{path}: says nothing")
                entries.append("\n".join(["* " + lines[0], *("  " + line if line else "" for line in lines[1:])]))
            parts.append(f"### {heading}\n\n" + "\n".join(entries))
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str], root: Path) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Move the fragments of changes/ into CHANGELOG.md.")
    parser.add_argument("--draft", action="store_true", help="print the new section and change nothing")
    today = dt.datetime.now(dt.UTC).date()
    parser.add_argument("--date", type=dt.date.fromisoformat, default=today, help="of the release")
    options = parser.parse_args(arguments)
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    found = fragments(root / "changes")
    if not any(found.values()):
        raise SystemExit("changes/ has no fragments: nothing to release")
    if re.search(rf"^## {re.escape(version)}\b", text, re.MULTILINE):
        raise SystemExit(f"CHANGELOG.md has a section {version} already: raise the version in pyproject.toml first")
    new = section(version, options.date, found)
    if options.draft:
        sys.stdout.write(new)
        return
    # The newest release goes in front of the others, below the introduction.
    start = re.search(r"^## ", text, re.MULTILINE)
    head, rest = (text[: start.start()], text[start.start() :]) if start else (text, "")
    changelog.write_text(head.rstrip("\n") + "\n\n" + new + ("\n" + rest if rest else ""), encoding="utf-8")
    for paths in found.values():
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:], Path(__file__).resolve().parents[1])
