"""What MRAG-Suite takes from the hub, each data set in a folder of its own; and where the
others are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from vrag_kit.benchmarks.chart_rows import read_sentences
from vrag_kit.benchmarks.revisions import revision_of
from vrag_kit.errors import VragError
from vrag_kit.fetching.by_address import download
from vrag_kit.fetching.chart_health import SENTENCES
from vrag_kit.fetching.filling import writing
from vrag_kit.fetching.hub import from_hub
from vrag_kit.fetching.mrag_bench import ROWS as MRAG_ROWS
from vrag_kit.files import write_file

_CONFIGS = tuple(f"{config}/train-*.parquet" for config in ("corpus", "queries", "qrels"))


@dataclass(frozen=True, slots=True)
class Source:
    """One data set of the hub."""

    rows: str  # <owner>/<name>@<revision>; the newest without one
    patterns: tuple[str, ...]  # of its files
    counted: str  # pattern of the files with its questions
    questions: int  # as MRAG-Suite's Table 1 counts them (column "full")
    sentences: str = ""  # address of a file beside


def _visrag(rows: str, questions: int) -> Source:
    return Source(f"openbmb/VisRAG-Ret-Test-{rows}", _CONFIGS, _CONFIGS[1], questions)


CHARTS = Source(
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
    "mrag-bench": Source(MRAG_ROWS, ("data/*.parquet",), "data/*.parquet", 1353),
}
"""Name → where it is fetched."""
ELSEWHERE = {
    "webqa": (
        "WebQA_train_val.json, imgs.tsv and imgs.lineidx: from its authors' page,"
        " https://github.com/WebQnA/WebQA, by hand (about 51 GB)"
    ),
    "visual-rag": "its annotations, and `vrag fetch visual-rag` for the pictures",
    "mrag-bench": "its corpus: `vrag fetch mrag-bench --rows '' --corpus ARCHIVE`",
}
"""Name → where that is which no address gives."""


def fetch_suite(
    to: Path, only: Collection[str] = (), sources: dict[str, Source] | None = None
) -> bool:
    """Fetch each of the `sources` (`SOURCES`), or `only` these, to `to`/<name>, printing
    revision and questions beside those that are published; whether one failed, which ends
    none of the others. Files that are there are not fetched again.

    Raises `VragError` for an unknown name.
    """
    known = SOURCES if sources is None else sources
    for name in only:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise VragError(
                f"no data set {name!r} to fetch; expected one of {', '.join(known)}.{hint}"
            )
    failed = []
    for name in only or known:
        try:
            print(f"{name}: {_fetch(known[name], to.expanduser() / name)}", flush=True)
        except VragError as error:
            failed.append(name)
            print(f"{name}: {error}", flush=True)
    if not only and sources is None:
        for name, where in ELSEWHERE.items():
            print(f"not fetched: {name}: {where}", flush=True)
    return bool(failed)


def _fetch(source: Source, folder: Path) -> str:
    """Fetch one; what it holds, in words."""
    from_hub(source.rows, folder, source.patterns)
    files = sorted(folder.glob(source.counted))
    if not files:
        raise VragError(
            f"{source.rows} holds no {source.counted}. Its files have other names since; fetch"
            f" it by hand into {folder}."
        )
    count = _count(files)
    revision = revision_of(folder, files) or "unknown"
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
    with writing(path):
        write_file(path, data)
    try:
        return len(read_sentences(path))
    except VragError as error:
        path.unlink()  # a login page, for instance: it would be taken for the file next time
        raise VragError(f"{address}: found no file of sentences ({error})") from error
