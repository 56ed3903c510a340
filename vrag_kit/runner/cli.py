"""`vrag`: the commands.

Each is a few lines over the package; errors come as one clear message and a non-zero
exit.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError
from vrag_kit.runner.answer_commands import answers
from vrag_kit.runner.fetch_commands import fetch
from vrag_kit.workspace import enter_project, shown

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Research kit for visual retrieval-augmented generation.",
)

app.add_typer(fetch, name="fetch")
app.add_typer(answers, name="answers")


@app.command()
def run(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/demo.yaml"),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "run the notebooks whose name contains this, such as visual_rag/02; may be given"
                " several times, or as 02,04"
            )
        ),
    ] = None,
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
    from vrag_kit.runner.notebooks import run_notebooks, summary

    wanted = [part.strip() for part in ",".join(only or ()).split(",") if part.strip()]
    try:
        files = enter_project(parameters)
        outcomes = run_notebooks(files, only=wanted, jobs=jobs, cluster=cluster)
    except KeyboardInterrupt:
        print("interrupted: run the same command again to go on", file=sys.stderr)
        raise typer.Exit(130) from None
    print(f"\n{summary(outcomes)}", flush=True)
    raise typer.Exit(int(any(outcome.status == "failed" for outcome in outcomes)))


@app.command()
def embed(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/paper.yaml"),
    ],
    part: Annotated[
        str,
        typer.Option(help="i/n: every n-th shard alone, from the i-th; as one of a job array"),
    ] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(help="notebooks whose name contains this, such as visual_rag/02"),
    ] = None,
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
    from vrag_kit.runner.embedding import (
        corpora_of,
        embed_parameters,
        embedding_status,
        read_part,
    )
    from vrag_kit.runner.embedding_elsewhere import embed_elsewhere
    from vrag_kit.runner.plan import read_plan

    share = read_part(part)
    if cluster and (part or status):
        raise VragError("--cluster embeds all parts: leave out --part and --status.")
    for file in enter_project(parameters):
        workers = cluster or ("" if part else read_plan(file).cluster)
        if status:
            print(*embedding_status(corpora_of(file, only or ())), sep="\n")
        elif workers:
            embed_elsewhere(file, workers, only=only or ())
        else:
            embed_parameters(file, share, only or ())


@app.command()
def report(
    parameters: Annotated[
        list[Path], typer.Argument(help="the parameter files that the notebooks were run with")
    ],
    to: Annotated[
        Path | None, typer.Option(help="the page to write; else report.html beside the copies")
    ] = None,
) -> None:
    """Write one HTML page with all tables and figures of the executed notebooks; it
    opens offline.
    """
    from vrag_kit.runner.report import write_report

    to = to and to.absolute()
    page, chapters = write_report(enter_project(parameters), to)
    for chapter in chapters:
        print(f"{chapter.name}: {' '.join(chapter.notes) or chapter.state}")
    print(f"the report is in {shown(page)}")


@app.command()
def compare(
    a: Annotated[
        Path, typer.Argument(help="a `figures_dir` of results, or one *.answers.jsonl.gz in it")
    ],
    b: Annotated[
        Path | None, typer.Argument(help="another one; the same where two of its arms are compared")
    ] = None,
    choose_a: Annotated[
        list[str] | None,
        typer.Option("--a", help="what of A: column=value, as in model=mine; several times"),
    ] = None,
    choose_b: Annotated[list[str] | None, typer.Option("--b", help="what of B")] = None,
    only: Annotated[
        str, typer.Option(help="experiments whose name contains this, such as visual_rag/03")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option(
            help="the folder for the page and its tables; else one below runs/compare, named by"
            " what is compared"
        ),
    ] = None,
) -> None:
    """Two runs, or two arms of one: what changed, in which direction, with the pictures
    of each prompt; whether it is a difference, and which one could have been seen.
    Writes compare.html, compare.csv, compare.tex and flips.csv.
    """
    from vrag_kit.runner.comparing import Sides, compare_runs

    chosen = {"choose_a": choose_a or (), "choose_b": choose_b or ()}
    sides = Sides(a=a, b=b or a, only=only, **chosen)
    there = to or Path("runs/compare") / sides.folder()
    found = compare_runs(sides, there)
    print(found.table.to_string(index=False))
    for line in found.left_out:
        print(f"not compared, {line}")
    if found.judges:
        print(found.judges)
    if (found.table["changed (of n)"] == "+0 −0").all():
        same = "no answer of B scores otherwise than A's"
        print(f"{same}, of those compared" if found.left_out else f"{same}: are both the same?")
    print(f"the page is {there / 'compare.html'}")


@app.command()
def metrics(
    qrels: Annotated[Path, typer.Argument(help="TREC relevance labels: query_id 0 doc_id label")],
    run_file: Annotated[
        Path, typer.Argument(metavar="RUN", help="TREC run: query_id Q0 doc_id rank score tag")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON list of rows")] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="a function of your own, besides: my_metrics:rbp; repeatable"),
    ] = None,
) -> None:
    """Retrieval metrics of a TREC run: rows metric, k, value in [0, 1] (hit_count:
    images), n.
    """
    from vrag_kit.runner.metrics import print_metrics

    print_metrics(qrels, run_file, metric or (), as_json=as_json)


@app.command()
def claims(
    file: Annotated[
        Path, typer.Argument(help="RAGChecker's JSON, its input or its output, or in between")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object: answers, ragchecker, rows")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(help="write the file anew with claims, labels and RAGChecker's metrics"),
    ] = None,
    extractor: Annotated[
        str, typer.Option(help="the model that takes answers apart, where the file has no claims")
    ] = "",
    checker: Annotated[
        str, typer.Option(help="the model that checks claims; the extractor's unless given")
    ] = "",
    answers_dir: Annotated[
        Path, typer.Option(help="where the models' words are kept; nothing is asked twice")
    ] = Path("runs/answers"),
    device: Annotated[str, typer.Option(help="where a model runs that runs here")] = "cpu",
    only_forecast: Annotated[
        bool, typer.Option("--forecast", help="say what would be asked, and ask nothing")
    ] = False,
) -> None:
    """Claim diagnostics of RAGChecker's files: its own metrics, and MM-RAGChecker's by
    modality, from the same verdicts. A file without claims needs --extractor.
    """
    from vrag_kit.runner.claims import Readers, print_claims, print_forecast

    readers = Readers(extractor=extractor, checker=checker, answers_dir=answers_dir, device=device)
    if only_forecast:
        print_forecast(file, readers)
    else:
        print_claims(file, readers, as_json=as_json, to=to)


@app.command()
def check(
    target: Annotated[
        Path,
        typer.Argument(
            help=(
                "a parameter file (.yaml); or an annotation file (JSON Lines); or a folder of"
                " annotations and images, of MRAG-Bench's shards, of CRAG-MM, or of MRAG-Suite's"
                " pages, charts and WebQA"
            )
        ),
    ],
    image_root: Annotated[
        Path | None,
        typer.Argument(help="with an annotation file: the folder that holds the species folders"),
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="an older annotation file (v1): show what changed since")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            help=(
                "write every finding to this file, and what changed to <name>_changes.csv and"
                " <name>_image_changes.csv"
            )
        ),
    ] = None,
) -> None:
    """Of a parameter file: count the calls and list what is missing, without asking
    anything. Of a benchmark: bad rows, images missing, damaged or odd, label changes.
    """
    if target.suffix in (".yaml", ".yml"):
        if image_root or before or csv:
            raise VragError(
                f"{target} is a parameter file, which is checked alone: an image folder, --before"
                " and --csv go with annotations."
            )
        raise typer.Exit(int(_print_check(*enter_project([target]))))
    from vrag_kit.fetching.check_data import check_data

    raise typer.Exit(int(check_data(target, image_root, before=before, csv=csv)))


@app.command()
def forecast(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/paper.yaml"),
    ],
) -> None:
    """What the notebooks of parameter files would ask: calls, images, tokens, money, and
    what is stored already. Nothing is asked or fetched; exits with 0 whatever it finds.
    """
    for file in enter_project(parameters):
        _print_check(file)


def _print_check(file: Path) -> bool:
    """Print what a parameter file asks and lacks; returns whether something is missing."""
    # read when the hub's library is imported, which is below: a check fetches nothing
    os.environ["HF_HUB_OFFLINE"] = "1"
    from vrag_kit.runner.check import BUT, check_parameters

    found, missing = check_parameters(file)
    for line in [*found, *(f"missing: {line}" for line in missing)]:
        print(line)
    if not missing and not found[-1].startswith(BUT):
        print("nothing is missing")
    return bool(missing)


@app.command()
def draw(
    edition: Annotated[
        str,
        typer.Argument(
            help=(
                "full or small, of the Field Guide; mrag-drawn, worn-drawn or suite-drawn, or one"
                " of these with -small behind it"
            )
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="where to draw it")],
) -> None:
    """Draw an edition of the Field Guide, the bundled benchmark, or of what is drawn with
    its organisms in the layouts of MRAG-Bench, CRAG-MM and MRAG-Suite.
    """
    from vrag_kit.fieldguide.by_name import draw_named

    print(draw_named(edition, folder))


def _end(number: int, _: object) -> None:
    """End, so that notebooks end with us; told twice, as `timeout` does, end once."""
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
