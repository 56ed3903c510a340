"""Load MRAG-Bench's questions over text passages instead of images (Table 4).

    <folder>/passages.csv        passage,text: a name without white space, and its text
    <folder>/ground_truth.csv    question,passage: the id of a row and a passage that
                                 answers it, the one to show before any others

The paper searches a Wikipedia of 2023, and does not describe its ground-truth text.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.tables import read_csv_rows
from vrag_kit.types import Benchmark, Document

PASSAGES = "passages.csv"
PASSAGE_COLUMNS = ("passage", "text")
GROUND_TRUTH = "ground_truth.csv"
GROUND_TRUTH_COLUMNS = ("question", "passage")
_ADVICE = (
    f"Expected a folder with {PASSAGES} ({','.join(PASSAGE_COLUMNS)}) and"
    f" {GROUND_TRUTH} ({','.join(GROUND_TRUTH_COLUMNS)})."
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
