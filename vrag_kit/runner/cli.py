"""The `vrag` command line.

Each command is a few lines over the package; an error is one clear message and a non-zero exit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option, Typer

from vrag_kit.errors import VragError
from vrag_kit.files import display_path

if TYPE_CHECKING:
    from vrag_kit.fetching.image_folder import FetchReport

app = Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a docstring flow together, at any width
)
data = Typer(no_args_is_help=True, help="Fetch, check and generate data.")
fetch = Typer(no_args_is_help=True, help="Fetch the data of a benchmark.")
answers = Typer(no_args_is_help=True, help="Manage stored answers.")
app.add_typer(data, name="data")
data.add_typer(fetch, name="fetch")
app.add_typer(answers, name="answers")

Parameters = Annotated[list[Path], Argument(help="YAML files, such as params/visual_rag/demo.yaml")]
Only = Annotated[
    list[str] | None, Option(help="only notebooks that begin with this, as 02,04 or visual_rag/02")
]
Stores = Annotated[list[Path], Argument(help="stores of answers, such as answers.sqlite")]
Folder = Annotated[Path, Option(help="the folder; what it holds is not fetched again")]
AsJson = Annotated[bool, Option("--json", help="print JSON")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"vrag_kit {version('vrag_kit')}")
        raise Exit


@app.callback()
def research_kit(
    _: Annotated[bool, Option("--version", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Research kit for visual retrieval-augmented generation."""


@app.command()
def run(
    parameters: Parameters,
    only: Only = None,
    jobs: Annotated[int | None, Option(help="notebooks at once; by default by cores")] = None,
    cluster: Annotated[str, Option(help="a Dask scheduler's address")] = "",
    force: Annotated[bool, Option("--force", help="also run what is unchanged")] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="only count the model calls, and list missing inputs")
    ] = False,
) -> None:
    """Run notebooks with papermill. Notebooks that are finished and unchanged are skipped.
    Exits with 1 if one failed, or a dry run lacks something.
    """
    from vrag_kit.runner.plan import enter_project

    files = enter_project(parameters)
    if dry_run:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when the hub's library is imported, below
        from vrag_kit.runner.dry_run import print_dry_run

        raise Exit(int(print_dry_run(files, only or ())))
    from vrag_kit.runner.run import run_notebooks, summary

    outcomes = run_notebooks(files, only=only or (), jobs=jobs, cluster=cluster, force=force)
    print(f"\n{summary(outcomes)}", flush=True)
    raise Exit(int(any(outcome.status == "failed" for outcome in outcomes)))


@app.command("list")
def list_notebooks(parameters: Parameters) -> None:
    """List the notebooks of parameter files, with the state, end and minutes of their last run."""
    from vrag_kit.runner.plan import enter_project
    from vrag_kit.runner.run import list_runs

    print(*list_runs(enter_project(parameters)), sep="\n")


@app.command()
def embed(
    parameters: Parameters,
    part: Annotated[str, Option(help="i/n: embed part i of n, for job arrays")] = "1/1",
    only: Only = None,
) -> None:
    """Compute the embeddings that the notebooks need, before they run. Parts may run in parallel,
    and be repeated after a crash; without one, all that is missing is embedded.
    """
    from vrag_kit.runner.embed import embed_parameters, parse_part
    from vrag_kit.runner.plan import enter_project

    share = parse_part(part)
    for file in enter_project(parameters):
        embed_parameters(file, share, only or ())


@app.command()
def report(
    parameters: Parameters,
    to: Annotated[
        Path | None, Option(help="the page; by default report.html by the copies")
    ] = None,
) -> None:
    """Write all tables and figures of the executed notebooks to one HTML page, which opens
    offline.
    """
    from vrag_kit.runner.plan import enter_project
    from vrag_kit.runner.report import write_report

    to = to and to.absolute()
    page, sections = write_report(enter_project(parameters), to)
    for section in sections:
        print(f"{section.name}: {section.state}")
    print(f"the report is in {display_path(page)}")


