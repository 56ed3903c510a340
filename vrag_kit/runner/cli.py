"""The `vrag` command line.

Each command is a few lines over the package; an error is one clear message and a non-zero exit.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError
from vrag_kit.runner.answer_commands import answers
from vrag_kit.runner.check_commands import check, forecast
from vrag_kit.runner.fetch_commands import fetch
from vrag_kit.runner.result_commands import claims, compare, metrics
from vrag_kit.runner.run_commands import embed, report, run

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a docstring flow together, at any width
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        print(f"vrag_kit {version('vrag_kit')}")
        raise typer.Exit


@app.callback()
def research_kit(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    """Research kit for visual retrieval-augmented generation."""


def draw(
    edition: Annotated[
        str,
        typer.Argument(
            help=(
                "field-guide, field-guide-mrag-bench, field-guide-crag-mm or"
                " field-guide-mrag-suite; each also as -small"
            )
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="the folder to write it to")],
) -> None:
    """Generate an edition of the Field Guide, the bundled synthetic benchmark, in the layout
    of Visual-RAG, MRAG-Bench, CRAG-MM or MRAG-Suite.
    """
    from vrag_kit.synthetic.registry import generate_edition

    print(generate_edition(edition, folder))


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(run, embed, report),
    *(compare, metrics, claims),
    *(check, forecast, draw),
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(fetch, name="fetch")
app.add_typer(answers, name="answers")


def _end(number: int, _: object) -> None:
    """Exit on a signal, which ends notebooks too; a second signal, as of `timeout`, is ignored."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    """Entry point of `vrag`."""
    signal.signal(signal.SIGTERM, _end)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _end)  # the terminal was closed; `nohup` ignores that
    try:
        app()
    except VragError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
