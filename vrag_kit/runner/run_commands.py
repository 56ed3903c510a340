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
            "notebooks whose name contains this alone, such as visual_rag/02; may be given several"
            " times, or as 02,04"
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
        typer.Option(help="notebooks to run at once; else as many as keep the cores busy"),
    ] = None,
    cluster: Annotated[
        str, typer.Option(help="workers to run them: a Dask scheduler's address, or local:2")
    ] = "",
) -> None:
    """Run the notebooks by papermill; skips what is finished and unchanged, exits with
    1 when one failed.
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
        typer.Option(help="i/n: every n-th shard alone, from the i-th; as one of a job array"),
    ] = "",
    only: Only = None,
    status: Annotated[
        bool, typer.Option("--status", help="say what is there, and embed nothing")
    ] = False,
    cluster: Annotated[
        str, typer.Option(help="workers to share it: a Dask scheduler's address, or local:2")
    ] = "",
) -> None:
    """Embed what the notebooks search by vectors, before they run. Parts may run at once,
    overlap, die and be repeated.
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
    parameters: Annotated[
        list[Path], typer.Argument(help="the parameter files that the notebooks were run with")
    ],
    to: Annotated[
        Path | None, typer.Option(help="the page to write; else report.html beside the copies")
    ] = None,
) -> None:
    """Write one HTML page with all tables and figures of the executed notebooks; it
    opens offline. Leaves the one that is there, made of the same runs.
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
