"""Contexts: the evidence for each query in the settings of the Visual-RAG paper.

The settings are those of section 5.3 and appendices A and B. Each shows clues, and distractors from
one source (`build_contexts`). Random choices are orders, not samples: each stream ("clue",
"non-clue", "easy") orders a query's documents by a hash of seed, query, stream, draw and document.
Adding or removing a query, a document or a k therefore changes nothing else. The contexts of one
draw are nested over k and m: comparisons across them are paired.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product, zip_longest

import pandas as pd
from PIL import Image

from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import clip_cutoffs, common_cutoffs
from vrag_kit.types import Benchmark, Context, DocId, Document, LazyImage, QueryId, ordered

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
        """Clip `ks` to `clues` and the documents of the query with the fewest (a warning says
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
    return Distractors("documents in the run that are no clue", counts, _first(ranked))


def _first(documents: Mapping[QueryId, Sequence[DocId]]) -> Take:
    return lambda query_id, _, n: documents[query_id][:n]


def ranked_documents(benchmark: Benchmark, run: pd.DataFrame) -> dict[QueryId, list[DocId]]:
    """Return each query's documents in a run, best first; an empty list for a query without any."""
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
    as with a shallow run, all kinds are clipped to that number, and a warning is logged. Raises
    `VragError` if a kind has none, and for a query without a clue.
    """
    sources = {
        ELSEWHERE: easy_negatives(benchmark, seed),
        SAME: hard_negatives(benchmark, seed),
        NEAR: top_ranked(benchmark, run),
    }
    for source in sources.values():
        most = source.clip([most + 1])[0] - 1
    clues = {each: clues_of_draw(benchmark, each, 0, seed, 1) for each in benchmark.queries}
    sets: dict[str, Others] = {BLANK: dict.fromkeys(benchmark.queries, ())}
    sets[DUPLICATE] = {query_id: tuple(clue * most) for query_id, clue in clues.items()}
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
    clues = chain.from_iterable(map(benchmark.relevant, benchmark.queries))
    images = {doc_id: benchmark.corpus[doc_id].image for doc_id in clues}
    return benchmark.with_documents(
        Document(doc_id=blank_id(doc_id), image=BlankImage(image))
        for doc_id, image in images.items()
        if image is not None
    )


def blank_id(doc_id: DocId) -> DocId:
    """Return the id of the blank image that has the size of a document's image."""
    return f"{doc_id}~blank"


def _non_clues(benchmark: Benchmark, query_id: QueryId) -> list[DocId]:
    labels = benchmark.qrels[query_id]
    return [doc_id for doc_id in benchmark.searchable(query_id) if not labels.get(doc_id, 0)]


DRAWS = 5
TOP_K = (1, 3, 5, 7, 10, 15, 20)
ONE_IN_K = (3, 5, 7, 10, 15, 20)
CLUES = (1, 2, 3, 4, 5)
_COUNTS_CLUES = ("m_gt", "m_in_k")
"""Settings whose contexts record their number of clues, `Context.m`."""
_FULL = (DUPLICATE, ELSEWHERE, SAME, NEAR)
"""Kinds of distractors that are never filled up with blanks."""


def build_contexts(
    benchmark: Benchmark,
    setting: str,
    sizes: Sequence[tuple[int, int]],
    take: Take | None = None,
    *,
    draws: int = 1,
    seed: int = 0,
    clue_position: int = 0,
) -> list[Context]:
    """Return a context per query, draw and size: k documents, of which m are clues.

    `sizes` are pairs (k, m). The clues are those of `clues_of_draw`; the other k − m documents are
    the first that `take` returns. Each is ordered once a query and draw, for all sizes.
    `clue_position` is the index of the first clue; −1 puts a single clue last. Raises `VragError`
    for m above k, for a query with fewer than m clues, and as `take` does.
    """
    for k, m in sizes:
        if m > k:
            raise VragError(f"{m} clues do not fit into k = {k} images.")
    most_clues = max((m for _, m in sizes), default=0)
    most_others = max((k - m for k, m in sizes), default=0)
    contexts = []
    for query_id, draw in product(benchmark.queries, range(draws)):
        clues = clues_of_draw(benchmark, query_id, draw, seed, most_clues)
        others = take(query_id, draw, most_others) if take else ()
        for k, m in sizes:
            before = clue_position % (k - m + 1)
            context = Context(
                query_id=query_id,
                setting=setting,
                k=k,
                m=m if setting in _COUNTS_CLUES else None,
                draw=draw,
                doc_ids=(*others[:before], *clues[:m], *others[before : k - m]),
            )
            contexts.append(context)
    return contexts


def zero_shot(benchmark: Benchmark) -> list[Context]:
    """Return one context per query, without images."""
    return build_contexts(benchmark, "zero_shot", [(0, 0)])


def gt_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return one context with a single clue per query and draw."""
    return build_contexts(benchmark, "gt_clue", [(1, 1)], draws=draws, seed=seed)


def non_clue(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return one context with a single non-clue image per query and draw.

    Draw 0 alone is the paper's single run. Raises `VragError` for a query without non-clues.
    """
    take = hard_negatives(benchmark, seed).take
    return build_contexts(benchmark, "non_clue", [(1, 0)], take, draws=draws)


def baseline_contexts(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return the contexts of `zero_shot`, `gt_clue` and `non_clue`; raises as they do."""
    clues = gt_clue(benchmark, draws=draws, seed=seed)
    return zero_shot(benchmark) + clues + non_clue(benchmark, draws=draws, seed=seed)


def gcue_contexts(
    benchmark: Benchmark, run: pd.DataFrame, *, k: int, seed: int = 0
) -> list[Context]:
    """Return the contexts for gCUE at k, and those with the top k of a run, one draw each.

    They are the contexts of `zero_shot`, `gt_clue`, `non_clue`, `one_in_k` and `top_k`. Raises as
    they do.
    """
    contexts = baseline_contexts(benchmark, draws=1, seed=seed)
    contexts += one_in_k(benchmark, ks=[k], draws=1, seed=seed)
    return contexts + top_k(benchmark, run, ks=[k])


def top_k(
    benchmark: Benchmark,
    run: pd.DataFrame,
    *,
    ks: Sequence[int] = TOP_K,
    setting: str = "top_k",
    full_depth: bool = False,
) -> list[Context]:
    """Return contexts with the first k documents of a run, best first.

    With `setting` "text_rag" the documents are passages. A query with fewer retrieved documents
    gets those, possibly none. With `full_depth`, which a comparison over k needs, every k is
    clipped to the fewest documents of any query (a warning is logged); if that is none, raises
    `VragError`.
    """
    ranked = ranked_documents(benchmark, run)
    if full_depth:
        ks = common_cutoffs(benchmark, run, ks)
    return [
        Context(query_id=query_id, setting=setting, k=k, doc_ids=tuple(ranked[query_id][:k]))
        for query_id, k in product(benchmark.queries, ks)
    ]


def first_clue(benchmark: Benchmark, run: pd.DataFrame) -> list[Context]:
    """Return contexts with only the best-ranked clue of a run. They test the model on the very clue
    that top-k shows it. Queries without one are left out.
    """
    contexts = []
    for query_id, ranked in ranked_documents(benchmark, run).items():
        clues = benchmark.relevant(query_id)
        if found := tuple(doc_id for doc_id in ranked if doc_id in clues)[:1]:
            contexts.append(Context(query_id=query_id, setting="first_clue", k=1, doc_ids=found))
    return contexts


def cutoffs_above_one(ks: Sequence[int]) -> list[int]:
    """Return the values of `ks` above 1, at which `one_in_k` shows non-clues.

    Raises `VragError` if there is none.
    """
    if not (above := [k for k in ks if k > 1]):
        raise VragError(f"ks is {list(ks)}; expected a k above 1, which has room beside the clue.")
    return above


def one_in_k(
    benchmark: Benchmark,
    *,
    ks: Sequence[int] = ONE_IN_K,
    draws: int = DRAWS,
    seed: int = 0,
    clue_position: int = 0,
) -> list[Context]:
    """Return contexts with one clue and k − 1 non-clues, the clue first as in the paper.

    The clue of a draw is that of `gt_clue`; the non-clues are the first in the order of `non_clue`.
    `clue_position` moves the clue: 0 is first, −1 last; a position outside the images raises
    `VragError`. k = 1 shows the clue alone. Each k is clipped, for all queries, to what the fewest
    non-clues of a query allow, and a warning is logged. Raises `VragError` for k above 1 and a
    query without non-clues.
    """
    negatives = hard_negatives(benchmark, seed)
    ks = negatives.clip(ks)
    fewest = min(ks)
    if not -fewest <= clue_position < fewest:
        expected = f"-{fewest} to {fewest - 1}, for {fewest} images"
        raise VragError(f"clue_position is {clue_position}; expected {expected}.")
    build = partial(build_contexts, benchmark, "one_in_k", draws=draws, seed=seed)
    return build([(k, 1) for k in ks], negatives.take, clue_position=clue_position)


def one_in_k_easy(
    benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0
) -> list[Context]:
    """Return contexts with the clue of `one_in_k`, first, and k − 1 easy negatives (Table 7).

    Each k is clipped, for all queries, to the images available (a warning is logged). Raises
    `VragError` for k above 1 if there are none.
    """
    negatives = easy_negatives(benchmark, seed)
    sizes = [(k, 1) for k in negatives.clip(ks)]
    take = negatives.take
    return build_contexts(benchmark, "one_in_k_easy", sizes, take, draws=draws, seed=seed)


def clue_position_sweep(
    benchmark: Benchmark, *, ks: Sequence[int] = ONE_IN_K, draws: int = DRAWS, seed: int = 0
) -> dict[str, list[Context]]:
    """Return 1-in-k contexts with the same images and the clue at three positions. The keys are
    "first", "middle" (k // 2 images before it) and "last". k is clipped as in `one_in_k`.
    """
    negatives = hard_negatives(benchmark, seed)
    moved: dict[str, list[Context]] = {"first": [], "middle": [], "last": []}
    for k in negatives.clip(ks):
        for name, position in zip(moved, (0, k // 2, -1), strict=True):
            how = {"draws": draws, "seed": seed, "clue_position": position}
            moved[name] += build_contexts(benchmark, "one_in_k", [(k, 1)], negatives.take, **how)
    return moved


def with_min_clues(benchmark: Benchmark, m: int) -> Benchmark:
    """Return the benchmark with only the queries that have at least `m` clues. Numbers of clues are
    compared on this fixed subset (Table 6). Raises `VragError` if it is empty.
    """
    counts = {query_id: len(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    if (most := max(counts.values())) < m:
        raise VragError(
            f"{benchmark.name}: found at most {most} clues of a query; expected {m}. Set"
            f" `max_clues: {most}` or less."
        )
    return benchmark.subset([query_id for query_id, count in counts.items() if count >= m])


def m_gt(
    benchmark: Benchmark, *, ms: Sequence[int] = CLUES, draws: int = DRAWS, seed: int = 0
) -> list[Context]:
    """Return contexts with m clues and nothing else (Table 6). The clues follow the clue order from
    the draw's position on, so that 1 GT is `gt_clue`. Raises `VragError` for a query with fewer
    than m clues.
    """
    return build_contexts(benchmark, "m_gt", [(m, m) for m in ms], draws=draws, seed=seed)


def m_in_k(
    benchmark: Benchmark,
    *,
    ms: Sequence[int] = CLUES,
    k: int = 10,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Context]:
    """Return contexts with the m clues of `m_gt`, first, and k − m non-clues. The non-clues are the
    first of their order (Table 6, "m-in-10"). m = 1 is `one_in_k`; k is clipped as there, to what
    the smallest m allows.

    Raises `VragError` for a query with fewer than m clues or without the non-clues that it needs,
    and for m above k.
    """
    negatives = hard_negatives(benchmark, seed)
    (k,) = negatives.clip([k], min(ms))
    sizes = [(k, m) for m in ms]
    return build_contexts(benchmark, "m_in_k", sizes, negatives.take, draws=draws, seed=seed)


def clue_with_distractors(
    benchmark: Benchmark, others: Mapping[str, Others], *, ks: Sequence[int], seed: int = 0
) -> dict[tuple[str, str], list[Context]]:
    """Return contexts of k images for each k above 1, by (kind, position of the clue).

    They show whether accuracy is lost by the number of images or by their content. All else is
    equal: each holds the clue of `gt_clue`'s first draw and the first k − 1 of its `others`, padded
    with blanks, and one template serves all, as the setting is "one_in_k". If `distractor_sets`
    found fewer images than the largest k needs, k is clipped. ("none", "first") holds the clue
    alone. Duplicates of the clue have no position, and are listed under "first". Use the contexts
    with `with_blank_images(benchmark)`.
    """
    full = chain.from_iterable(others.get(kind, {}).values() for kind in _FULL)
    most = min((1 + len(documents) for documents in full), default=max(ks))
    sizes = [(k, 1) for k in sorted({min(k, most) for k in ks} - {1})]
    build = partial(build_contexts, benchmark, "one_in_k", seed=seed)
    alone = build([(1, 1)])
    blanks = {context.query_id: blank_id(*context.doc_ids) for context in alone}
    contexts = {(ALONE, "first"): alone}
    for kind, shown in others.items():
        padded = {each: (*shown[each], *[blank] * max(ks)) for each, blank in blanks.items()}
        contexts[kind, "first"] = build(sizes, _first(padded))
        if kind != DUPLICATE:
            contexts[kind, "last"] = build(sizes, _first(padded), clue_position=-1)
    return contexts
