"""Clues and distractors of queries, in the orders in which contexts show them.

Random choices are orders, not samples: each stream ("clue", "non-clue", "easy") orders a query's
documents by a hash of seed, query, stream, draw and document. Adding or removing a query, a
document or a k therefore changes nothing else.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import pandas as pd
from PIL import Image

from vrag_kit.depths import clip_cutoffs
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.order import ordered
from vrag_kit.types import Benchmark, DocId, Document, LazyImage, QueryId

ALONE = "none"
BLANK = "blank"
DUPLICATE = "duplicate"
ELSEWHERE = "other_species"
SAME = "same_species"
NEAR = "near_miss"
CONTRADICTION = "contradiction"
Others = Mapping[QueryId, tuple[DocId, ...]]
"""Query → the distractors shown with its clue, in order."""
Take = Callable[[QueryId, int, int], Sequence[DocId]]
"""Maps a query, a draw and a number n to the query's first n distractors."""


@dataclass(frozen=True, slots=True)
class Distractors:
    """A source of distractors, such as the hard negatives of each query."""

    what: str
    """What they are, for messages."""
    counts: Mapping[QueryId, int]
    """Query → number of documents that the source has for it."""
    first: Take
    """The first documents in the order of the draw; fewer if the source has fewer."""

    def take(self, query_id: QueryId, draw: int, n: int) -> Sequence[DocId]:
        """Return the first n documents; raises `VragError` if there are fewer."""
        found = self.first(query_id, draw, n) if n else ()
        if len(found) < n:
            raise VragError(
                f"query {query_id!r}: found {len(found)} {self.what}; expected {n}. Use a smaller"
                " k, or leave the query out with `benchmark.subset(query_ids)`."
            )
        return found

    def clip(self, ks: Sequence[int], clues: int = 1) -> list[int]:
        """Clip `ks` to `clues` and the documents of the query with the fewest (a printed line says
        so), but not below one document: `take` raises where there is none.
        """
        fewest = min(self.counts, key=lambda query_id: self.counts[query_id])
        there = f"query {fewest!r} has {self.counts[fewest]} {self.what}"
        return clip_cutoffs(ks, clues + max(self.counts[fewest], 1), there)


def hard_negatives(benchmark: Benchmark, seed: int) -> Distractors:
    """Return the non-clues: candidates of a query without a positive label, in random order."""
    counts = {query_id: len(_non_clues(benchmark, query_id)) for query_id in benchmark.queries}

    def first(query_id: QueryId, draw: int, n: int) -> list[DocId]:
        return ordered(_non_clues(benchmark, query_id), seed, query_id, "non-clue", draw)[:n]

    return Distractors("images that are no clue", counts, first)


def easy_negatives(benchmark: Benchmark, seed: int) -> Distractors:
    """Return the judged images of other groups (species). The groups are in random order, and each
    gives one image in turn, so that a group recurs only after all others.
    """
    images: dict[str, dict[DocId, None]] = defaultdict(dict)
    for query_id, group in benchmark.groups.items():
        images[group].update(dict.fromkeys(benchmark.qrels[query_id]))
    total = sum(map(len, images.values()))
    counts = {name: total - len(images[group]) for name, group in benchmark.groups.items()}

    def first(query_id: QueryId, draw: int, n: int) -> list[DocId]:
        own = benchmark.queries[query_id].group
        names = (seed, query_id, "easy", draw)
        others = [group for group in ordered(images, *names) if group != own][:n]
        in_turn = zip_longest(*[ordered(images[group], *names) for group in others])
        return [doc_id for doc_id in chain.from_iterable(in_turn) if doc_id is not None][:n]

    return Distractors(f"images of other {benchmark.groups_are}", counts, first)


def top_ranked(benchmark: Benchmark, run: pd.DataFrame) -> Distractors:
    """Return the documents of a run that are no clue, best first."""
    ranked = ranked_documents(benchmark, run)
    for query_id in benchmark.queries:
        clues = benchmark.relevant(query_id)
        ranked[query_id] = [doc_id for doc_id in ranked[query_id] if doc_id not in clues]
    counts = {query_id: len(documents) for query_id, documents in ranked.items()}
    what = "documents in the run that are no clue"
    return Distractors(what, counts, lambda query_id, _, n: ranked[query_id][:n])


