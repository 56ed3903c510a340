"""Settings of MRAG-Bench (Tables 3 and 7, Figure 5) as contexts of examples, and questions with
rotated options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.contexts import ranked_documents, top_ranked
from vrag_kit.generation.prompts import PromptSet, open_prompt_set, read_prompts
from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.retrieval.runs import common_cutoffs, make_run
from vrag_kit.types import Benchmark, Context, DocId, Query, QueryId, ordered

TOP = 5
"""Examples per question (section 3.1); one in the scenario "incomplete"."""
QUESTIONS = {
    "angle": 322,
    "partial": 246,
    "scope": 102,
    "occlusion": 108,
    "temporal": 149,
    "deformation": 102,
    "incomplete": 102,
    "biological": 102,
    "others": 120,
}
"""Number of questions of each scenario (Figure 3 and Table 3): the whole numbers behind Figure 2's
shares.
"""
ASPECTS = {
    "perspective": ("angle", "partial", "scope", "occlusion"),
    "transformative": ("temporal", "deformation", "incomplete", "biological"),
    "others": ("others",),
}
"""Maps each aspect to its scenarios."""
ASPECT_OF = dict(chain.from_iterable(product(names, [each]) for each, names in ASPECTS.items()))
"""Maps each scenario to its aspect."""


def no_rag(benchmark: Benchmark) -> list[Context]:
    """Returns contexts without examples, one per query."""
    return _examples(benchmark, "no_rag", dict.fromkeys(benchmark.queries, ()), k=0)


def gt_rag(benchmark: Benchmark, *, k: int = TOP) -> list[Context]:
    """Returns contexts with the first k ground-truth images, in the order of the row; one where the
    scenario is "incomplete". A query with fewer gets those.
    """
    return _examples(benchmark, "gt_rag", _gold(benchmark), k)


def retrieved_rag(
    benchmark: Benchmark, run: pd.DataFrame | None = None, *, k: int = TOP
) -> list[Context]:
    """Returns contexts with the first k documents of a run, best first, or of the row's own, the
    paper's CLIP; one where the scenario is "incomplete".

    k is reduced, for all queries, to the fewest documents of any query that is shown k (a printed
    line says so). Raises `VragError` for a query without any.
    """
    run = shipped_run(benchmark) if run is None else run
    common_cutoffs(benchmark, run, [1])  # raises for a query without documents
    several = [name for name, query in benchmark.queries.items() if n_examples_shown(query, k) == k]
    if several:
        (k,) = common_cutoffs(benchmark.subset(several), run, [k])
    return _examples(benchmark, "retrieved_rag", ranked_documents(benchmark, run), k)


def shipped_run(benchmark: Benchmark) -> pd.DataFrame:
    """Returns the retrieved documents of the rows, the paper's CLIP, as a run, best first."""
    queries = benchmark.queries.values()
    return ranked_run({query.query_id: query.metadata.get("retrieved", ()) for query in queries})


def ranked_run(documents: Mapping[QueryId, Iterable[DocId]]) -> pd.DataFrame:
    """Returns a run with each query's documents, best first."""
    rows: list[tuple[QueryId, DocId, float]] = []
    for query_id, ranked in documents.items():
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(ranked)]
    return make_run(rows)


def _examples(
    benchmark: Benchmark, setting: str, documents: Mapping[QueryId, Sequence[DocId]], k: int
) -> list[Context]:
    """One context per query with the first k of its documents, or the first alone."""
    contexts = []
    for query_id, query in benchmark.queries.items():
        shown = tuple(documents[query_id][: n_examples_shown(query, k)])
        contexts.append(Context(query_id=query_id, setting=setting, k=k, doc_ids=shown))
    return contexts


def _gold(benchmark: Benchmark) -> dict[QueryId, tuple[DocId, ...]]:
    return {query_id: benchmark.relevant(query_id) for query_id in benchmark.queries}


