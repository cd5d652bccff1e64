"""Write what an installation puts below share/: the manual page and shell completion, made from the commands.

    python .ci/share.py [--check]

With --check nothing is written; the exit code is 1 where a file is not what it should be.
"""

import sys
from importlib.metadata import version
from pathlib import Path

from gfcode.cli.main import ENVIRONMENT, root
from gfcode.cli.man import files

SHARE = Path(__file__).resolve().parents[1] / "share"


def main(arguments: list[str]) -> int:
    """Write the files, or say which differ; return the exit code."""
    wrong = 0
    for name, content in files(root, version("gfcode"), ENVIRONMENT).items():
        path = SHARE / name
        if path.is_file() and path.read_text(encoding="utf-8") == content:
            continue
        if "--check" in arguments:
            sys.stderr.write(f"{path} is not what `make share` would write\n")
            wrong = 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        sys.stdout.write(f"written: {path}\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
