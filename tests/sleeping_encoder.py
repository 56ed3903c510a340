"""A project whose notebook searches three shards of documents by an encoder that sleeps
as long as PAUSE says, and notes its process, how many it encodes, and when.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vrag_kit.retrieval.embedding_cache import SHARD

P = "params/guide/p.yaml"
COUNT = 2 * SHARD + 100
ENCODER = """import os
import time

import numpy as np


class Slow:
    fingerprint = "1"

    def encode_queries(self, queries):
        return np.ones((len(queries), 2))

    def encode_documents(self, documents):
        time.sleep(float(os.environ.get("PAUSE", "0")))
        texts = [document.text for document in documents]
        if os.environ.get("BAD") in texts:
            raise ValueError("I do not like it")
        with open("encoded.txt", "a") as file:
            file.write(f"{os.getpid()} {len(texts)} {time.time()}\\n")
        return [(1, int(text)) for text in texts]
"""
SEARCH = """from vrag_kit import Workspace
from vrag_kit.retrieval import search_all
from vrag_kit.types import Benchmark, Document, Query

corpus = {f'd{n}': Document(doc_id=f'd{n}', text=str(n)) for n in range(count)}
queries = {'q': Query(query_id='q', text='What is large?', answers=('d',), group='g')}
made = Benchmark(
    name='n', fingerprint='1', queries=queries, corpus=corpus, qrels={'q': {'d7': 1}}
)
search_all(made, retrievers, k=1, at=Workspace(cache_dir=cache_dir))"""


def searching(folder: Path, notebook: Callable[[Path, str, str], None], count: int = COUNT) -> None:
    """Make a project of one notebook that searches so many documents, three shards of them;
    `notebook` writes one of a cell of parameters and another.
    """
    for name in ("notebooks", "params"):
        (folder / name / "guide").mkdir(parents=True)
    (folder / "mine.py").write_text(ENCODER, encoding="utf-8")
    told = f"retrievers = ['mine:Slow']\ncache_dir = 'kept'\ncount = {count}"
    notebook(folder / "notebooks" / "guide" / "01_one.ipynb", told, SEARCH)
    (folder / P).write_text("{}", encoding="utf-8")