def gt_rag_by_count(
    benchmark: Benchmark,
    more: Mapping[QueryId, Sequence[DocId]] | None = None,
    *,
    ks: Sequence[int],
    draws: int,
    seed: int = 0,
) -> list[Context]:
    """Returns contexts with k ground-truth images in random order (Figure 5, right; three draws).

    Images are the row's own and from `more`, other images of the same object, which the rows do not
    have: without them no query has more than five. The contexts of a draw are nested over k.
    Queries with fewer than the largest k are excluded, for the same queries at all k; raises
    `VragError` if none is left.
    """
    pools = {
        query_id: list(dict.fromkeys([*gold, *(more or {}).get(query_id, ())]))
        for query_id, gold in _gold(benchmark).items()
    }
    deep = [query_id for query_id, pool in pools.items() if len(pool) >= max(ks)]
    if not deep:
        raise VragError(
            f"{benchmark.name}: no query has {max(ks)} ground-truth images. Give `more`."
        )
    contexts = []
    for query_id, draw in product(deep, range(draws)):
        order = tuple(ordered(pools[query_id], seed, query_id, "gt", draw))
        arm = Context(query_id=query_id, setting="m_gt", draw=draw, k=0, doc_ids=())
        contexts += [replace(arm, k=k, m=k, doc_ids=order[:k]) for k in ks]
    return contexts


def gt_at_each_position(
    benchmark: Benchmark, run: pd.DataFrame, *, k: int = TOP
) -> dict[int, list[Context]]:
    """Maps each position from 1 to k to one context per query: its first ground-truth image at that
    position, among the first k − 1 other images of the run, in their order.

    Only the position differs. Raises `VragError` for a query with too few others in the run.
    """
    others = top_ranked(benchmark, run)
    places: dict[int, list[Context]] = {place: [] for place in range(1, k + 1)}
    for query_id in benchmark.queries:
        gold, rest = benchmark.relevant(query_id)[0], others.take(query_id, 0, k - 1)
        for place, contexts in places.items():
            shown = (*rest[: place - 1], gold, *rest[place - 1 :])
            contexts.append(Context(query_id=query_id, setting="one_in_k", k=k, doc_ids=shown))
    return places


def reversed_contexts(contexts: Iterable[Context]) -> list[Context]:
    """Returns the same contexts with their documents in reverse order."""
    return [replace(context, doc_ids=context.doc_ids[::-1]) for context in contexts]


def rotate_options(benchmark: Benchmark, by: int) -> Benchmark:
    """Returns the same questions with every option moved by `by` positions: what was (A) is (B)
    when `by` is 1, and the last is (A). Letters in the metadata change too.
    """
    queries = {}
    for query_id, query in benchmark.queries.items():
        start = -by % len(query.choices) if query.choices else 0
        queries[query_id] = with_choices(query, (*query.choices[start:], *query.choices[:start]))
    return benchmark.derive(f"options rotated by {by}", queries=queries)


def with_choices(query: Query, choices: tuple[str, ...]) -> Query:
    """Returns the query with these options, and the letter of the correct one in its metadata."""
    changed = replace(query, choices=choices)
    metadata = {**query.metadata, "letter": correct_letters(changed)}
    return replace(changed, metadata=metadata)


def sample_per_scenario(benchmark: Benchmark, count: int | None, *, seed: int = 0) -> Benchmark:
    """Samples at most `count` questions of each scenario by `seed`; all of them if
    `count` is None.
    """
    if count is None:
        return benchmark
    of_scenario: dict[str, list[QueryId]] = {}
    for query_id, query in benchmark.queries.items():
        of_scenario.setdefault(query.metadata["scenario"], []).append(query_id)
    samples = [ordered(ids, seed, "few of each")[:count] for ids in of_scenario.values()]
    return benchmark.subset(set(chain.from_iterable(samples)))


def n_examples_shown(query: Query, k: int) -> int:
    """Returns the number of examples shown for a question at a given k."""
    return min(k, 1) if query.metadata.get("scenario") == "incomplete" else k


