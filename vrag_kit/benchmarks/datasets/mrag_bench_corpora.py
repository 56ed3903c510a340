"""Other documents for MRAG-Bench's questions: text passages instead of images (Table 4), and
pools of more than five examples, from the classes of the images.

    <folder>/passages.csv        passage,text: a name without white space, and its text
    <folder>/ground_truth.csv    question,passage: the id of a row and a passage that
                                 answers it, the one to show before any others

The paper searches a Wikipedia of 2023, and does not describe its ground-truth text.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from vrag_kit.benchmarks.sources import read_csv_rows
from vrag_kit.errors import VragError, short_repr
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
    return benchmark.derive(
        json.dumps([texts, labels]),
        name=f"{benchmark.name}, texts",
        corpus=corpus,
        qrels=qrels,
        pools=None,
        left_out={},
    )


def _passages(path: Path) -> dict[str, Document]:
    corpus: dict[str, Document] = {}
    for line, row in read_csv_rows(path, PASSAGE_COLUMNS, "the passages", _ADVICE):
        name, text = row["passage"], row["text"].strip()
        if name.split() != [name] or name in corpus or not text:
            found = f"found passage {name!r} with the text {short_repr(text)}"
            expected = "a name without white space, each once, and a text"
            raise VragError(f"{path} line {line}: {found}; expected {expected}.")
        corpus[name] = Document(doc_id=name, text=text)
    return corpus


def _labels(
    path: Path, benchmark: Benchmark, corpus: dict[str, Document]
) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {query_id: {} for query_id in benchmark.queries}
    for line, row in read_csv_rows(path, GROUND_TRUTH_COLUMNS, "the ground truth", _ADVICE):
        if row["passage"] not in corpus:
            found = f"found passage {row['passage']!r}"
            raise VragError(f"{path} line {line}: {found}; expected one of {PASSAGES}.")
        if row["question"] in qrels:
            qrels[row["question"]][row["passage"]] = 1
    if not any(qrels.values()):
        expected = f"in column `question` ids of {benchmark.name}: {', '.join(list(qrels)[:3])}, …"
        raise VragError(f"{path}: found no question of the benchmark; expected {expected}.")
    return qrels


def read_class_labels(path: Path | str) -> dict[str, str]:
    """Read the classes of corpus files from a CSV file with the columns file and label.

    ImageNet's and Flowers' images need it. Raises `VragError` for an unreadable file or other
    columns.
    """
    rows = read_csv_rows(Path(path), ("file", "label"), "the labels", "Expected file,label.")
    return {row["file"]: row["label"] for _, row in rows}


def class_of(file: str, labels: Mapping[str, str]) -> str:
    """Return the class of a corpus image, from `labels` or its file name; "" for an unknown
    class, and for query images.
    """
    matches = (pattern.fullmatch(file) for pattern in _IN_NAMES)
    return labels.get(file) or next((match["label"] for match in matches if match), "")


def example_pools(
    benchmark: Benchmark, labels: Mapping[str, str] | None = None
) -> dict[QueryId, tuple[DocId, ...]]:
    """Build each query's pool: its ground truth, then other corpus images of the same classes.

    Within a class they are sorted by id; query images are left out. The paper takes up to 20
    examples from such pools without saying how they are made; it reports their mean sizes, 20.4
    in Perspective and 5.9 in Transformative.
    """
    own = frozenset[DocId]().union(*benchmark.left_out.values())
    label_of = {
        doc_id: class_of(document.metadata.get("file", ""), labels or {})
        for doc_id, document in sorted(benchmark.corpus.items())
        if doc_id not in own
    }
    members: dict[str, list[DocId]] = defaultdict(list)
    for doc_id, label in label_of.items():
        members[label].append(doc_id)
    members[""] = []
    pools = {}
    for query_id in benchmark.queries:
        gold = benchmark.relevant(query_id)
        alike = chain.from_iterable(members[label_of.get(doc_id, "")] for doc_id in gold)
        pools[query_id] = tuple(dict.fromkeys(chain(gold, alike)))
    return pools
