"""Where the data sets come from, and fetching each to its folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
from vrag_kit.benchmarks.sources import download_from_hub, hub_revision
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.fetching.archives import copy_files
from vrag_kit.fetching.downloads import download, download_images
from vrag_kit.fetching.extract import fetch_images
from vrag_kit.fetching.http import AGENT
from vrag_kit.fetching.image_folder import FetchReport, is_image_name, write_atomically
from vrag_kit.log import logger


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the files of a data set are published."""

    rows: str = ""  # <owner>/<name>@<revision> on the Hugging Face hub
    patterns: tuple[str, ...] = ()  # of its files; the first is that of the questions
    questions: int = 0  # as MRAG-Suite's Table 1 counts them (column "full")
    extra: str = ""  # URL of a file of JSON Lines beside
    by_hand: str = ""  # what the publishers' page has, and where


CORPUS_PAGE = "https://drive.google.com/file/d/1atwkNXH3aEtCLuqimZoB1Mifj5CwL3CL"
"""The authors' download page for the archive of MRAG-Bench's corpus (3.7 GB)."""
CRAG_MM_PAGE = "https://huggingface.co/crag-mm-2025"
"""The authors' page with CRAG-MM's rows and indexes."""
_CONFIGS = tuple(f"{config}/train-*.parquet" for config in ("queries", "corpus", "qrels"))


def _visrag(rows: str, questions: int) -> Source:
    rows = f"openbmb/VisRAG-Ret-Test-{rows}"
    return Source(rows=rows, patterns=_CONFIGS, questions=questions)


_CHARTS = Source(
    rows="ymyang/Chart-MRAG",
    patterns=("*.arrow", "state.json", "dataset_info.json"),
    questions=4738,
    extra="https://raw.githubusercontent.com/Nomothings/CHARGE/"
    "2b0b16500f3e148b7462bedf4e388ed742375987/text_corpus.jsonl",
)
MRAG_BENCH = Source(
    rows="uclanlp/MRAG-Bench@43620fd",
    patterns=("data/*.parquet",),
    questions=1353,
    by_hand=f"its corpus (3.7 GB): {CORPUS_PAGE}, and then"
    " `vrag fetch mrag-bench --rows '' --corpus ARCHIVE`",
)
_WEBQA = "WebQA_train_val.json, imgs.tsv, imgs.lineidx (51 GB): https://github.com/WebQnA/WebQA"
SOURCES: Mapping[str, Source] = {
    "visrag-arxiv": _visrag("ArxivQA@00a31fc1e899b5f81d7760eca4907b1a1005865b", 816),
    "visrag-plot": _visrag("PlotQA@ef953ef8ab6d78ac112dd4cde6acdb2c2692039a", 863),
    "visrag-slide": _visrag("SlideVQA", 556),
    "visrag-doc": _visrag("MP-DocVQA@3ebd091c458cf04161f78cd7b12ea101f83e2529", 591),
    "chart-rag": _CHARTS,
    "mrag-bench": MRAG_BENCH,
    "webqa": Source(by_hand=_WEBQA),
    "visual-rag": Source(by_hand="its annotations, and `vrag fetch visual-rag` for the images"),
}
"""MRAG-Suite's data sets by name."""


def fetch_visual_rag(annotations: Path | str, archive: Path | str, to: Path | str) -> FetchReport:
    """Extract the images that Visual-RAG annotations name from a gzip tar.

    The archive is a file or an http(s) URL. Images go to `to`/<species folder>/<file>, as in
    `fetch_images`. Raises `VragError` for unusable annotations, an unreadable archive, and an
    unwritable folder.
    """
    names: set[str] = set()
    for where, row, _ in read_annotations(Path(annotations)):
        for name in row.images:
            if not is_image_name(name):
                raise VragError(f"{where}: image {name!r}; expected '<species folder>/<file>'.")
            names.add(name)
    return fetch_images(names, archive, to)


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

    `only` selects some by name. Revision and questions
    are printed, with the published number if it differs, and sources to fetch by hand. A
    failure does not end the others; existing files are not fetched again. Raises `VragError`
    for an unknown name.
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
        source = SOURCES[name]
        try:
            if source.rows:
                logger.info(f"{name}: {_fetch_source(source, to.expanduser() / name)}")
        except (VragError, OSError, ValueError) as error:  # pyarrow's are the latter
            has_failed = True
            logger.info(f"{name}: {error}")
        if source.by_hand and not only:
            logger.info(f"not fetched: {name}: {source.by_hand}")
    return has_failed


def _fetch_source(source: Source, folder: Path) -> str:
    """Fetch a data set; returns what it holds."""
    download_from_hub(source.rows, source.patterns, folder)
    files = sorted(folder.glob(source.patterns[0]))
    if not files:
        raise VragError(f"{source.rows} holds no {source.patterns[0]}; fetch it by hand: {folder}.")
    count = sum(map(_count_rows, files))
    revision = hub_revision(folder, files) or "unknown"
    holds = f"{count:,} questions, revision {revision}, in {folder}"
    if count != source.questions:
        holds += f" (MRAG-Suite prints {source.questions:,}: another revision of the data)"
    if source.extra:
        lines = _fetch_json_lines(source.extra, folder / PurePosixPath(source.extra).name)
        holds += f"; {lines:,} sentences"
    return holds


def _count_rows(path: Path) -> int:
    """Count the rows of a Parquet or Arrow file without reading images."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as batches:
        return sum(batch.num_rows for batch in batches)


def _fetch_json_lines(url: str, path: Path) -> int:
    """Fetch a file of JSON Lines unless it exists; returns the number of lines."""
    data = path.read_bytes() if path.is_file() else download(url, allow_private=True)
    try:
        lines = [json.loads(line) for line in data.splitlines() if line.strip()]
    except ValueError as error:
        raise VragError(f"{url}: found no JSON Lines ({error}).") from error
    write_atomically(path, [data])
    return len(lines)


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