PROMPT_SETS = {
    name: read_prompts(Path(__file__).with_name(f"prompts_{name}.yaml"))
    for name in ("paper", "code")
}
"""Maps a parameter's value to its prompts. Both show the query's image first, then examples in
order, and have the templates alone, examples, passages, and examples and passages; also for the
kit's own settings.
"""


def load_prompts(prompt_set: str) -> PromptSet:
    """Returns the prompts that the parameter `prompt_set` names: one of `PROMPT_SETS`, or a custom
    YAML file, which defaults to the paper's prompts.

    Raises `VragError` as `open_prompt_set` does.
    """
    return open_prompt_set(prompt_set, PROMPT_SETS, "prompt_set")


def retrieved_text(texts: Benchmark, run: pd.DataFrame, *, k: int = TOP) -> list[Context]:
    """Returns contexts with the first k passages of a run over `texts`, best first; one where the
    scenario is "incomplete", as for images. Raises `VragError` for a query with fewer.
    """
    contexts = retrieved_rag(texts, run, k=k)
    return [replace(context, setting="retrieved_text") for context in contexts]


def gt_text(texts: Benchmark) -> list[Context]:
    """Returns contexts with each query's first relevant passage; raises `VragError` without one."""
    without = [query_id for query_id in texts.queries if not texts.relevant(query_id)]
    if without:
        raise VragError(
            f"{len(without)} of {len(texts.queries)} queries have no passage that answers them, the"
            f" first {without[0]!r}. Leave them out with `benchmark.subset(query_ids)`."
        )
    return _examples(texts, "gt_text", _gold(texts), k=1)


def with_passages(benchmark: Benchmark, texts: Benchmark) -> Benchmark:
    """Adds the passages and labels of `texts` to the benchmark, for contexts with images, passages
    or both.
    """
    labels = {each: {**benchmark.qrels[each], **texts.qrels[each]} for each in benchmark.queries}
    return replace(benchmark.with_documents(texts.corpus.values()), qrels=labels)


def gt_image_and_text(benchmark: Benchmark, texts: Benchmark, *, k: int = TOP) -> list[Context]:
    """Returns contexts with the images of `gt_rag`, then the passage of `gt_text`, for
    `with_passages(benchmark, texts)`.
    """
    return [
        replace(images, setting="gt_image_and_text", doc_ids=(*images.doc_ids, *text.doc_ids))
        for images, text in zip(gt_rag(benchmark, k=k), gt_text(texts), strict=True)
    ]


def mismatched_rag(benchmark: Benchmark, *, k: int = TOP, seed: int = 0) -> list[Context]:
    """Returns contexts as `gt_rag`, except for the images: they are ground-truth images of another
    query, none of which is its own, and at most as many as its own.

    The other query is of another group and has another correct answer. It has the same question
    text in the same scenario if possible; else the same scenario and image type (`image_type`),
    else the same scenario. `seed` and the query determine the choice. Raises `VragError` for a
    query without any.
    """
    examples = {}
    for query_id, query in benchmark.queries.items():
        scenario, kind = (query.metadata[name] for name in ("scenario", "image_type"))
        others = [
            other
            for other in benchmark.queries.values()
            if other.metadata["scenario"] == scenario
            and other.group != query.group
            and other.answers != query.answers
        ]
        if not others:
            raise VragError(
                f"query {query_id!r}: no other query of scenario {scenario!r} has another answer."
                " Leave it out with `benchmark.subset(query_ids)`."
            )
        same_text = [other for other in others if other.text == query.text]
        same_kind = [other for other in others if other.metadata["image_type"] == kind]
        nearest = [other.query_id for other in same_text or same_kind or others]
        chosen = ordered(nearest, seed, query_id, "swapped")[0]
        own = benchmark.relevant(query_id)
        foreign = [doc_id for doc_id in benchmark.relevant(chosen) if doc_id not in own]
        examples[query_id] = tuple(foreign[: len(own)])
    return _examples(benchmark, "mismatched_rag", examples, k)
