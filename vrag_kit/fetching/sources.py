"""Where the data sets come from, and fetching each to its folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

from vrag_kit.benchmarks.datasets.crag_mm import (
    SPLITS,
    all_sessions,
    cached_image_name,
    find_split,
)
from vrag_kit.benchmarks.datasets.crag_mm_index import MARKS, read_diagnostic, write_annotations
from vrag_kit.benchmarks.datasets.mrag_bench import CORPUS
from vrag_kit.benchmarks.datasets.visual_rag import read_annotations
from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.benchmarks.sources import download_from_hub
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.fetching.archives import copy_files
from vrag_kit.fetching.downloads import download, download_images
from vrag_kit.fetching.extract import fetch_images
from vrag_kit.fetching.http import AGENT, new_client
from vrag_kit.fetching.image_folder import FetchReport, write_atomically
from vrag_kit.log import logger


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the files of a data set are published."""

    rows: str = ""  # <owner>/<name>@<revision> on the Hugging Face hub
    patterns: tuple[str, ...] = ()  # of its files; the first is that of the questions
    extra: str = ""  # URL of a file beside
    by_hand: str = ""  # what the publishers' page has, and where


CORPUS_PAGE = "https://drive.google.com/file/d/1atwkNXH3aEtCLuqimZoB1Mifj5CwL3CL"
"""The authors' download page for the archive of MRAG-Bench's corpus (3.7 GB)."""
CRAG_MM_PAGE = "https://huggingface.co/crag-mm-2025"
"""The authors' page with CRAG-MM's rows and indexes."""
_CONFIGS = tuple(f"{config}/train-*.parquet" for config in ("queries", "corpus", "qrels"))


def _visrag(rows: str) -> Source:
    return Source(rows=f"openbmb/VisRAG-Ret-Test-{rows}", patterns=_CONFIGS)


_CHARTS = Source(
    rows="ymyang/Chart-MRAG",
    patterns=("*.arrow", "state.json", "dataset_info.json"),
    extra="https://raw.githubusercontent.com/Nomothings/CHARGE/"
    "2b0b16500f3e148b7462bedf4e388ed742375987/text_corpus.jsonl",
)
MRAG_BENCH = Source(
    rows="uclanlp/MRAG-Bench@43620fd",
    patterns=("data/*.parquet",),
    by_hand=f"its corpus (3.7 GB): {CORPUS_PAGE}, and then"
    " `vrag data fetch mrag-bench --rows '' --corpus ARCHIVE`",
)
_WEBQA = "WebQA_train_val.json, imgs.tsv, imgs.lineidx (51 GB): https://github.com/WebQnA/WebQA"
SOURCES: Mapping[str, Source] = {
    "visrag-arxiv": _visrag("ArxivQA@00a31fc1e899b5f81d7760eca4907b1a1005865b"),
    "visrag-plot": _visrag("PlotQA@ef953ef8ab6d78ac112dd4cde6acdb2c2692039a"),
    "visrag-slide": _visrag("SlideVQA"),
    "visrag-doc": _visrag("MP-DocVQA@3ebd091c458cf04161f78cd7b12ea101f83e2529"),
    "chart-rag": _CHARTS,
    "mrag-bench": MRAG_BENCH,
    "webqa": Source(by_hand=_WEBQA),
    "visual-rag": Source(by_hand="annotations; `vrag data fetch visual-rag` gets the images"),
}
"""MRAG-Suite's data sets by name."""


def fetch_visual_rag(annotations: Path | str, archive: Path | str, to: Path | str) -> FetchReport:
    """Extract the images that Visual-RAG annotations name from a gzip tar.

    The archive is a file or an http(s) URL. Images go to `to`/<species folder>/<file>, as in
    `fetch_images`. Raises `VragError` for unusable annotations, an unreadable archive, and an
    unwritable folder.
    """
    rows = read_annotations(Path(annotations))
    return fetch_images(chain.from_iterable(row.images for _, row, _ in rows), archive, to)


