"""The page data sets of the drawn suite, written as VisRAG publishes its own: the configs
corpus, queries and qrels in parquet, with the words of every page beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from vrag_kit.benchmarks.transforms import encode_id
from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_suite.ground_truth import Shown
from vrag_kit.synthetic.mrag_suite.misreading import add_ocr_errors
from vrag_kit.synthetic.mrag_suite.page_questions import PagePlan, PageQuestion, PageSet
from vrag_kit.synthetic.mrag_suite.page_renderer import encode_page
from vrag_kit.synthetic.parquet import IMAGE, NUMBER, TEXT, TEXTS, image_cell, parquet_bytes
from vrag_kit.types import Json

SIDECAR = "page_texts.jsonl"
"""The words of the pages, as an OCR program read them (`add_ocr_errors`)."""
WORDS = "page_words.jsonl"
"""The words that stand there."""
_SHARD = "train-00000-of-00001.parquet"
_CORPUS = {"corpus-id": TEXT, "image": IMAGE}
_QUERIES = {
    "query-id": TEXT,
    "query": TEXT,
    "answer": TEXT,
    "options": TEXTS,
    "is_numerical": NUMBER,
}
_QRELS = {"query-id": TEXT, "corpus-id": TEXT, "score": NUMBER}


def write_pages(pages: PageSet, folder: Path) -> Shown:
    """Draw and write a data set; returns what its pages tell."""
    corpus = [_page(page) for page in pages.pages]
    qrels = []
    for question in pages.questions:
        for page_id in question.pages:
            row = {"query-id": question.query_id, "corpus-id": page_id, "score": 1}
            qrels.append(row)
    queries = [_question(question) for question in pages.questions]
    write_file(folder / "corpus" / _SHARD, parquet_bytes(_CORPUS, corpus))
    write_file(folder / "queries" / _SHARD, parquet_bytes(_QUERIES, queries))
    write_file(folder / "qrels" / _SHARD, parquet_bytes(_QRELS, qrels))
    write_page_texts(
        {page.page_id: page.text for page in pages.pages}, folder / WORDS, folder / SIDECAR
    )
    return {encode_id(page.page_id): page.facts for page in pages.pages}


def write_page_texts(texts: Mapping[str, str], words: Path, read: Path) -> None:
    """Write what stands on documents to `words`, and what was read there to `read`."""
    for path, said in (
        (words, texts),
        (read, {doc_id: add_ocr_errors(text, doc_id) for doc_id, text in texts.items()}),
    ):
        rows = [json.dumps({"doc_id": doc_id, "text": text}) for doc_id, text in said.items()]
        write_file(path, "\n".join(rows) + "\n")


def _page(page: PagePlan) -> Json:
    data = encode_page(page.draw(), page.format)
    return {"corpus-id": page.page_id, "image": image_cell(data)}


def _question(question: PageQuestion) -> Json:
    """A row; several answers are a list that is written as text."""
    several = len(question.answers) > 1
    answer = json.dumps(question.answers) if several else question.answers[0]
    row: Mapping[str, object] = {
        "query-id": question.query_id,
        "query": question.text,
        "answer": answer,
        "options": list(question.options) or None,
        "is_numerical": 0,
    }
    return dict(row)