@app.command()
def compare(
    a: Annotated[Path, Argument(help="a `figures_dir`, or one *.answers.jsonl.gz in it")],
    b: Annotated[Path | None, Argument(help="the other; by default A, for two settings")] = None,
    choose_a: Annotated[list[str] | None, Option("--a", help="column=value; repeatable")] = None,
    choose_b: Annotated[list[str] | None, Option("--b", help="column=value; repeatable")] = None,
    only: Annotated[str, Option(help="only experiments whose name contains this")] = "",
    to: Annotated[Path, Option(help="folder of the page and its tables")] = Path("runs/compare"),
) -> None:
    """Compare two runs, or two settings of one: paired differences with intervals, the smallest
    detectable difference, and each changed answer with its prompt's images.
    Runs notebook 61 on the saved answers; writes compare.html, and tables below across.
    """
    from vrag_kit.runner.compare import compare_runs

    compare_runs(a, b or a, to, choose_a=choose_a or (), choose_b=choose_b or (), only=only)
    print(f"the page is {to / 'compare.html'}")


@app.command()
def metrics(
    qrels: Annotated[Path, Argument(help="TREC relevance labels (qrels)")],
    run_file: Annotated[Path, Argument(metavar="RUN", help="TREC run file")],
    as_json: AsJson = False,
    metric: Annotated[list[str] | None, Option(help="also a custom one, my_metrics:rbp")] = None,
) -> None:
    """Print retrieval metrics of a TREC run: metric, k, value in [0, 1] (hit_count: images), n.
    There is no value where k exceeds the depth of the run. Notes on queries go to stderr.
    """
    from vrag_kit.retrieval import evaluate, mean_metrics, read_qrels, read_run
    from vrag_kit.retrieval.metrics import BY_DEPTH, shallow_queries, truncated_depth

    labels, results = read_qrels(qrels), read_run(run_file)
    per_query = evaluate(results, labels, metrics=metric or ())
    deepest = truncated_depth(results, labels) or per_query["k"].max()
    values = per_query["value"].mask(per_query["k"] > deepest)
    table = mean_metrics(per_query.assign(value=values))
    if as_json:
        rows = json.loads(table.to_json(orient="records", double_precision=15))
        print(json.dumps(rows, indent=1))
    else:
        print(table.to_string(index=False, na_rep="no value"))
    ranked = set(results["query_id"])
    notes = {
        "have no results in the run and count as 0": labels.keys() - ranked,
        "have no labels and are left out": ranked - labels.keys(),
        f"have too few results, and so no {BY_DEPTH}": shallow_queries(results, labels),
    }
    for words, queries in notes.items():
        if queries:
            print(f"note: {len(queries)} queries {words}", file=sys.stderr)


@app.command()
def claims(
    file: Annotated[Path, Argument(help="RAGChecker's JSON: its input or its output")],
    as_json: AsJson = False,
    to: Annotated[Path | None, Option(help="also write the file with all metrics")] = None,
    extractor: Annotated[str, Option(help="model that extracts missing claims")] = "",
    checker: Annotated[str, Option(help="model that checks claims")] = "",
    answers_dir: Annotated[Path, Option(help="folder of the answer store")] = Path("runs/answers"),
    device: Annotated[str, Option(help="the device of local models")] = "cpu",
    dry_run: Annotated[bool, Option("--dry-run", help="only count the calls")] = False,
) -> None:
    """Print claim diagnostics of RAGChecker's files: RAGChecker's metrics, and MM-RAGChecker's by
    modality, from the same verdicts. A file without claims needs --extractor.
    """
    from vrag_kit.runner.claims import count_calls, load_models, print_claims

    load = partial(load_models, extractor=extractor, checker=checker, device=device)
    models = load if extractor else None
    if dry_run:
        count_calls(file, models, answers_dir)
    else:
        print_claims(file, models, answers_dir, as_json=as_json, to=to)


@data.command("check")
def check_files(
    target: Annotated[Path, Argument(help="an annotation file (JSON Lines), or a folder of data")],
    image_root: Annotated[Path | None, Argument(help="the images of an annotation file")] = None,
    csv: Annotated[Path | None, Option(help="a CSV file for all findings")] = None,
) -> None:
    """List a benchmark's invalid rows, and its missing, damaged or unusual images. Exits with 1 if
    there are faults.
    """
    from vrag_kit.fetching.validate import check_data

    raise Exit(int(check_data(target, image_root, csv=csv)))


