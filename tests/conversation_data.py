"""Conversations to hold: each turn's question names it ("turn 1 of b?"), and each
conversation has a picture of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.types import Benchmark, Context, Document, Query


def question(talk: str, turn: int) -> str:
    return f"turn {turn} of {talk}?"


def make_conversations(
    folder: Path, lengths: Mapping[str, int], alone: Sequence[str] = ()
) -> Benchmark:
    """Conversations of so many turns, by name, and questions that stand alone."""
    queries: dict[str, Query] = {}
    for number, (talk, length) in enumerate({**lengths, **dict.fromkeys(alone, 1)}.items()):
        photo = folder / f"{talk}.png"
        if not photo.exists():  # other processes may be reading it
            Image.new("RGB", (6, 8), (20 * number, 90, 200)).save(photo)
        for turn in range(length):
            query = Query(
                query_id=f"{talk}-{turn}",
                text=question(talk, turn),
                image=ImageFile(photo),
                answers=(f"It is {talk}{turn}.",),
                group=talk,
                conversation_id=None if talk in alone else talk,
                turn=turn,
                metadata={"reference_query": f"what is {talk}{turn}"} if turn == 1 else {},
            )
            queries[query.query_id] = query
    return Benchmark(name="talks", fingerprint="talks", queries=queries, corpus={}, qrels={})


def contexts_of(benchmark: Benchmark, setting: str = "mm_llm") -> list[Context]:
    return [Context(query_id=each, setting=setting, k=0) for each in benchmark.queries]


def entry(doc_id: str, *entities: tuple[str, object]) -> Document:
    """A hit of an image search."""
    listed = [{"entity_name": name, "entity_attributes": about} for name, about in entities]
    return Document(doc_id=doc_id, metadata={"source": "image_search", "entities": listed})


def page(doc_id: str, title: str, snippet: str) -> Document:
    """A hit of a web search."""
    metadata = {"source": "web_search", "page_name": title}
    return Document(doc_id=doc_id, text=snippet, metadata=metadata)
