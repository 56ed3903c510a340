"""Check a benchmark's data (`vrag data check`): its loader collects what is wrong with the rows,
and every image is opened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.datasets.chart_mrag import SENTENCES, load_chart_mrag
from vrag_kit.benchmarks.datasets.crag_mm import SPLITS, load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm_index import (
    ENTRIES,
    PAGES,
    read_image_index,
    read_web_index,
)
from vrag_kit.benchmarks.datasets.mrag_bench import CORPUS, load_mrag_bench
from vrag_kit.benchmarks.datasets.pages import list_splits, load_page_benchmark
from vrag_kit.benchmarks.datasets.visual_rag import load_visual_rag
from vrag_kit.benchmarks.datasets.webqa import ANNOTATIONS, IMAGES, load_webqa
from vrag_kit.benchmarks.images import decode
from vrag_kit.benchmarks.rows import Kind, Problems
from vrag_kit.errors import VragError
from vrag_kit.fetching.image_folder import printable
from vrag_kit.files import write_file
from vrag_kit.log import logger, progress
from vrag_kit.types import Benchmark, LazyImage

MOST_ROWS = 50
"""Maximum findings that are printed; `--csv` writes all."""
_BATCH = 1024  # images handed to the threads together, so that memory does not grow
Loader = partial[Benchmark]
"""Loads one data set, given `problems`."""


def check_data(target: Path, image_root: Path | None, *, csv: Path | None = None) -> bool:
    """Print the problems of a benchmark's files; returns whether there are faults.

    Odd findings are not faults. `target` and `image_root` are those of `find_problems`; `csv`
    receives every finding.
    """
    table = find_problems(target, image_root)
    kinds = table["kind"].value_counts()
    logger.info(", ".join(f"{kind}: {kinds.get(kind, 0):,}" for kind in Kind))
    for row in table.head(MOST_ROWS).to_dict("records"):
        image = f"{row['image']}: " if row["image"] else ""
        logger.info(printable(f"{row['kind']:<8} {row['location']}: {image}{row['message']}"))
    if len(table) > MOST_ROWS:
        logger.info(f"… and {len(table) - MOST_ROWS:,} more; --csv FILE writes all")
    if csv:
        write_file(csv, table.to_csv(index=False))
    return bool(set(kinds.index) - {Kind.ODD})


def find_problems(target: Path, image_root: Path | None = None) -> pd.DataFrame:
    """Find the problems of a benchmark's files; returns one row for each, worst first.

    `target` is an annotation file of Visual-RAG with its `image_root`, or, alone, a folder with
    annotations.jsonl and images/; or a folder of MRAG-Bench's shards, with the folder of its corpus
    unless it is inside; or one of CRAG-MM, with the folder of its images unless it is "images"
    next to the rows; or one of pages, charts and WebQA.

    Columns: kind; location (file and row or line); image ("" for a whole row); message. Kinds,
    in this order: `row`, a row or file that the loader refuses; `missing`, an image or a shard
    that does not exist; `damaged`, an image that cannot be decoded; `odd`, unusual but usable.
    Empty without problems. Raises `VragError` if there is no data.
    """
    problems = Problems(collect=True)
    with tempfile.TemporaryDirectory() as cache:
        several = _crag_mm(target, image_root)
        if not (several or image_root):
            several = _collection(target, cache)
        for name, load in several:
            _check_one_of_several(name, load, problems)
        if not several:
            open_images(_only_one(target, image_root, cache)(problems=problems), problems)
    distinct = dict.fromkeys(problems.found)  # two splits may share a file of annotations
    found = sorted(distinct, key=lambda problem: list(Kind).index(problem.kind))
    columns = ["kind", "location", "image", "message"]
    return pd.DataFrame([asdict(problem) for problem in found], columns=columns)


def _check_one_of_several(name: str, load: Loader, problems: Problems) -> None:
    """Check a data set; its name begins the locations of its problems, and is that of one which
    cannot be loaded.
    """
    own = Problems(collect=True)
    try:
        open_images(load(problems=own), own)
    except VragError as error:
        own.add(Kind.ROW, "not loaded", str(error))
    problems.found += [replace(each, location=f"{name}: {each.location}") for each in own.found]


def _only_one(target: Path, image_root: Path | None, cache: str) -> Loader:
    """The loader of MRAG-Bench or Visual-RAG."""
    if _has_shards(target):
        inside = target / CORPUS
        corpus = image_root or (inside if inside.is_dir() else None)
        return partial(load_mrag_bench, target, corpus, cache_dir=cache)
    annotations, images = target, image_root
    if images is None:
        annotations, images = target / "annotations.jsonl", target / "images"
        if not (annotations.is_file() and images.is_dir()):
            raise VragError(
                f"{target}: no annotation file with its images (annotations.jsonl, images/),"
                " neither pages (queries, corpus and qrels) nor charts (*.arrow) nor"
                f" {ANNOTATIONS}. Name a parameter file (.yaml), a benchmark's folder, or"
                " `vrag data check ANNOTATIONS IMAGE_FOLDER`."
            )
    logger.info(f"annotations: {annotations}\nimages: {images}")
    return partial(load_visual_rag, annotations, images)


def _collection(folder: Path, cache: str) -> list[tuple[str, Loader]]:
    """(name, loader) of each split of pages, of charts and of WebQA in a folder or its subfolders;
    none if these hold only WebQA, as in the synthetic Field Guide.
    """
    if found := _data_sets(folder, cache):
        return found
    below = sorted(each for each in folder.glob("*") if each.is_dir())
    found = list(chain.from_iterable(_data_sets(each, cache) for each in below))
    return found if any(loader.func is not load_webqa for _, loader in found) else []


def _data_sets(folder: Path, cache: str) -> list[tuple[str, Loader]]:
    name = folder.name
    if splits := list_splits(folder):
        load = partial(load_page_benchmark, folder, cache_dir=cache)
        names = {f"{name} {split}": split for split in splits}
        return [(each, partial(load, split=names[each], name=each)) for each in names]
    for rows in (folder, folder / "rows"):
        if any(rows.glob("*.arrow")):
            texts = folder if (folder / SENTENCES).is_file() else folder.parent
            return [
                (
                    name,
                    partial(load_chart_mrag, rows, texts / SENTENCES, name=name, cache_dir=cache),
                )
            ]
    if (folder / ANNOTATIONS).is_file():
        images = folder / IMAGES if (folder / IMAGES).is_file() else None
        load = partial(load_webqa, folder / ANNOTATIONS, images, split=None, questions="all")
        return [(name, partial(load, name=name))]
    return []


def _has_shards(folder: Path, name: str = "*") -> bool:
    return any(folder.glob(f"{name}.parquet")) or any(folder.glob(f"data/{name}.parquet"))


def _crag_mm(folder: Path, images: Path | None) -> list[tuple[str, Loader]]:
    """(name, loader) of each split of CRAG-MM in a folder or its subfolders, and of its indexes."""
    found: list[tuple[str, Loader]] = []
    for rows in (folder / "single-turn", folder / "multi-turn", folder):
        for split in SPLITS:
            if _has_shards(rows, f"{split}-*"):
                found.append((rows.name, partial(load_crag_mm, rows, split, images=images)))
    if found:
        for file in (ENTRIES, PAGES):
            for path in sorted(folder.glob(f"*/{file}")):
                found.append((path.parent.name, partial(_load_index, path)))
    return found


def _load_index(path: Path, problems: Problems) -> Benchmark:
    read = read_image_index if path.name == ENTRIES else read_web_index
    corpus = read(path.parent, problems)
    return Benchmark(name=path.parent.name, fingerprint="", queries={}, corpus=corpus, qrels={})


def open_images(benchmark: Benchmark, problems: Problems) -> None:
    """Open each image of a benchmark once, however many queries and documents show it, by four
    threads; a problem is one that cannot be decoded. It logs the size of the benchmark.
    """
    labels = sum(len(benchmark.qrels.get(query_id, ())) for query_id in benchmark.queries)
    logger.info(
        f"{benchmark.name}: {len(benchmark.queries):,} queries, {len(benchmark.corpus):,}"
        f" documents, {labels:,} labels"
    )
    images = _images(benchmark, {problem.image for problem in problems.found})
    with ThreadPoolExecutor(4) as pool:
        while part := list(islice(images, _BATCH)):
            found = pool.map(_fault, [image for *_, image in part])
            for (location, name, _), fault in zip(part, found, strict=True):
                if fault:
                    problems.add(fault[0], location, fault[1], name)


def _images(benchmark: Benchmark, missing: Collection[str]) -> Iterator[tuple[str, str, LazyImage]]:
    """(location, name, image) of each image that is not among the missing ones."""
    seen = set()
    for query in benchmark.queries.values():
        if query.image is not None and query.image.where not in seen:
            seen.add(query.image.where)
            location = str(query.metadata.get("where", query.query_id))
            yield location, Path(query.image.where).name, query.image
    total = len(benchmark.corpus)
    for doc_id, document in progress(benchmark.corpus.items(), benchmark.name, total, "documents"):
        image = document.image
        if image is not None and image.where not in seen and doc_id not in missing:
            yield f"document {doc_id}", doc_id, image


def _fault(image: LazyImage) -> tuple[Kind, str] | None:
    """Why an image cannot be opened."""
    try:
        decode(image.data(), Path(image.where).name)
    except VragError as error:
        is_missing = isinstance(error.__cause__, FileNotFoundError)
        return (Kind.MISSING if is_missing else Kind.DAMAGED), str(error)
    return None
