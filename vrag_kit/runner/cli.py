"""The `vrag` command line.

Each command is a few lines over the package; an error is one clear message and a non-zero exit.
"""

from __future__ import annotations

import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from vrag_kit.errors import VragError
from vrag_kit.runner.check import Only, check, forecast
from vrag_kit.workspace import display_path, enter_project

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a docstring flow together, at any width
)
fetch = typer.Typer(no_args_is_help=True, help="Fetch the images of a benchmark.")
answers = typer.Typer(no_args_is_help=True, help="Manage stored answers.")
app.add_typer(fetch, name="fetch")
app.add_typer(answers, name="answers")

Parameters = Annotated[
    list[Path], typer.Argument(help="YAML files of parameters, such as params/visual_rag/demo.yaml")
]
ClusterName = Annotated[
    str,
    typer.Option(help="a Dask cluster: its scheduler's address, or local:2 for workers here"),
]
Stores = Annotated[list[Path], typer.Argument(help="stores of answers, such as answers.sqlite")]
Folder = Annotated[Path, typer.Option(help="the folder; what it holds is not fetched again")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"vrag_kit {version('vrag_kit')}")
        raise typer.Exit


@app.callback()
def research_kit(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    """Research kit for visual retrieval-augmented generation."""


@app.command()
def run(
    parameters: Parameters,
    only: Only = None,
    jobs: Annotated[
        int | None, typer.Option(help="notebooks at once; by default as keeps the cores busy")
    ] = None,
    cluster: ClusterName = "",
    force: Annotated[bool, typer.Option("--force", help="also run what is unchanged")] = False,
) -> None:
    """Run notebooks with papermill. Notebooks that are finished and unchanged are skipped.
    Exits with 1 if one failed.
    """
    from vrag_kit.runner.run import run_notebooks, summary

    files = enter_project(parameters)
    outcomes = run_notebooks(files, only=only or (), jobs=jobs, cluster=cluster, force=force)
    print(f"\n{summary(outcomes)}", flush=True)
    raise typer.Exit(int(any(outcome.status == "failed" for outcome in outcomes)))


@app.command()
def embed(
    parameters: Parameters,
    part: Annotated[str, typer.Option(help="i/n: embed part i of n, for job arrays")] = "",
    only: Only = None,
    status: Annotated[bool, typer.Option("--status", help="only print what is embedded")] = False,
    cluster: ClusterName = "",
) -> None:
    """Compute the embeddings that the notebooks need, before they run. Parts may run in parallel,
    and be repeated after a crash.
    """
    from vrag_kit.runner import embed as embedding
    from vrag_kit.runner.plan import read_plan

    share = embedding.parse_part(part)
    if cluster and (part or status):
        raise VragError("--cluster embeds all parts: leave out --part and --status.")
    for file in enter_project(parameters):
        if status:
            corpora = embedding.corpora_to_embed(file, only or ())
            print(*embedding.embedding_status(corpora)[0], sep="\n")
        elif workers := cluster or ("" if part else read_plan(file).cluster):
            embedding.embed_on_cluster(file, workers, only or ())
        else:
            embedding.embed_parameters(file, share, only or ())


@app.command()
def report(
    parameters: Parameters,
    to: Annotated[
        Path | None, typer.Option(help="the page; by default report.html by the copies")
    ] = None,
) -> None:
    """Write all tables and figures of the executed notebooks to one HTML page, which opens
    offline.
    """
    from vrag_kit.runner.report import write_report

    to = to and to.absolute()
    written = write_report(enter_project(parameters), to)
    for section in written.sections:
        print(f"{section.name}: {section.state}")
    for file in written.without:
        print(f"{file}: no notebook was executed with it yet, and so none is in the report")
    print(f"the report is in {display_path(written.page)}")


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="a `figures_dir`, or one *.answers.jsonl.gz in it")],
    b: Annotated[
        Path | None, typer.Argument(help="the other; by default A, to compare two settings")
    ] = None,
    choose_a: Annotated[
        list[str] | None, typer.Option("--a", help="select in A: column=value; repeatable")
    ] = None,
    choose_b: Annotated[
        list[str] | None, typer.Option("--b", help="select in B: column=value; repeatable")
    ] = None,
    only: Annotated[str, typer.Option(help="only experiments whose name contains this")] = "",
    to: Annotated[Path | None, typer.Option(help="folder of the page and its tables")] = None,
) -> None:
    """Compare two runs, or two settings of one: paired differences with intervals, the smallest
    detectable difference, and each changed answer with its prompt's images.
    Runs notebook 61 on the saved answers; writes compare.html, and tables below across.
    """
    import pandas as pd

    from vrag_kit.runner.compare import compare_runs, comparison_folder

    b, chosen = b or a, (choose_a or (), choose_b or ())
    folder = to or comparison_folder(a, b, *chosen, only)
    compare_runs(a, b, folder, choose_a=chosen[0], choose_b=chosen[1], only=only)
    for name in ("61_compare", "61_what_differs"):
        table = pd.read_csv(folder / f"across/{name}.table.csv", dtype=str).fillna("")
        if len(table):
            shown = table.replace(r"\s+", " ", regex=True)
            print(shown.to_string(index=False, max_colwidth=60))
    print(f"the page is {folder / 'compare.html'}")


