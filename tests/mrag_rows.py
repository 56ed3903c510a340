"""A few questions in MRAG-Bench's form, written by hand: rare ones among them."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from vrag_kit.types import Benchmark, Document, Query


@dataclass(frozen=True)
class Picture:
    """A picture that is never opened."""

    where: str
    stamp: str = ""

    def data(self) -> bytes:
        raise AssertionError(self.where)

    def open(self) -> Image.Image:
        raise AssertionError(self.where)


ASKED = {
    "0": ("angle", "Which animal is this?", "wood_rabbit|Eastern cottontail|Marsh rabbit|hare", 5),
    "1": ("incomplete", "Which key is missing?", "M|N|H|B", 1),
    "2": ("others", "Where was {this} taken?", "EastAsia|SouthEastAsia|Africa|Europe", 5),
    "3": ("partial", "Which lily?", "tiger lily|Turkscap|Toad|Martagon", 5),
}


def four_questions() -> Benchmark:
    """Four questions, the first option right; 5 ground-truth pictures, 1 in Incomplete, 5
    retrieved ones of which the first is ground truth, 6 others.
    """
    queries, qrels, names = {}, {}, []
    for query_id, (scenario, text, options, count) in ASKED.items():
        choices = tuple(options.split("|"))
        shown = [f"gt{query_id}-{place}" for place in range(count)]
        retrieved = [shown[0], *(f"no{query_id}-{place}" for place in range(4))]
        queries[query_id] = Query(
            query_id=query_id,
            text=text,
            image=Picture(f"asked/{query_id}.jpg"),
            answers=(choices[0],),
            choices=choices,
            group=query_id,
            metadata={"scenario": scenario, "letter": "A", "retrieved": retrieved},
        )
        qrels[query_id] = dict.fromkeys(shown, 1)
        names += [*shown, *retrieved[1:], f"no{query_id}-4", f"no{query_id}-5"]
    corpus = {name: Document(doc_id=name, image=Picture(f"corpus/{name}.jpg")) for name in names}
    return Benchmark(name="four", fingerprint="f", queries=queries, corpus=corpus, qrels=qrels)
