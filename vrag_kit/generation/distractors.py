"""Contexts with one clue and distractors of one kind, the clue first or last.

They show whether accuracy is lost by the number of images or by their content. All else is equal: a
query has the same clue for every kind, and one template, as the setting of all is "one_in_k".
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

import pandas as pd
from PIL import Image

from vrag_kit.depths import clip_cutoffs
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.generation.contexts import gt_clue, one_in_k, one_in_k_easy
from vrag_kit.types import Benchmark, Context, DocId, Document, LazyImage, QueryId

PLACES = {"first": 0, "last": -1}
"""Position of the clue among all images of a context."""
ALONE = "none"
BLANK = "blank"
DUPLICATE = "duplicate"
ELSEWHERE = "other_species"
SAME = "same_species"
NEAR = "near_miss"
CONTRADICTION = "contradiction"
_FULL = (DUPLICATE, ELSEWHERE, SAME, NEAR)
"""Kinds that are never filled up with blanks."""
Others = Mapping[QueryId, tuple[DocId, ...]]
"""Query → the distractors shown with its clue, in order."""


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


def distractor_sets(
    benchmark: Benchmark, run: pd.DataFrame, *, most: int, seed: int = 0
) -> dict[str, Others]:
    """Return, for each kind of distractor, up to `most` images per query.

    blank: none, since `clue_with_distractors` pads with blanks; duplicate: the clue itself;
    other_species: images of other groups (species); same_species: candidates of the query that are
    no clue; near_miss: those of them that `run` ranks best, best first. If a kind has fewer images,
    as with a shallow run, all kinds are clipped to that number, and a printed line says so. Raises
    `VragError` if a kind has none.
    """
    clues = {context.query_id: context.doc_ids[0] for context in _first_clues(benchmark, seed)}
    same = one_in_k(benchmark, ks=[most + 1], draws=1, seed=seed)
    elsewhere = one_in_k_easy(benchmark, ks=[same[0].k], draws=1, seed=seed)
    near = _nearest(benchmark, run, elsewhere[0].k - 1)
    most = min(map(len, near.values()))
    return {
        BLANK: dict.fromkeys(benchmark.queries, ()),
        DUPLICATE: {query_id: (clue,) * most for query_id, clue in clues.items()},
        ELSEWHERE: {context.query_id: context.doc_ids[1 : most + 1] for context in elsewhere},
        SAME: {context.query_id: context.doc_ids[1 : most + 1] for context in same},
        NEAR: near,
    }


def clue_with_distractors(
    benchmark: Benchmark, others: Mapping[str, Others], *, ks: Sequence[int], seed: int = 0
) -> dict[tuple[str, str], list[Context]]:
    """Return contexts of k images for each k above 1, by (kind, position of the clue).

    They hold the clue and the first k − 1 of its `others`, padded with blanks. If `distractor_sets`
    found fewer images than the largest k needs, k is clipped. ("none", "first") holds the clue
    alone. The clue is that of `gt_clue`'s first draw. Duplicates of the clue have no position, and
    are listed under "first". Use the contexts with `with_blank_images(benchmark)`.
    """
    clues = _first_clues(benchmark, seed)
    full = chain.from_iterable(others.get(kind, {}).values() for kind in _FULL)
    most = min((1 + len(documents) for documents in full), default=max(ks))
    numbers = sorted({min(k, most) for k in ks} - {1})
    arms = {(ALONE, "first"): one_in_k(benchmark, ks=[1], draws=1, seed=seed)}
    for kind, beside in others.items():
        places = ["first"] if kind == DUPLICATE else list(PLACES)
        for place in places:
            arms[kind, place] = [
                _among(context, beside[context.query_id], k, place)
                for context, k in product(clues, numbers)
            ]
    return arms


def _first_clues(benchmark: Benchmark, seed: int) -> list[Context]:
    return gt_clue(benchmark, draws=1, seed=seed)


def _among(context: Context, others: Sequence[DocId], k: int, place: str) -> Context:
    """The clue of a context first or last among k pictures."""
    (clue,) = context.doc_ids
    beside = (*others[: k - 1], *[blank_id(clue)] * (k - 1 - len(others)))
    shown = (clue, *beside) if place == "first" else (*beside, clue)
    return Context(query_id=context.query_id, setting="one_in_k", k=k, doc_ids=shown)


def _nearest(benchmark: Benchmark, run: pd.DataFrame, most: int) -> Others:
    """The best ranked documents of each query that are no clue, as many for all."""
    require_columns(run, ["query_id", "doc_id", "rank"], "company")
    found: dict[QueryId, list[DocId]] = {query_id: [] for query_id in benchmark.queries}
    clues = {query_id: set(benchmark.relevant(query_id)) for query_id in found}
    ranked = run.sort_values("rank")[["query_id", "doc_id"]]
    for query_id, doc_id in ranked.itertuples(index=False):
        if query_id in found and doc_id not in clues[query_id]:
            found[query_id].append(doc_id)
    fewest = min(found, key=lambda query_id: len(found[query_id]))
    depth = len(found[fewest])
    held = f"documents for query {fewest!r} that are no clue"
    if most and not depth:
        raise VragError(
            f"the run holds no {held}, so nothing of it can stand beside the clue. Search deeper,"
            " or leave the query out with `benchmark.subset(query_ids)`."
        )
    (k,) = clip_cutoffs([most + 1], depth + 1, f"the run holds {depth} {held}")
    return {query_id: tuple(documents[: k - 1]) for query_id, documents in found.items()}
