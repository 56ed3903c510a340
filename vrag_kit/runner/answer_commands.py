"""`vrag answers`: commands for stored answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError

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
    from vrag_kit.generation.merge_stores import describe_conflicts, merge_stores

    merged, conflicts = merge_stores(stores, to=to, keep_first=keep_first, csv=csv)
    print(merged.to_string(index=False))
    if len(conflicts):
        print(f"Of different answers the first one is kept:\n{describe_conflicts(conflicts)}")
    if pending := merged["pending"].sum():
        print(f"{pending:,} questions are being asked: merge again when they are answered")


@answers.command()
def export(
    stores: Annotated[list[Path], typer.Argument(help="stores of answers, such as answers.sqlite")],
    to: Annotated[Path, typer.Option(help="the table to write, with the suffix .parquet or .csv")],
) -> None:
    """Write all answers of some stores as a table: a row an answer, with its store and prompt."""
    import pandas as pd

    from vrag_kit.files import write_file
    from vrag_kit.generation.store import AnswerStore

    if to.suffix not in (".parquet", ".csv"):
        raise VragError(f"--to: found {to.name!r}; expected a name that ends in .parquet or .csv.")
    tables = []
    for path in stores:
        if not path.is_file():
            raise VragError(f"{path}: found no file; expected an answer store.")
        with AnswerStore(path) as store:
            tables.append(store.table().assign(store=str(path)))
    table = pd.concat(tables, ignore_index=True)
    try:
        write_file(to, table.to_csv(index=False) if to.suffix == ".csv" else table.to_parquet())
    except OSError as error:
        raise VragError(f"{to}: cannot be written ({error.strerror}).") from error
    print(f"{len(table):,} answers and failures written to {to}")