@app.command()
def metrics(
    qrels: Annotated[Path, typer.Argument(help="TREC relevance labels (qrels)")],
    run_file: Annotated[Path, typer.Argument(metavar="RUN", help="TREC run file")],
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON list of rows")] = False,
    metric: Annotated[
        list[str] | None, typer.Option(help="also a custom metric, my_metrics:rbp; repeatable")
    ] = None,
) -> None:
    """Print retrieval metrics of a TREC run: metric, k, value in [0, 1] (hit_count: images), n."""
    from vrag_kit.runner.metrics import print_metrics

    print_metrics(qrels, run_file, metric or (), as_json=as_json)


@app.command()
def claims(
    file: Annotated[Path, typer.Argument(help="RAGChecker's JSON: its input or its output")],
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
    to: Annotated[Path | None, typer.Option(help="also write the file with all metrics")] = None,
    extractor: Annotated[str, typer.Option(help="model that extracts missing claims")] = "",
    checker: Annotated[str, typer.Option(help="model that checks claims")] = "",
    answers_dir: Annotated[Path, typer.Option(help="folder of the answer store")] = Path(
        "runs/answers"
    ),
    device: Annotated[str, typer.Option(help="the device of local models")] = "cpu",
    only_forecast: Annotated[bool, typer.Option("--forecast", help="only count the calls")] = False,
) -> None:
    """Print claim diagnostics of RAGChecker's files: RAGChecker's metrics, and MM-RAGChecker's by
    modality, from the same verdicts. A file without claims needs --extractor.
    """
    from vrag_kit.runner.claims import ClaimModels, print_claims, print_dry_run

    models = ClaimModels(
        extractor=extractor, checker=checker, answers_dir=answers_dir, device=device
    )
    if only_forecast:
        print_dry_run(file, models)
    else:
        print_claims(file, models, as_json=as_json, to=to)


app.command()(check)
app.command()(forecast)


@app.command()
def draw(
    edition: Annotated[
        str,
        typer.Argument(
            help="field-guide, field-guide-mrag-bench, -crag-mm or -mrag-suite; also with -small"
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="the folder to write it to")],
) -> None:
    """Generate an edition of the Field Guide, the bundled synthetic benchmark, in the layout
    of Visual-RAG, MRAG-Bench, CRAG-MM or MRAG-Suite.
    """
    from vrag_kit.synthetic.editions import generate_edition

    print(generate_edition(edition, folder))


@fetch.command("visual-rag")
def fetch_images(
    annotations: Annotated[Path, typer.Option(help="annotation file (JSON Lines)")],
    archive: Annotated[str, typer.Option(help=".tar.gz archive of all images: file or URL")],
    to: Folder,
) -> None:
    """Extract the images that the annotations name from an archive, which is read as a stream.
    Run it again to resume. Exits with 1 if images are missing or damaged.
    """
    from vrag_kit.fetching import fetch_visual_rag

    fetched = fetch_visual_rag(annotations, archive, to)
    print(fetched)
    if not fetched.missing:
        print(f"{to} is complete")
    else:
        missing = to / "missing.txt"
        print(f"{to} is not complete; {missing} lists all that are missing or damaged")
    raise typer.Exit(int(bool(fetched.missing)))