def fetch_mrag_bench_corpus(archive: str, to: Path) -> FetchReport:
    """Extract MRAG-Bench's corpus to `to`/image_corpus, as `copy_files` does."""
    patterns = [f"{CORPUS}/*{suffix}" for suffix in sorted(SUFFIXES)]
    return copy_files(archive, to, patterns, CORPUS_PAGE)


def fetch_crag_mm(
    rows: Mapping[str, str],
    to: Path,
    *,
    split: str = "",
    diagnostic: str = "",
    agent: str = "",
    allow_private: bool = False,
) -> FetchReport:
    """Fetch the rows of CRAG-MM's data sets and the images that they name by URL.

    `rows` maps "single-turn" and "multi-turn" to sources as `fetch_files` takes them; "" is left
    out. They go to folders of these names in `to`, both splits unless `split` names one, and the
    labels of `diagnostic` beside the single-turn rows. Images go to `to`/images, as
    `download_images` does; returns its report. Raises `VragError` for an unreadable source, and
    for unusable rows.
    """
    urls: dict[str, str] = {}
    images = to / "images"
    splits = (split,) if split else SPLITS
    for name, source in rows.items():
        if not source:
            continue
        folder = to / name
        fetch_files(source, folder, [f"data/{each}-*.parquet" for each in splits], CRAG_MM_PAGE)
        for each in splits:
            shards = find_split(folder, each)
            logger.info(f"{each}: {len(shards)} shards in {folder}")
            for row in all_sessions(shards, images):
                if url := row.url:
                    urls[cached_image_name(url)] = url
    if diagnostic:
        _fetch_diagnostic(diagnostic, to / "single-turn")
    return download_images(urls, images, agent=agent or AGENT, allow_private=allow_private)


def _fetch_diagnostic(source: str, rows: Path) -> None:
    """Write the annotations of the diagnostic data set beside the rows."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        folder = rows / "diagnostic"
        download_from_hub(source, ["data/test-*.parquet", "test-*.parquet"], folder)
    annotations = read_diagnostic(folder)
    write_annotations(rows / MARKS, annotations)
    logger.info(f"annotations of {len(annotations):,} questions in {rows / MARKS}")


def fetch_suite(to: Path, only: Collection[str] = ()) -> bool:
    """Fetch the data sets in `SOURCES` to `to`/<name>; returns whether one of them failed.

    `only` selects some by name. Sources to fetch by hand are printed. A failure does not end the
    others; existing files are not fetched again. Raises `VragError` for an unknown name.
    """
    fetched = [name for name, source in SOURCES.items() if source.rows]
    for name in only:
        if name not in fetched:
            raise VragError(
                f"no data set {name!r} to fetch; expected one of {', '.join(fetched)}."
                + did_you_mean(name, fetched)
            )
    has_failed = False
    for name in only or SOURCES:
        source, folder = SOURCES[name], to.expanduser() / name
        try:
            if source.rows:
                download_from_hub(source.rows, source.patterns, folder)
                _fetch_extra(source.extra, folder)
                logger.info(f"{name}: fetched to {folder}")
        except (VragError, OSError) as error:
            has_failed = True
            logger.info(f"{name}: {error}")
        if source.by_hand and not only:
            logger.info(f"not fetched: {name}: {source.by_hand}")
    return has_failed


def _fetch_extra(url: str, folder: Path) -> None:
    path = folder / PurePosixPath(url).name
    if url and not path.is_file():
        with new_client(AGENT) as client:
            write_atomically(path, [download(url, client)])


def fetch_files(source: str, to: Path, patterns: Sequence[str], page: str) -> None:
    """Fetch the files that match `patterns`, such as "data/*.parquet", to the folder `to`.

    `source` is a hub name ("<owner>/<name>@<revision>"), or what `copy_files` takes; it must
    not hold two files of one name. Existing files are not fetched again. Raises `VragError`
    for an unreadable source; for a web page, it names `page`.
    """
    if not Path(source).expanduser().exists() and "://" not in source:
        download_from_hub(source, patterns, to)
    elif refused := copy_files(source, to, patterns, page).refused:
        raise VragError(f"{refused[0]}; expected one data set. Unpack it, and give its folder.")