def ranked_documents(benchmark: Benchmark, run: pd.DataFrame) -> dict[QueryId, list[DocId]]:
    """Return each query's documents in a run, best first; an empty list for a query without any.

    Raises `VragError` for a run without the columns query_id, doc_id and rank.
    """
    require_columns(run, ["query_id", "doc_id", "rank"], "the run")
    best_first = run.sort_values("rank", kind="stable")
    ranked = best_first.groupby("query_id", sort=False)["doc_id"].agg(list)
    return {query_id: ranked.get(query_id, []) for query_id in benchmark.queries}


def clues_of_draw(
    benchmark: Benchmark, query_id: QueryId, draw: int, seed: int, n: int
) -> list[DocId]:
    """Return n clues of a query. Draw r starts at item r mod R of its R clues in random order, so
    that the first R draws differ (footnote 4). Raises `VragError` if there are fewer than n.
    """
    if not n:
        return []
    clues = ordered(benchmark.relevant(query_id), seed, query_id, "clue")
    if len(clues) < n:
        raise VragError(
            f"query {query_id!r}: found {len(clues)} clues; expected {n}. Leave such queries out"
            f" with `with_min_clues(benchmark, {n})`."
        )
    start = draw % len(clues)
    return (clues[start:] + clues[:start])[:n]


def distractor_sets(
    benchmark: Benchmark, run: pd.DataFrame, *, most: int, seed: int = 0
) -> dict[str, Others]:
    """Return, for each kind of distractor, up to `most` images per query.

    blank: none, since `clue_with_distractors` pads with blanks; duplicate: the clue itself;
    other_species: images of other groups (species); same_species: candidates of the query that are
    no clue; near_miss: those of them that `run` ranks best, best first. If a kind has fewer images,
    as with a shallow run, all kinds are clipped to that number, and a printed line says so. Raises
    `VragError` if a kind has none, and for a query without a clue.
    """
    sources = {
        ELSEWHERE: easy_negatives(benchmark, seed),
        SAME: hard_negatives(benchmark, seed),
        NEAR: top_ranked(benchmark, run),
    }
    for source in sources.values():
        most = source.clip([most + 1])[0] - 1
    sets: dict[str, Others] = {BLANK: dict.fromkeys(benchmark.queries, ())}
    sets[DUPLICATE] = {
        query_id: (clues_of_draw(benchmark, query_id, 0, seed, 1)[0],) * most
        for query_id in benchmark.queries
    }
    for kind, source in sources.items():
        sets[kind] = {each: tuple(source.take(each, 0, most)) for each in benchmark.queries}
    return sets


@dataclass(frozen=True, slots=True)
class BlankImage:
    """A grey image of the size of another one; implements `LazyImage`."""

    image: LazyImage

    @property
    def where(self) -> str:
        """Identifies the blank image by the original's `where`."""
        return f"blank like {self.image.where}"

    @property
    def stamp(self) -> str:
        """Changes with the original image's stamp."""
        return f"blank {self.image.stamp}"

    def data(self) -> bytes:
        """Return the image as a PNG file."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()

    def open(self) -> Image.Image:
        """Return a mid-grey RGB image of the original's size."""
        return Image.new("RGB", self.image.open().size, (128, 128, 128))


def with_blank_images(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with a blank image (`blank_id`) added for every clue. The contexts of
    `clue_with_distractors` need it.
    """
    blanks: list[Document] = []
    for query_id in benchmark.queries:
        for doc_id in benchmark.relevant(query_id):
            image = benchmark.corpus[doc_id].image
            if image is not None:
                blanks.append(Document(doc_id=blank_id(doc_id), image=BlankImage(image)))
    return benchmark.with_documents(blanks)


def blank_id(doc_id: DocId) -> DocId:
    """Return the id of the blank image that has the size of a document's image."""
    return f"{doc_id}~blank"


def _non_clues(benchmark: Benchmark, query_id: QueryId) -> list[DocId]:
    labels = benchmark.qrels[query_id]
    return [doc_id for doc_id in benchmark.searchable(query_id) if not labels.get(doc_id, 0)]
