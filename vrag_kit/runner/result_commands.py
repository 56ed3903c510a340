"""`vrag compare`, `metrics` and `claims`: analysis of results and of other tools' files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_ROOM = 60
"""Letters of a cell that the terminal shows of what differs."""


def compare(
    a: Annotated[
        Path, typer.Argument(help="a `figures_dir` with results, or one *.answers.jsonl.gz in it")
    ],
    b: Annotated[
        Path | None,
        typer.Argument(help="the other one; by default A, to compare two of its settings"),
    ] = None,
    choose_a: Annotated[
        list[str] | None,
        typer.Option("--a", help="a selection of A: column=value, as in model=mine; repeatable"),
    ] = None,
    choose_b: Annotated[list[str] | None, typer.Option("--b", help="a selection of B")] = None,
    only: Annotated[
        str, typer.Option(help="only experiments whose name contains this, such as visual_rag/03")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option(
            help="the folder for the page and its tables; by default one below runs/compare"
        ),
    ] = None,
) -> None:
    """Compare two runs, or two settings of one: paired differences with intervals, the smallest
    detectable difference, and each changed answer with its prompt's images.
    Writes compare.html, compare.csv, compare.tex, what_differs.csv and flips.csv.
    """
    from vrag_kit.runner.compare import compare_runs, comparison_folder

    b, chosen = b or a, (choose_a or (), choose_b or ())
    folder = to or comparison_folder(a, b, *chosen, only)
    found = compare_runs(a, b, folder, choose_a=chosen[0], choose_b=chosen[1], only=only)
    print(found.table.to_string(index=False))
    if len(found.differs):
        print(found.differs.map(_in_a_line).to_string(index=False))
    for note in found.notes:
        print(note)
    print(f"the page is {folder / 'compare.html'}")


def _in_a_line(text: str) -> str:
    """A text as a line of the terminal has room for it; the page has all of it."""
    line = " ".join(text.split())
    return line if len(line) <= _ROOM else f"{line[: _ROOM - 1]}…"


def metrics(
    qrels: Annotated[Path, typer.Argument(help="TREC relevance labels: query_id 0 doc_id label")],
    run_file: Annotated[
        Path, typer.Argument(metavar="RUN", help="TREC run: query_id Q0 doc_id rank score tag")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON list of rows")] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="a custom metric in addition, as in my_metrics:rbp; repeatable"),
    ] = None,
) -> None:
    """Print retrieval metrics of a TREC run: metric, k, value in [0, 1] (hit_count: images), n."""
    from vrag_kit.runner.metrics import print_metrics

    print_metrics(qrels, run_file, metric or (), as_json=as_json)


def claims(
    file: Annotated[Path, typer.Argument(help="RAGChecker's JSON: its input or its output")],
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object: answers, ragchecker, rows")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(help="a JSON file for the claims, labels and RAGChecker's metrics"),
    ] = None,
    extractor: Annotated[
        str, typer.Option(help="the model that extracts claims, if the file has none")
    ] = "",
    checker: Annotated[
        str, typer.Option(help="the model that checks claims; by default the extractor")
    ] = "",
    answers_dir: Annotated[
        Path, typer.Option(help="the folder of the store of the models' replies")
    ] = Path("runs/answers"),
    device: Annotated[str, typer.Option(help="the device of local models")] = "cpu",
    only_forecast: Annotated[
        bool, typer.Option("--forecast", help="count the calls, and call no model")
    ] = False,
) -> None:
    """Print claim diagnostics of RAGChecker's files: RAGChecker's metrics, and MM-RAGChecker's by
    modality, from the same verdicts. A file without claims needs --extractor.
    """
    from vrag_kit.runner.claims import ClaimModels, print_claims, print_dry_run

    readers = ClaimModels(
        extractor=extractor, checker=checker, answers_dir=answers_dir, device=device
    )
    if only_forecast:
        print_dry_run(file, readers)
    else:
        print_claims(file, readers, as_json=as_json, to=to)
