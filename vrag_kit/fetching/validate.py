"""Check a benchmark's data (`vrag check`): its loader collects what is wrong with the rows, and
every image is opened.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from inspect import signature
from itertools import chain, islice, product
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
from vrag_kit.benchmarks.sources import read_lines
from vrag_kit.errors import VragError
from vrag_kit.fetching.image_folder import MOST_NAMED, printable
from vrag_kit.files import escapes_folder, write_file
from vrag_kit.log import logger, track
from vrag_kit.types import Benchmark, DocId, Document, LazyImage

MOST_ROWS = 50
"""Maximum findings that are printed; `--csv` writes all."""
_THREADS = 4
_BY_HAND = "Or name both: `vrag check ANNOTATIONS IMAGE_FOLDER`."
Loader = partial[Benchmark]
ReadIndex = Callable[[Path, Problems], dict[DocId, Document]]
_BATCH = 1024  # images handed to the threads together, so that memory does not grow


def check_data(target: Path, image_root: Path | None, *, csv: Path | None = None) -> bool:
    """Print the problems of a benchmark's files; returns whether there are faults.

    Odd findings are not faults. `target` and `image_root` are those of `find_problems`; `csv`
    receives every finding.
    """
    table = find_problems(target, image_root)
    kinds = table["kind"].value_counts()
    logger.info(", ".join(f"{kind}: {kinds.get(kind, 0):,}" for kind in Kind))
    folded = _folded(table)
    for row in folded.head(MOST_ROWS).to_dict("records"):
        image = f"{row['image']}: " if row["image"] else ""
        logger.info(printable(f"{row['kind']:<8} {row['location']}: {image}{row['message']}"))
    if len(folded) > MOST_ROWS:
        advice = "" if csv else "; --csv FILE writes all"
        logger.info(f"… and {len(folded) - MOST_ROWS:,} more{advice}")
    if csv:
        write_file(csv, table.to_csv(index=False))
        logger.info(f"written to {csv}")
    return bool(set(kinds.index) - {Kind.ODD})


def find_problems(target: Path, image_root: Path | None = None) -> pd.DataFrame:
    """Find the problems of a benchmark's files; returns one row for each, worst first.

    `target` is an annotation file of Visual-RAG with its `image_root`, or, alone, a folder that
    `find_data` understands; or a folder of MRAG-Bench's shards, with the folder of its corpus
    unless it is inside; or one of CRAG-MM, with the folder of its images unless it is "images"
    next to the rows; or one of pages, charts and WebQA.

    Columns: kind; location (file and row or line); image ("" for a whole row); message. Kinds,
    in this order: `row`, a row or file that the loader refuses; `missing`, an image or a shard
    that does not exist; `damaged`, an image that cannot be decoded; `odd`, unusual but usable.
    Empty without problems. Raises `VragError` if there is no data.
    """
    problems = Problems(collect=True)
    several = _crag_mm(target, image_root)
    if not (several or image_root):
        several = _collection(target)
    if several:
        for name, load in several:
            _check_one_of_several(name, load, problems)
    elif _has_shards(target):
        inside = target / CORPUS
        corpus = image_root or (inside if inside.is_dir() else None)
        logger.info(f"rows: {target}\ncorpus: {corpus or 'none; only the rows are checked'}")
        _check(partial(load_mrag_bench, target, corpus), problems)
    elif image_root is None and not target.is_dir():
        raise VragError(
            f"{target} is no parameter file (.yaml) and no folder. To check a benchmark, name its"
            f" images too: `vrag check {target} <image folder>`."
        )
    else:
        annotations, images = (target, image_root) if image_root else find_data(target)
        logger.info(f"annotations: {annotations}\nimages: {images}")
        _check(partial(load_visual_rag, annotations, images), problems)
    distinct = dict.fromkeys(problems.found)  # two splits may share a file of annotations
    found = sorted(distinct, key=lambda problem: list(Kind).index(problem.kind))
    columns = ["kind", "location", "image", "message"]
    return pd.DataFrame([asdict(problem) for problem in found], columns=columns)


def find_data(folder: Path) -> tuple[Path, Path]:
    """Find the annotation file of Visual-RAG and its image folder in `folder`.

    The annotation file is the one `.jsonl` file directly in it that has a row with `images` and
    `question`. The image folder is `folder` itself or a folder in it, the one with most images of
    the first such row; it must have the species folder of the first image. Otherwise raises
    `VragError`, which says what was found.
    """
    files = {
        path: names for path in sorted(folder.glob("[!.]*.jsonl")) if (names := _first_images(path))
    }
    everything = sorted(
        f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir()
    )
    found = f"found {', '.join(everything[:MOST_NAMED]) or 'nothing'}"
    if not files:
        raise VragError(
            f"{folder}: no annotation file, neither pages (queries, corpus and qrels) nor charts"
            f" (*.arrow) nor {ANNOTATIONS}; {found}. {_BY_HAND}"
        )
    if len(files) > 1:
        several = ", ".join(path.name for path in files)
        raise VragError(
            f"{folder}: {len(files)} annotation files: {several}; expected one. {_BY_HAND}"
        )
    ((annotations, images),) = files.items()
    species = images[0].partition("/")[0]
    places = [place for place in (folder, *sorted(folder.iterdir())) if (place / species).is_dir()]
    if not places:
        raise VragError(
            f"{folder}: no image folder: {annotations.name} begins with the species folder"
            f" {species!r}, which is neither here nor in a folder here; {found}. {_BY_HAND}"
        )
    return annotations, max(
        places, key=lambda place: sum((place / name).is_file() for name in images)
    )


def _first_images(path: Path) -> list[str]:
    """The images of the first row with a question and images; rows before it may be broken."""
    for _, line in read_lines(path):
        with suppress(ValueError):
            row = json.loads(line)
            images = row.get("images") if isinstance(row, dict) and "question" in row else None
            if isinstance(images, dict) and images and not any(map(escapes_folder, images)):
                return list(images)
    return []


def _check(load: Loader, problems: Problems, **named: str) -> None:
    """Load a data set, whose images are cached in a temporary folder, and open them."""
    with tempfile.TemporaryDirectory() as cache:
        options = {**named, "cache_dir": cache}
        taken = options.keys() & signature(load).parameters.keys()
        open_images(load(problems=problems, **{key: options[key] for key in taken}), problems)


def _check_one_of_several(name: str, load: Loader, problems: Problems) -> None:
    """Check a data set; its name begins the locations of its problems, and is that of one which
    cannot be loaded.
    """
    own = Problems(collect=True)
    try:
        _check(load, own, name=name)
    except VragError as error:
        own.add(Kind.ROW, "not loaded", str(error))
    problems.found += [replace(each, location=f"{name}: {each.location}") for each in own.found]


def _collection(folder: Path) -> list[tuple[str, Loader]]:
    """(name, loader) of each split of pages, of charts and of WebQA in a folder or its subfolders;
    none if these hold only WebQA, as in the synthetic Field Guide.
    """
    if found := _data_sets(folder):
        return found
    below = [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
    found = list(chain.from_iterable(map(_data_sets, sorted(below))))
    return found if any(loader.func is not load_webqa for _, loader in found) else []


def _data_sets(folder: Path) -> list[tuple[str, Loader]]:
    name = folder.name
    if (folder / "queries").is_dir() and (splits := list_splits(folder)):
        return [
            (f"{name} {each}", partial(load_page_benchmark, folder, split=each)) for each in splits
        ]
    for rows in (folder, folder / "rows"):
        if any(rows.glob("*.arrow")):
            texts = folder if (folder / SENTENCES).is_file() else folder.parent
            return [(name, partial(load_chart_mrag, rows, texts / SENTENCES))]
    if (folder / ANNOTATIONS).is_file():
        images = folder / IMAGES if (folder / IMAGES).is_file() else None
        load = partial(load_webqa, folder / ANNOTATIONS, images, split=None, questions="all")
        return [(name, load)]
    return []


def _has_shards(folder: Path, name: str = "*") -> bool:
    return any(folder.glob(f"{name}.parquet")) or any(folder.glob(f"data/{name}.parquet"))


def _crag_mm(folder: Path, images: Path | None) -> list[tuple[str, Loader]]:
    """(name, loader) of each split of CRAG-MM in a folder or its subfolders, and of its indexes."""
    found: list[tuple[str, Loader]] = []
    places = (folder / "single-turn", folder / "multi-turn", folder)
    for rows, split in product(places, SPLITS):
        if _has_shards(rows, f"{split}-*"):
            found.append((rows.name, partial(load_crag_mm, rows, split, images=images)))
    if found:
        for file, read in ((ENTRIES, read_image_index), (PAGES, read_web_index)):
            for path in sorted(folder.glob(f"*/{file}")):
                found.append((path.parent.name, partial(_load_index, path.parent, read)))
    return found


def _load_index(folder: Path, read: ReadIndex, problems: Problems) -> Benchmark:
    corpus = read(folder, problems)
    return Benchmark(name=folder.name, fingerprint="", queries={}, corpus=corpus, qrels={})


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
    with ThreadPoolExecutor(_THREADS) as pool:
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
    for doc_id, document in track(benchmark.corpus.items(), benchmark.name, total, "documents"):
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


def _folded(problems: pd.DataFrame) -> pd.DataFrame:
    """The problems with one row, the first, for all of a kind with the same message."""
    alike = problems.groupby(["kind", "message"])["message"].transform("size")
    words = problems["message"] + alike.map("; {:,} such findings".format)
    folded = problems.assign(message=problems["message"].mask(alike > 1, words))
    return folded[~problems.duplicated(["kind", "message"])]