@fetch.command("mrag-bench")
def fetch_mrag_bench(
    to: Folder,
    rows: Annotated[
        str, typer.Option(help="OWNER/NAME@REVISION on the hub, or ''")
    ] = "uclanlp/MRAG-Bench@43620fd",
    corpus: Annotated[str, typer.Option(help="archive of the corpus: a file, or a URL")] = "",
) -> None:
    """Fetch MRAG-Bench's rows from the hub, extract its corpus from an archive, and match the
    rows' images to the corpus. Run it again to resume.
    """
    from vrag_kit.benchmarks import load_mrag_bench
    from vrag_kit.fetching import sources

    if rows:
        sources.fetch_files(rows, to, sources.MRAG_BENCH.patterns, sources.CORPUS_PAGE)
    if corpus:
        print(sources.fetch_mrag_bench_corpus(corpus, to), flush=True)
    else:
        print(f"no corpus: download {sources.CORPUS_PAGE} in a browser and give it by --corpus")
    images = to / "image_corpus"
    print(load_mrag_bench(to, images if images.is_dir() else None))


@fetch.command("crag-mm")
def fetch_crag_mm(
    to: Folder,
    single: Annotated[
        str,
        typer.Option(
            help="OWNER/NAME@REVISION on the hub, a folder, an archive (.zip, .tar.gz, .tar), or ''"
        ),
    ] = "crag-mm-2025/crag-mm-single-turn-public@v0.1.2",
    multi: Annotated[
        str, typer.Option(help="the multi-turn data, likewise")
    ] = "crag-mm-2025/crag-mm-multi-turn-public@v0.1.2",
    split: Annotated[str, typer.Option(help="validation or public_test; else both")] = "",
    diagnostic: Annotated[
        str, typer.Option(help="McGill-NLP/crag-mm-diagnostic, or a folder")
    ] = "",
    agent: Annotated[str, typer.Option(help="User-Agent header for image servers")] = "",
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="also fetch images from the local network")
    ] = False,
) -> None:
    """Fetch CRAG-MM's rows and the images at their URLs. Run it again to resume.
    Exits with 1 if images are missing.
    """
    from vrag_kit.fetching import sources

    fetched = sources.fetch_crag_mm(
        {"single-turn": single, "multi-turn": multi},
        to,
        split=split,
        diagnostic=diagnostic,
        agent=agent,
        allow_private=allow_private,
    )
    print(fetched)
    if fetched.missing:
        print(f"{to / 'images' / 'missing.txt'} lists the images that are missing, with reasons")
    raise typer.Exit(int(bool(fetched.missing)))


@fetch.command("suite")
def fetch_suite(
    to: Folder,
    only: Annotated[
        list[str] | None, typer.Option(help="a data set, such as visrag-plot; repeatable")
    ] = None,
) -> None:
    """Fetch MRAG-Suite's data from the hub: VisRAG's four page data sets, Chart-MRAG and
    MRAG-Bench's rows; prints where the others are. Run it again to resume. Exits with 1 if one
    could not be fetched.
    """
    from vrag_kit.fetching import sources

    raise typer.Exit(int(sources.fetch_suite(to, only or ())))


@answers.command()
def merge(
    stores: Stores,
    to: Annotated[Path, typer.Option(help="the store to merge them into")],
    csv: Annotated[Path | None, typer.Option(help="a CSV file for all answers that differ")] = None,
) -> None:
    """Merge the answers of several stores into one; may be repeated. The stores are not changed."""
    from vrag_kit.files import write_file
    from vrag_kit.generation.merge_stores import merge_stores

    merged, conflicts = merge_stores(stores, to=to)
    print(merged.to_string(index=False))
    if csv:
        write_file(csv, conflicts.to_csv(index=False, lineterminator="\n"))
    if len(conflicts):
        first = conflicts.head().to_string(index=False, max_colwidth=100)
        print(f"{len(conflicts):,} answers differ; the first one is kept:\n{first}")
    if pending := merged["pending"].sum():
        print(f"{pending:,} questions are being asked: merge again when they are answered")


@answers.command()
def export(
    stores: Stores,
    to: Annotated[Path, typer.Option(help="a table, .parquet or .csv")],
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
    except SystemExit as ended:
        if ended.code == 128 + signal.SIGINT:
            print("interrupted: run the same command again to go on", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