@data.command()
def generate(
    edition: Annotated[
        str, Argument(help="field-guide, or -mrag-bench, -crag-mm, -mrag-suite; also with -small")
    ],
    folder: Annotated[Path, Argument(help="the folder to write it to")],
) -> None:
    """Generate an edition of the Field Guide, the bundled synthetic benchmark, in the layout
    of Visual-RAG, MRAG-Bench, CRAG-MM or MRAG-Suite.
    """
    from vrag_kit.synthetic.editions import generate_edition

    print(generate_edition(edition, folder))


@fetch.command("visual-rag")
def fetch_images(
    annotations: Annotated[Path, Option(help="annotation file (JSON Lines)")],
    archive: Annotated[str, Option(help=".tar.gz archive of all images: file or URL")],
    to: Folder,
) -> None:
    """Extract the images that the annotations name from an archive, which is read as a stream.
    Run it again to resume. Exits with 1 if images are missing or damaged.
    """
    from vrag_kit.fetching import fetch_visual_rag

    _report_fetched(fetch_visual_rag(annotations, archive, to))


def _report_fetched(fetched: FetchReport) -> None:
    print(fetched)
    raise Exit(int(bool(fetched.missing)))


@fetch.command("mrag-bench")
def fetch_mrag_bench(
    to: Folder,
    rows: Annotated[str, Option(help="OWNER/NAME@REVISION on the hub, or ''")] = (
        "uclanlp/MRAG-Bench@43620fd"
    ),
    corpus: Annotated[str, Option(help="archive of the corpus: a file, or a URL")] = "",
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
    single: Annotated[str, Option(help="rows on the hub, a folder, an archive, or ''")] = (
        "crag-mm-2025/crag-mm-single-turn-public@v0.1.2"
    ),
    multi: Annotated[str, Option(help="the multi-turn data, likewise")] = (
        "crag-mm-2025/crag-mm-multi-turn-public@v0.1.2"
    ),
    split: Annotated[str, Option(help="validation or public_test; else both")] = "",
    diagnostic: Annotated[str, Option(help="McGill-NLP/crag-mm-diagnostic, or a folder")] = "",
    agent: Annotated[str, Option(help="User-Agent header for image servers")] = "",
    allow_private: Annotated[
        bool, Option("--allow-private", help="also fetch images from the local network")
    ] = False,
) -> None:
    """Fetch CRAG-MM's rows and the images at their URLs. Run it again to resume.
    Exits with 1 if images are missing.
    """
    from vrag_kit.fetching import sources

    rows = {"single-turn": single, "multi-turn": multi}
    how = {"split": split, "diagnostic": diagnostic, "agent": agent}
    fetched = sources.fetch_crag_mm(rows, to, allow_private=allow_private, **how)
    _report_fetched(fetched)


@fetch.command("suite")
def fetch_suite(
    to: Folder,
    only: Annotated[list[str] | None, Option(help="a data set, such as visrag-plot")] = None,
) -> None:
    """Fetch MRAG-Suite's data from the hub: VisRAG's four page data sets, Chart-MRAG and
    MRAG-Bench's rows; prints where the others are. Run it again to resume. Exits with 1 if one
    could not be fetched.
    """
    from vrag_kit.fetching import sources

    raise Exit(int(sources.fetch_suite(to, only or ())))


@answers.command()
def merge(
    stores: Stores,
    to: Annotated[Path, Option(help="the store to merge them into")],
    csv: Annotated[Path | None, Option(help="a CSV file for all answers that differ")] = None,
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
def export(stores: Stores, to: Annotated[Path, Option(help="a table, .parquet or .csv")]) -> None:
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
    write_file(to, table.to_csv(index=False) if to.suffix == ".csv" else table.to_parquet())
    print(f"{len(table):,} answers and failures written to {to}")


def _end(number: int, _: object) -> None:
    """Exit on a signal, which ends notebooks too; a second signal, as of `timeout`, is ignored."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    """Entry point of `vrag`."""
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _end)  # the terminal was closed; `nohup` ignores that
    try:
        app()
    except (VragError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as ended:
        if ended.code == 128 + signal.SIGINT:
            print("interrupted: run the same command again to go on", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
