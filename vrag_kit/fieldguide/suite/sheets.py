"""The page data sets of the drawn suite, written as VisRAG publishes its own: the configs
corpus, queries and qrels in parquet, with the words of every page beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from vrag_kit.benchmarks.ids import safe_id
from vrag_kit.fieldguide.parquet import IMAGE, NUMBER, TEXT, TEXTS, parquet, picture
from vrag_kit.fieldguide.suite.misreading import misread
from vrag_kit.fieldguide.suite.paper import encoded
from vrag_kit.fieldguide.suite.printed import PageQuestion, PageSet, PrintedPage
from vrag_kit.fieldguide.suite.truth import Shown
from vrag_kit.files import write_file
from vrag_kit.plain import Json

SIDECAR = "page_texts.jsonl"
"""The words of the pages, as an OCR program read them (`misread`)."""
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
    write_file(folder / "corpus" / _SHARD, parquet(_CORPUS, corpus))
    write_file(folder / "queries" / _SHARD, parquet(_QUERIES, queries))
    write_file(folder / "qrels" / _SHARD, parquet(_QRELS, qrels))
    write_words({page.page_id: page.text for page in pages.pages}, folder / WORDS, folder / SIDECAR)
    return {safe_id(page.page_id): page.facts for page in pages.pages}


def write_words(texts: Mapping[str, str], words: Path, read: Path) -> None:
    """Write what stands on documents to `words`, and what was read there to `read`."""
    for path, said in (
        (words, texts),
        (read, {doc_id: misread(text, doc_id) for doc_id, text in texts.items()}),
    ):
        rows = [json.dumps({"doc_id": doc_id, "text": text}) for doc_id, text in said.items()]
        write_file(path, "\n".join(rows) + "\n")


def _page(page: PrintedPage) -> Json:
    data = encoded(page.draw(), page.format)
    return {"corpus-id": page.page_id, "image": picture(data)}


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
