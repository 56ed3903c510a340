"""`vrag answers`: commands for stored answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

answers = typer.Typer(no_args_is_help=True, help="Manage stored answers.")


@answers.command()
def merge(
    stores: Annotated[list[Path], typer.Argument(help="stores of answers, such as answers.sqlite")],
    to: Annotated[Path, typer.Option(help="the store to merge them into; created if necessary")],
    keep_first: Annotated[
        bool,
        typer.Option(
            "--keep-first",
            help="where stores hold different answers under one key, keep the older",
        ),
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="a CSV file for all answers that differ")] = None,
) -> None:
    """Merge the answers of several stores into one; may be repeated. The stores are not changed."""
    from vrag_kit.generation.merging import merge_stores

    for merged in merge_stores(stores, to=to, keep_first=keep_first, conflicts=csv):
        print(merged)
