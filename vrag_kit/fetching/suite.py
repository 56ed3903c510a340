"""Fetch MRAG-Suite's data sets from the hub, each to its own folder, and print where to get
the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.chart_rows import read_sentences
from vrag_kit.benchmarks.revisions import hub_revision
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.fetching.by_address import download
from vrag_kit.fetching.chart_health import SENTENCES
from vrag_kit.fetching.filling import catch_write_errors
from vrag_kit.fetching.hub import download_from_hub
from vrag_kit.fetching.mrag_bench import ROWS as MRAG_ROWS
from vrag_kit.files import write_file
from vrag_kit.log import logger

_CONFIGS = tuple(f"{config}/train-*.parquet" for config in ("corpus", "queries", "qrels"))


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A data set on the hub, with the files to fetch."""

    rows: str  # <owner>/<name>@<revision>; the newest without one
    patterns: tuple[str, ...]  # of its files
    counted: str  # pattern of the files with its questions
    questions: int  # as MRAG-Suite's Table 1 counts them (column "full")
    sentences: str = ""  # address of a file beside


def _visrag(rows: str, questions: int) -> HubDataset:
    return HubDataset(f"openbmb/VisRAG-Ret-Test-{rows}", _CONFIGS, _CONFIGS[1], questions)


CHARTS = HubDataset(
    rows="ymyang/Chart-MRAG",
    patterns=("*.arrow", "state.json", "dataset_info.json"),
    counted="*.arrow",
    questions=4738,
    sentences="https://raw.githubusercontent.com/Nomothings/CHARGE/"
    "2b0b16500f3e148b7462bedf4e388ed742375987/text_corpus.jsonl",
)
SOURCES = {
    "visrag-arxiv": _visrag("ArxivQA@00a31fc1e899b5f81d7760eca4907b1a1005865b", 816),
    "visrag-plot": _visrag("PlotQA@ef953ef8ab6d78ac112dd4cde6acdb2c2692039a", 863),
    "visrag-slide": _visrag("SlideVQA", 556),
    "visrag-doc": _visrag("MP-DocVQA@3ebd091c458cf04161f78cd7b12ea101f83e2529", 591),
    "chart-rag": CHARTS,
    "mrag-bench": HubDataset(MRAG_ROWS, ("data/*.parquet",), "data/*.parquet", 1353),
}
"""Name → data set on the hub."""
ELSEWHERE = {
    "webqa": (
        "WebQA_train_val.json, imgs.tsv and imgs.lineidx: from its authors' page,"
        " https://github.com/WebQnA/WebQA, by hand (about 51 GB)"
    ),
    "visual-rag": "its annotations, and `vrag fetch visual-rag` for the pictures",
    "mrag-bench": "its corpus: `vrag fetch mrag-bench --rows '' --corpus ARCHIVE`",
}
"""Name → how to get the data that `fetch_suite` does not fetch."""


def fetch_suite(
    to: Path, only: Collection[str] = (), sources: dict[str, HubDataset] | None = None
) -> bool:
    """Fetch the data sets in `sources` to `to`/<name>; returns whether one of them failed.

    `sources` is `SOURCES` by default, and `only` selects some by name. Revision and questions
    are printed, with the published number if it differs. A failure does not end the others;
    existing files are not fetched again. Raises `VragError` for an unknown name.
    """
    known = SOURCES if sources is None else sources
    for name in only:
        if name not in known:
            raise VragError(
                f"no data set {name!r} to fetch; expected one of {', '.join(known)}."
                + did_you_mean(name, known)
            )
    failed = []
    for name in only or known:
        try:
            logger.info(f"{name}: {_fetch(known[name], to.expanduser() / name)}")
        except VragError as error:
            failed.append(name)
            logger.info(f"{name}: {error}")
    if not only and sources is None:
        for name, where in ELSEWHERE.items():
            logger.info(f"not fetched: {name}: {where}")
    return bool(failed)


def _fetch(source: HubDataset, folder: Path) -> str:
    """Fetch one; what it holds, in words."""
    download_from_hub(source.rows, folder, source.patterns)
    files = sorted(folder.glob(source.counted))
    if not files:
        raise VragError(
            f"{source.rows} holds no {source.counted}. Its files have other names since; fetch"
            f" it by hand into {folder}."
        )
    count = _count(files)
    revision = hub_revision(folder, files) or "unknown"
    told = f"{count:,} questions, revision {revision}, in {folder}"
    if count != source.questions:
        told += f" (MRAG-Suite prints {source.questions:,}: another revision of the data)"
    if source.sentences:
        told += f"; {_fetch_sentences(source.sentences, folder / SENTENCES):,} sentences"
    return told


def _count(files: Sequence[Path]) -> int:
    """The rows of parquet or Arrow files; reads no picture."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    count = 0
    for path in files:
        try:
            if path.suffix == ".parquet":
                count += pq.read_metadata(path).num_rows
                continue
            with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as batches:
                count += sum(batch.num_rows for batch in batches)
        except (pa.ArrowException, OSError) as error:
            raise VragError(
                f"{path}: cut short or damaged ({str(error).splitlines()[0]}). Delete it, and run"
                " the command again."
            ) from error
    return count


def _fetch_sentences(address: str, path: Path) -> int:
    """Fetch a file of sentences unless it is there; how many it holds."""
    if path.is_file():
        return len(read_sentences(path))
    data = download(address, allow_private=True)  # the address is ours, not out of data
    with catch_write_errors(path):
        write_file(path, data)
    try:
        return len(read_sentences(path))
    except VragError as error:
        path.unlink()  # a login page, for instance: it would be taken for the file next time
        raise VragError(f"{address}: found no file of sentences ({error})") from error
