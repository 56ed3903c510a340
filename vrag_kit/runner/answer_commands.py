"""`vrag answers`: commands for stored answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

answers = typer.Typer(no_args_is_help=True, help="Look after stored answers.")


@answers.command()
def merge(
    stores: Annotated[list[Path], typer.Argument(help="stores of answers, such as answers.sqlite")],
    to: Annotated[Path, typer.Option(help="the store to merge them into; made if it is not there")],
    keep_first: Annotated[
        bool,
        typer.Option(
            "--keep-first",
            help="of two answers that should be the same, keep the one written first",
        ),
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="a file for all answers that differ between stores")
    ] = None,
) -> None:
    """Put several stores' answers into one; again when they have grown. Nothing is lost,
    and the stores stay as they are.
    """
    from vrag_kit.generation.merging import merge_stores

    for merged in merge_stores(stores, to=to, keep_first=keep_first, conflicts=csv):
        print(merged)
