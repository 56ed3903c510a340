"""`vrag check` and `vrag forecast`: missing and invalid inputs, and the calls a run would make."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError
from vrag_kit.workspace import enter_project

Only = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "only notebooks whose name contains this, such as visual_rag/02; repeatable, or a list"
            " such as 02,04"
        )
    ),
]
"""The option `--only`: which notebooks of a parameter file to use."""


def check(
    target: Annotated[
        Path,
        typer.Argument(
            help=(
                "a parameter file (.yaml), an annotation file (JSON Lines), or a benchmark's folder"
                " (Visual-RAG, MRAG-Bench, CRAG-MM or a data set of MRAG-Suite)"
            )
        ),
    ],
    image_root: Annotated[
        Path | None,
        typer.Argument(help="the folder of the species folders, for an annotation file"),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="a CSV file for all findings"),
    ] = None,
    only: Only = None,
) -> None:
    """Check a parameter file: count its model calls and list missing inputs; no model is called.
    Or check a benchmark: list invalid rows, and missing, damaged or unusual images.
    """
    if target.suffix in (".yaml", ".yml"):
        if image_root or csv:
            raise VragError(
                f"{target} is a parameter file, which is checked alone: an image folder and"
                " --csv go with annotations."
            )
        (file,) = enter_project([target])
        raise typer.Exit(int(not _print_check(file, only or ())[0]))
    if only:
        raise VragError(f"{target} is no parameter file: --only goes with one.")
    from vrag_kit.fetching.validate import check_data

    raise typer.Exit(int(check_data(target, image_root, csv=csv)))


def forecast(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/paper.yaml"),
    ],
) -> None:
    """Count the model calls of parameter files: calls, images, tokens, cost and hours, and what is
    stored already. No model is called. Exits with 1 if a notebook could not be counted, for
    instance without its data.
    """
    whole = [_print_check(file)[1] for file in enter_project(parameters)]
    raise typer.Exit(int(not all(whole)))


def _print_check(file: Path, only: Sequence[str] = ()) -> tuple[bool, bool]:
    """Print the expected calls and missing inputs of a parameter file, or of some of its notebooks.
    Returns whether nothing is missing, and whether all notebooks are counted.
    """
    # read when the hub's library is imported, which is below: a check fetches nothing
    os.environ["HF_HUB_OFFLINE"] = "1"
    from vrag_kit.runner.check import check_parameters
    from vrag_kit.runner.totals import LEFT_OUT

    found, missing = check_parameters(file, only)
    for line in [*found, *(f"missing: {line}" for line in missing)]:
        print(line)
    if not missing:
        print("nothing is missing")
    return not missing, not any(LEFT_OUT in line for line in found)
