"""`gfcode engines`: what can run products here, what can't and why, and what would be chosen."""

import os
from dataclasses import asdict

import click

from gfcode.cli.console import Console, printable
from gfcode.cli.options import output_options

__all__ = ["command"]

#: Words in front of each engine's line.
_MARKS = {True: "usable", False: "unusable"}


@click.command("engines", short_help="List the engines: usable or why not, and the choice.")
@output_options
def command(console: Console) -> None:
    """List the engines: usable or why not, and which one is used where none is asked for."""
    from gfcode.engine.registry import ENVIRONMENT_VARIABLE, status

    engines = status()
    demanded = os.environ.get(ENVIRONMENT_VARIABLE) or None
    chosen = _chosen()
    console.result({"engines": [asdict(engine) for engine in engines], "environment": demanded, "chosen": chosen})
    width = max(len(engine.name) for engine in engines)
    for engine in engines:
        console.say(f"{engine.name:<{width}}  {_MARKS[engine.usable]:<8}  {printable(engine.detail)}".rstrip())
    console.say()
    for layout, name in chosen.items():
        console.say(f"chosen for layout {layout}: {name}")
    if demanded is not None:
        console.say(f"{ENVIRONMENT_VARIABLE}={printable(demanded)} asks for that engine in every command")


def _chosen() -> dict[str, str]:
    """Engine that the automatic choice takes for the default code, by layout."""
    from gfcode.engine.protocol import Product
    from gfcode.engine.registry import AutomaticEngine
    from gfcode.gf import GF
    from gfcode.matrix.generator import parity_matrix
    from gfcode.params import Layout

    parity = parity_matrix("powers", GF(8), 10, 4)
    automatic = AutomaticEngine()
    return {
        layout.name: automatic.choose(Product(parity, layout)).name
        for layout in (Layout("packets", 8), Layout("words", 8))
    }
