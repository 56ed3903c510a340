"""`vrag`: the commands.

Each is a few lines over the package; errors come as one clear message and a non-zero
exit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Research kit for visual retrieval-augmented generation.",
)

fetch = typer.Typer(no_args_is_help=True, help="Fetch the images of a benchmark.")
app.add_typer(fetch, name="fetch")
answers = typer.Typer(no_args_is_help=True, help="Look after stored answers.")
app.add_typer(answers, name="answers")


@app.command()
def run(
    parameters: Annotated[
        list[Path],
        typer.Argument(help="YAML files of parameters, such as params/visual_rag/demo.yaml"),
    ],
    only: Annotated[
        str, typer.Option(help="run the notebooks whose name contains this, such as visual_rag/02")
    ] = "",
    jobs: Annotated[int, typer.Option(help="notebooks to run at once")] = 1,
) -> None:
    """Run the notebooks by papermill; skips what is finished and unchanged, exits with
    1 when one failed.
    """
    from vrag_kit.runner.notebooks import run_notebooks, summary

    outcomes = run_notebooks(parameters, only=only, jobs=jobs)
    print(f"\n{summary(outcomes)}", flush=True)
    raise typer.Exit(int(any(outcome.status == "failed" for outcome in outcomes)))


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

    page, chapters = write_report(parameters, to)
    for chapter in chapters:
        print(f"{chapter.name}: {' '.join(chapter.notes) or chapter.state}")
    print(f"the report is in {page}")


@app.command()
def metrics(
    qrels: Annotated[Path, typer.Argument(help="TREC relevance labels: query_id 0 doc_id label")],
    run_file: Annotated[
        Path, typer.Argument(metavar="RUN", help="TREC run: query_id Q0 doc_id rank score tag")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON list of rows")] = False,
) -> None:
    """Retrieval metrics of a TREC run: rows metric, k, value in [0, 1] (hit_count:
    images), n.
    """
    from vrag_kit.retrieval import evaluate, mean_metrics, read_qrels, read_run

    labels, results = read_qrels(qrels), read_run(run_file)
    table = mean_metrics(evaluate(results, labels))
    print(
        json.dumps(json.loads(table.to_json(orient="records", double_precision=15)), indent=1)
        if as_json
        else table.to_string(index=False)
    )
    missing, unjudged = (
        len(set(labels) - set(results["query_id"])),
        len(set(results["query_id"]) - set(labels)),
    )
    unanswerable = sum(not any(label > 0 for label in row.values()) for row in labels.values())
    for count, note in (
        (
            missing,
            "queries of the labels have no results in the run: they count as 0, as in trec_eval -c",
        ),
        (unjudged, "queries of the run have no labels: left out"),
        (unanswerable, "queries have no relevant document: left out of the means"),
    ):
        if count:
            print(f"note: {count} {note}", file=sys.stderr)


@app.command()
def claims(
    file: Annotated[
        Path, typer.Argument(help="RAGChecker's JSON, with claims extracted and checked")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object: answers, ragchecker, rows")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(help="write the file anew with RAGChecker's metrics, as it reads them"),
    ] = None,
) -> None:
    """Claim diagnostics of RAGChecker's files: its own metrics, and MM-RAGChecker's by
    modality, from the same verdicts.
    """
    from vrag_kit.runner.claims import print_claims

    print_claims(file, as_json=as_json, to=to)


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
        raise typer.Exit(int(_print_check(target)))
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
    for file in parameters:
        _print_check(file)


def _print_check(file: Path) -> bool:
    """Print what a parameter file asks and lacks; returns whether something is missing."""
    # read when the hub's library is imported, which is below: a check fetches nothing
    os.environ["HF_HUB_OFFLINE"] = "1"
    from vrag_kit.runner.check import check_parameters

    found, missing = check_parameters(file)
    for line in [*found, *(f"missing: {line}" for line in missing)]:
        print(line)
    if not missing:
        print("nothing is missing")
    return bool(missing)


@fetch.command("visual-rag")
def fetch_images(
    annotations: Annotated[
        Path, typer.Option(help="the annotation file (JSON Lines), which names the images")
    ],
    archive: Annotated[
        str, typer.Option(help="the .tar.gz archive of all images: a file, or an http(s) URL")
    ],
    to: Annotated[
        Path,
        typer.Option(help="the folder for the species folders; what is there is not fetched again"),
    ],
) -> None:
    """Extract the images that annotations name from an archive, which is read once and
    not kept; run again, it goes on. Exits with 1 when some are missing or damaged.
    """
    from vrag_kit.fetching import fetch_visual_rag

    try:
        fetched = fetch_visual_rag(annotations, archive, to)
    except KeyboardInterrupt:
        print(
            f"interrupted: what was extracted is in {to}; run the same command again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    print(fetched)
    if not fetched.complete:
        missing = to / "missing.txt"
        print(f"{to} is not complete; {missing} lists all that are missing or damaged")
    elif fetched.by_size:
        print(f"{to} is complete, as far as names and sizes tell")
    else:
        print(f"{to} is complete")
    raise typer.Exit(int(not fetched.complete))


@fetch.command("mrag-bench")
def fetch_mrag_bench(
    to: Annotated[Path, typer.Option(help="the folder for data/*.parquet and image_corpus")],
    rows: Annotated[
        str, typer.Option(help="the data set on the hub, <owner>/<name>@<revision>; '' for none")
    ] = "uclanlp/MRAG-Bench@43620fd",
    corpus: Annotated[
        str,
        typer.Option(help="the archive of the corpus (.zip, .tar.gz, .tar): a file, or a URL"),
    ] = "",
) -> None:
    """Fetch MRAG-Bench's rows from the hub and extract its corpus from an archive, then
    match the rows' pictures to the corpus, once; run again, it goes on.
    """
    from vrag_kit.benchmarks import load_mrag_bench
    from vrag_kit.fetching.mrag_bench import CORPUS_PAGE, fetch_corpus, fetch_rows

    try:
        if rows:
            print(f"rows: {len(fetch_rows(rows, to))} shards in {to}", flush=True)
        if corpus:
            print(fetch_corpus(corpus, to), flush=True)
    except KeyboardInterrupt:
        print(f"interrupted: what was fetched is in {to}; run the command again", file=sys.stderr)
        raise typer.Exit(130) from None
    if not corpus:
        print(f"no corpus: download {CORPUS_PAGE} in a browser and give it by --corpus")
    there = (to / "image_corpus").is_dir()
    print(load_mrag_bench(to, to if there else None))


@fetch.command("crag-mm")
def fetch_crag_mm(
    to: Annotated[Path, typer.Option(help="the folder for single-turn, multi-turn and images")],
    single: Annotated[
        str,
        typer.Option(
            help=(
                "the single-turn data: <owner>/<name>@<revision> on the hub; or, downloaded by"
                " hand, a folder or an archive (.zip, .tar.gz, .tar); '' for none"
            )
        ),
    ] = "crag-mm-2025/crag-mm-single-turn-public@v0.1.2",
    multi: Annotated[
        str, typer.Option(help="the multi-turn data, likewise")
    ] = "crag-mm-2025/crag-mm-multi-turn-public@v0.1.2",
    split: Annotated[str, typer.Option(help="validation or public_test; both unless given")] = "",
    diagnostic: Annotated[
        str,
        typer.Option(
            help="marks of some questions: McGill-NLP/crag-mm-diagnostic, or a folder of it"
        ),
    ] = "",
    agent: Annotated[
        str, typer.Option(help="how to name oneself to the servers of the pictures")
    ] = "",
) -> None:
    """Fetch CRAG-MM's rows, and once the pictures that they name by address; run again,
    it goes on. Exits with 1 when some pictures are missing.
    """
    from vrag_kit.fetching.crag_mm import Sources, fetch_all

    try:
        sources = Sources(single=single, multi=multi, diagnostic=diagnostic)
        fetched = fetch_all(sources, to, split=split, agent=agent)
    except KeyboardInterrupt:
        print(f"interrupted: what was fetched is in {to}; run the command again", file=sys.stderr)
        raise typer.Exit(130) from None
    print(fetched)
    if not fetched.complete:
        print(f"{to / 'images' / 'missing.txt'} lists the pictures that are missing, with reasons")
    raise typer.Exit(int(not fetched.complete))


@fetch.command("suite")
def fetch_suite(
    to: Annotated[Path, typer.Option(help="the folder for one folder a data set")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="one of them, such as visrag-plot; may be given several times"),
    ] = None,
) -> None:
    """Fetch what MRAG-Suite takes from the hub: VisRAG's four page data sets, Chart-MRAG
    with its sentences, and MRAG-Bench's rows; says how much each holds, and where the
    others are. Run again, it goes on. Exits with 1 when one could not be fetched.
    """
    from vrag_kit.fetching.suite import fetch_suite as fetch_all

    try:
        failed = fetch_all(to, only or ())
    except KeyboardInterrupt:
        print(f"interrupted: what was fetched is in {to}; run the command again", file=sys.stderr)
        raise typer.Exit(130) from None
    raise typer.Exit(int(failed))


@answers.command()
def migrate(
    old: Annotated[Path, typer.Argument(help="a store of answers, such as answers.sqlite")],
    to: Annotated[
        Path | None, typer.Option(help="a copy to bring up to date; else it is done in place")
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(help="parameters whose models have other names than they were asked under"),
    ] = None,
) -> None:
    """Bring an old store's answers under today's keys, so that nothing is asked again."""
    from vrag_kit.generation.migrating import migrate_answers
    from vrag_kit.runner.parameters import models_in, read_parameters

    entries = models_in(read_parameters(params)) if params else []
    print(migrate_answers(old, to=to, entries=entries))


@app.command()
def draw(
    edition: Annotated[str, typer.Argument(help="full, small, worn-drawn or worn-drawn-small")],
    folder: Annotated[Path, typer.Argument(help="where to draw it")],
) -> None:
    """Draw an edition of the Field Guide, the bundled benchmark, or of the worn one, with
    conversations in CRAG-MM's layout.
    """
    from vrag_kit.fieldguide import draw_field_guide
    from vrag_kit.fieldguide.worn import DRAWN_WORN, draw_crag_mm

    if edition in DRAWN_WORN:
        drawn = draw_crag_mm(DRAWN_WORN[edition], folder)
        print(f"{edition} is in {drawn}")
        return
    print(f"the {edition} Field Guide is in {draw_field_guide(edition, folder)}")


def _end(number: int, _: object) -> None:
    """End, so that notebooks end with us; told twice, as `timeout` does, end once."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    """Entry point of `vrag`."""
    signal.signal(signal.SIGTERM, _end)
    try:
        app()
    except VragError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
