"""`vrag run`, `embed` and `report`: commands that take parameter files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError
from vrag_kit.workspace import display_path, enter_project

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


def run(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/demo.yaml"),
    ],
    only: Only = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="notebooks to run at once; by default as many as keep the cores busy"),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            help="run on a Dask cluster: its scheduler's address, or local:2 for two workers here"
        ),
    ] = "",
) -> None:
    """Run notebooks with papermill. Notebooks that are finished and unchanged are skipped.
    Exits with 1 if one failed.
    """
    from vrag_kit.runner.run import run_notebooks, summary

    try:
        files = enter_project(parameters)
        outcomes = run_notebooks(files, only=only or (), jobs=jobs, cluster=cluster)
    except KeyboardInterrupt:
        print("interrupted: run the same command again to go on", file=sys.stderr)
        raise typer.Exit(130) from None
    print(f"\n{summary(outcomes)}", flush=True)
    raise typer.Exit(int(any(outcome.status == "failed" for outcome in outcomes)))


def embed(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/paper.yaml"),
    ],
    part: Annotated[
        str,
        typer.Option(help="i/n: embed part i of n, for job arrays"),
    ] = "",
    only: Only = None,
    status: Annotated[
        bool, typer.Option("--status", help="print what is embedded already, and stop")
    ] = False,
    cluster: Annotated[
        str,
        typer.Option(help="share the work on a Dask cluster: its scheduler's address, or local:2"),
    ] = "",
) -> None:
    """Compute the embeddings that the notebooks need, before they run. Parts may run in parallel,
    and be repeated after a crash.
    """
    from vrag_kit.runner.embed import (
        corpora_to_embed,
        embed_parameters,
        embedding_status,
        parse_part,
    )
    from vrag_kit.runner.embedding_elsewhere import embed_on_cluster
    from vrag_kit.runner.plan import read_plan

    share = parse_part(part)
    if cluster and (part or status):
        raise VragError("--cluster embeds all parts: leave out --part and --status.")
    for file in enter_project(parameters):
        workers = cluster or ("" if part else read_plan(file).cluster)
        if status:
            print(*embedding_status(corpora_to_embed(file, only or ())).lines, sep="\n")
        elif workers:
            embed_on_cluster(file, workers, only=only or ())
        else:
            embed_parameters(file, share, only or ())


def report(
    parameters: Annotated[list[Path], typer.Argument(help="parameter files of the runs")],
    to: Annotated[
        Path | None,
        typer.Option(
            help="the page to write; by default report.html beside the executed notebooks"
        ),
    ] = None,
) -> None:
    """Write all tables and figures of the executed notebooks to one HTML page, which opens
    offline. A page of the same runs is left as it is.
    """
    from vrag_kit.runner.report import write_report

    to = to and to.absolute()
    written = write_report(enter_project(parameters), to)
    for told in written.chapters:
        print(f"{told.name}: {told.words}")
    for file in written.without:
        print(f"{file}: no notebook was executed with it yet, and so none is in the report")
    unchanged = ", unchanged since it was written" if written.unchanged else ""
    print(f"the report is in {display_path(written.place)}{unchanged}")
