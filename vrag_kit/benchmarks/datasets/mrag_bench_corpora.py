"""Other documents for MRAG-Bench's questions: text passages instead of images (Table 4), and
pools of more than five examples, from the classes of the images.

    <folder>/passages.csv        passage,text: a name without white space, and its text
    <folder>/ground_truth.csv    question,passage: the id of a row and a passage that
                                 answers it, the one to show before any others

The paper searches a Wikipedia of 2023, and does not describe its ground-truth text.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.tables import read_csv_rows
from vrag_kit.types import Benchmark, DocId, Document, QueryId

PASSAGES = "passages.csv"
PASSAGE_COLUMNS = ("passage", "text")
GROUND_TRUTH = "ground_truth.csv"
GROUND_TRUTH_COLUMNS = ("question", "passage")
_ADVICE = (
    f"Expected a folder with {PASSAGES} ({','.join(PASSAGE_COLUMNS)}) and"
    f" {GROUND_TRUTH} ({','.join(GROUND_TRUTH_COLUMNS)})."
)
_IN_NAMES = (  # groups of the corpus whose file names tell the class
    re.compile(r"(?P<label>.+?)_gt_.*"),  # from the web: "Temporal_Cats_17_gt_3.jpg"
    re.compile(r".+_by_class_.+?_(?:train|test)_(?P<label>.+)_\d+\.\w+"),  # StanfordCars
    re.compile(r"(?:geoDE_geode|regions)_images_(?P<label>[^_]+)_.*"),  # GeoDE: the region
)


def load_mrag_texts(benchmark: Benchmark, folder: Path | str) -> Benchmark:
    """Load text passages from a folder as the corpus for the benchmark's questions.

    Labels are 1 for passages that answer, in the order of the file. A question may have
    none; rows about other questions are ignored. Raises `VragError`, naming file and line,
    for a missing or malformed file, a passage that is empty, duplicate, badly named or
    missing, and if the ground truth names no question of the benchmark.
    """
    folder = Path(folder).expanduser()
    corpus = _passages(folder / PASSAGES)
    qrels = _labels(folder / GROUND_TRUTH, benchmark, corpus)
    texts = [(name, document.text) for name, document in corpus.items()]
    labels = [list(qrels[query_id]) for query_id in benchmark.queries]
    read = json.dumps([benchmark.fingerprint, texts, labels])
    return replace(
        benchmark,
        name=f"{benchmark.name}, texts",
        fingerprint=hashlib.sha256(read.encode()).hexdigest(),
        corpus=corpus,
        qrels=qrels,
        pools=None,
        left_out={},
    )


def _passages(path: Path) -> dict[str, Document]:
    corpus: dict[str, Document] = {}
    for line, row in read_csv_rows(path, PASSAGE_COLUMNS, "the passages", _ADVICE):
        name, text = row["passage"], row["text"].strip()
        if not name or name.split() != [name] or name in corpus:
            raise VragError(
                f"{path} line {line}: the passage is named {name!r}; expected a name without white"
                " space that stands on no other line."
            )
        if not text:
            raise VragError(f"{path} line {line}: passage {name!r} says nothing; expected text.")
        corpus[name] = Document(doc_id=name, text=text)
    if not corpus:
        raise VragError(f"{path}: holds no passage. {_ADVICE}")
    return corpus


def _labels(
    path: Path, benchmark: Benchmark, corpus: dict[str, Document]
) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {query_id: {} for query_id in benchmark.queries}
    for line, row in read_csv_rows(path, GROUND_TRUTH_COLUMNS, "the ground truth", _ADVICE):
        if row["passage"] not in corpus:
            raise VragError(
                f"{path} line {line}: passage {row['passage']!r} is not in {PASSAGES}. Write its"
                " text there."
            )
        if row["question"] in qrels:
            qrels[row["question"]][row["passage"]] = 1
    if not any(qrels.values()):
        raise VragError(
            f"{path}: tells of no question of {benchmark.name}, whose ids are"
            f" {', '.join(list(qrels)[:3])}, …. The column `question` holds the ids of rows."
        )
    return qrels


def read_class_labels(path: Path | str) -> dict[str, str]:
    """Read the classes of corpus files from a CSV file with the columns file and label.

    ImageNet's and Flowers' images need it. Raises `VragError` for an unreadable file or other
    columns.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return {row["file"]: row["label"] for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError, KeyError, csv.Error) as error:
        raise VragError(
            f"{path}: cannot be read as labels ({type(error).__name__}: {error}); expected a CSV"
            " file with the columns file and label."
        ) from error


def class_of(file: str, labels: Mapping[str, str]) -> str:
    """Return the class of a corpus image, from `labels` or its file name; "" for an unknown
    class, and for query images.
    """
    if file in labels:
        return labels[file]
    for pattern in _IN_NAMES:
        if match := pattern.fullmatch(file):
            return match["label"]
    return ""


def example_pools(
    benchmark: Benchmark, labels: Mapping[str, str] | None = None
) -> dict[QueryId, tuple[DocId, ...]]:
    """Build each query's pool: its ground truth, then other corpus images of the same classes.

    Within a class they are sorted by id; query images are left out. The paper takes up to 20
    examples from such pools without saying how they are made; it reports their mean sizes, 20.4
    in Perspective and 5.9 in Transformative.
    """
    own = frozenset[DocId]().union(*benchmark.left_out.values())
    members: dict[str, list[DocId]] = defaultdict(list)
    of_document: dict[DocId, str] = {}
    for doc_id, document in sorted(benchmark.corpus.items()):
        label = class_of(str(document.metadata.get("file", "")), labels or {})
        if label and doc_id not in own:
            members[label].append(doc_id)
            of_document[doc_id] = label
    pools = {}
    for query_id in benchmark.queries:
        found = dict.fromkeys(benchmark.relevant(query_id))
        for doc_id in list(found):
            found |= dict.fromkeys(members.get(of_document.get(doc_id, ""), ()))
        pools[query_id] = tuple(found)
    return pools
