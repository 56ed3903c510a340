"""`vrag fetch`: one command per benchmark, which fetches what can be downloaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

fetch = typer.Typer(no_args_is_help=True, help="Fetch the images of a benchmark.")


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
        str, typer.Option(help="the data set on the hub, OWNER/NAME@REVISION; '' for none")
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
                "the single-turn data: OWNER/NAME@REVISION on the hub; or, downloaded by"
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
    allow_private: Annotated[
        bool,
        typer.Option(
            "--allow-private",
            help="also fetch pictures from this machine and the local network, as from a mirror",
        ),
    ] = False,
) -> None:
    """Fetch CRAG-MM's rows, and once the pictures that they name by address; run again,
    it goes on. Exits with 1 when some pictures are missing.
    """
    from vrag_kit.fetching.crag_mm import CragMMSources, fetch_all

    try:
        sources = CragMMSources(single=single, multi=multi, diagnostic=diagnostic)
        fetched = fetch_all(sources, to, split=split, agent=agent, allow_private=allow_private)
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
