"""A clue in company of one kind, first or last: whether it is the number of pictures
that costs points, or what they show.

Everything else is held: one clue a query, the same for every kind, and one wording, as
the setting of all these contexts is "one_in_k".
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

import pandas as pd
from PIL import Image

from vrag_kit.depths import cut_to
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.generation.contexts import gt_clue, one_in_k, one_in_k_easy
from vrag_kit.types import Benchmark, Context, DocId, Evidence, LazyImage, QueryId

PLACES = {"first": 0, "last": -1}
"""Where the clue lies among all pictures of a context."""
ALONE = "alone"
BLANK = "blank"
DUPLICATE = "duplicate"
ELSEWHERE = "elsewhere"
SAME = "same"
NEAR = "near"
CONTRADICTION = "contradiction"
_FULL = (DUPLICATE, ELSEWHERE, SAME, NEAR)
"""Kinds that are never filled up with blanks."""
Others = Mapping[QueryId, tuple[DocId, ...]]
"""Query → what stands beside its clue, in order."""


@dataclass(frozen=True, slots=True)
class BlankLike:
    """A grey picture of the size of another; implements `LazyImage`."""

    image: LazyImage

    @property
    def where(self) -> str:
        """Names the other picture."""
        return f"blank like {self.image.where}"

    @property
    def stamp(self) -> str:
        """Changes with the other picture's."""
        return f"blank {self.image.stamp}"

    def data(self) -> bytes:
        """The picture as a PNG file."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()

    def open(self) -> Image.Image:
        """Middle grey, RGB, as large as the other picture."""
        return Image.new("RGB", self.image.open().size, (128, 128, 128))


def with_blanks(benchmark: Benchmark) -> Benchmark:
    """The benchmark with a blank picture for every clue (`blank_id`), to be asked what
    `clue_among` gives.
    """
    blanks: list[Evidence] = []
    for query_id in benchmark.queries:
        for doc_id in benchmark.relevant(query_id):
            image = benchmark.corpus[doc_id].image
            if image is not None:
                blanks.append(Evidence(doc_id=blank_id(doc_id), image=BlankLike(image)))
    return benchmark.with_documents(blanks)


def blank_id(doc_id: DocId) -> DocId:
    """The name of the blank picture that is as large as a document's."""
    return f"{doc_id}~blank"


def company(
    benchmark: Benchmark, run: pd.DataFrame, *, most: int, seed: int = 0
) -> dict[str, Others]:
    """Kind → what up to `most` pictures of it stand beside each query's clue.

    blank: nothing, which `clue_among` fills up; duplicate: the clue itself; elsewhere:
    images of other groups (species); same: candidates of the query that are no clue;
    near: of those the ones that `run` ranks best, first one first. Where there are fewer
    images of some kind, as of a shallow run, all kinds have as few, and a printed line
    says so. Raises `VragError` where there are none.
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


def clue_among(
    benchmark: Benchmark, others: Mapping[str, Others], *, ks: Sequence[int], seed: int = 0
) -> dict[tuple[str, str], list[Context]]:
    """(kind, place of the clue) → contexts of k pictures, for each k above 1: the clue,
    and the first k − 1 of its `others`, filled up with blanks. Where `company` found
    fewer than the largest k needs, k is as small.

    ("alone", "first") has the clue alone. The clue is that of `gt_clue`'s first draw.
    Duplicates of the clue have no place, and stand under "first". Ask them of
    `with_blanks(benchmark)`.
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
    (k,) = cut_to([most + 1], depth + 1, f"the run holds {depth} {held}")
    return {query_id: tuple(documents[: k - 1]) for query_id, documents in found.items()}
