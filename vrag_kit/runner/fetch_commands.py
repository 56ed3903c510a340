"""`vrag fetch`: one command per benchmark, which fetches what can be downloaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

fetch = typer.Typer(no_args_is_help=True, help="Fetch the images of a benchmark.")


@contextmanager
def _interruptible(to: Path) -> Iterator[None]:
    """On Ctrl-C, print that the command can be run again, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"interrupted: what was fetched is in {to}; run the same command again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


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
        typer.Option(help="the folder for the species folders; images in it are not fetched again"),
    ],
) -> None:
    """Extract the images that the annotations name from an archive, which is read as a stream.
    Run it again to resume. Exits with 1 if images are missing or damaged.
    """
    from vrag_kit.fetching import fetch_visual_rag

    with _interruptible(to):
        fetched = fetch_visual_rag(annotations, archive, to)
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
    """Fetch MRAG-Bench's rows from the hub, extract its corpus from an archive, and match the
    rows' images to the corpus. Run it again to resume.
    """
    from vrag_kit.benchmarks import load_mrag_bench
    from vrag_kit.fetching.sources import (
        CORPUS_PAGE,
        MRAG_BENCH,
        fetch_files,
        fetch_mrag_bench_corpus,
    )

    with _interruptible(to):
        if rows:
            fetch_files(rows, to, MRAG_BENCH.patterns, CORPUS_PAGE)
        if corpus:
            print(fetch_mrag_bench_corpus(corpus, to), flush=True)
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
            help="the diagnostic labels: McGill-NLP/crag-mm-diagnostic, or a folder with them"
        ),
    ] = "",
    agent: Annotated[
        str, typer.Option(help="the User-Agent header for the servers of the images")
    ] = "",
    allow_private: Annotated[
        bool,
        typer.Option(
            "--allow-private",
            help="also fetch images from this machine and the local network, such as a mirror",
        ),
    ] = False,
) -> None:
    """Fetch CRAG-MM's rows and the images at their URLs. Run it again to resume.
    Exits with 1 if images are missing.
    """
    from vrag_kit.fetching.sources import fetch_crag_mm as fetch_all

    rows = {"single-turn": single, "multi-turn": multi}
    options = {"split": split, "diagnostic": diagnostic, "agent": agent}
    with _interruptible(to):
        fetched = fetch_all(rows, to, **options, allow_private=allow_private)
    print(fetched)
    if not fetched.complete:
        print(f"{to / 'images' / 'missing.txt'} lists the images that are missing, with reasons")
    raise typer.Exit(int(not fetched.complete))


@fetch.command("suite")
def fetch_suite(
    to: Annotated[Path, typer.Option(help="the folder for the data sets' folders")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="only this data set, such as visrag-plot; repeatable"),
    ] = None,
) -> None:
    """Fetch MRAG-Suite's data from the hub: VisRAG's four page data sets, Chart-MRAG and
    MRAG-Bench's rows; prints where the others are. Run it again to resume. Exits with 1 if one
    could not be fetched.
    """
    from vrag_kit.fetching.sources import fetch_suite as fetch_all

    with _interruptible(to):
        failed = fetch_all(to, only or ())
    raise typer.Exit(int(failed))
