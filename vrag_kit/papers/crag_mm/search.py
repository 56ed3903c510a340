"""Search pipelines of the settings mm_llm, task_1, task_2 and task_3 (A.5.1): the searches before
each turn, and the evidence that is kept; the control with another image, and oracles that attribute
lost answers to steps of a pipeline (both ours).

Each oracle gives the same arm an annotation that it would otherwise have to find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vrag_kit.analysis import cluster_means
from vrag_kit.benchmarks import entity_names
from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import History, RetrievedEvidence
from vrag_kit.generation.rendering import render
from vrag_kit.generation.rewriting import Rewriter, RewriteResult
from vrag_kit.papers.crag_mm.conversations import conversation_values
from vrag_kit.retrieval import SearchService, annotated_region, with_regions
from vrag_kit.types import Benchmark, Context, DocId, Document, Query, QueryId, ordered

ARMS: Mapping[str, tuple[str, ...]] = {
    "mm_llm": (),
    "task_1": ("image",),
    "task_2": ("image", "web"),
    "task_3": ("image", "web"),
}
"""Maps a setting to its searches. mm_llm and task_3 also get the conversation."""
NOT_REWRITTEN = ("none", "reference")
"""Kinds of web search queries without a model. none: the question itself. reference: the annotated
reference query, where there is one. The others are settings of `REWRITING`, rewritten by a
model that gets the image (as in the authors' code), also the image search results (as in the
paper's text), also the earlier turns (ours).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPipeline:
    """Searches for evidence before each turn, as its setting requires; implements `TurnSearch`."""

    images: SearchService | None = None
    """Image search by a query's image; None where no setting needs it."""
    web: SearchService | None = None
    """Web search by a text query; None where no setting needs it."""
    image_k: int = 30
    web_k: int = 50
    similarity_threshold: float = 0.75
    """Minimum similarity (exclusive) of an image search entry."""
    rewrite: str = "none"
    """One of `NOT_REWRITTEN`, or a setting of `REWRITING`."""
    rewriter: Rewriter | None = None
    """Model that rewrites questions, where `rewrite` needs one."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a `rewrite` that needs a model without one."""
        if self.rewrite not in NOT_REWRITTEN and self.rewriter is None:
            raise VragError(
                f"rewrite is {self.rewrite!r}, but there is no rewriter. Name a model, or set"
                ' rewrite to "none" or "reference".'
            )

    def _services(self, arm: str) -> dict[str, SearchService]:
        """The available searches of a setting, by kind."""
        searches = {"image": self.images, "web": self.web}
        return {kind: found for kind in ARMS[arm] if (found := searches[kind])}

    @property
    def found_by(self) -> dict[str, str]:
        """Maps each setting to the names of its available searches, "field-guide-egocentric +
        bm25".
        """
        services = {arm: self._services(arm).values() for arm in ARMS}
        return {arm: " + ".join(each.name for each in of) for arm, of in services.items()}

    def contexts(self, benchmark: Benchmark, arms: Sequence[str]) -> list[Context]:
        """Returns one context per query and setting, to which `find` adds documents at each turn.

        k is the number of documents requested from image and web search together. Raises
        `VragError` for a setting without its search, `KeyError` for an unknown one.
        """
        ks, contexts = {"image": self.image_k, "web": self.web_k}, []
        for arm in arms:
            for kind in set(ARMS[arm]) - set(self._services(arm)):
                raise VragError(f"{arm} has no {kind} search; name one, or leave {arm} out.")
            k = sum(ks[kind] for kind in ARMS[arm])
            contexts += [Context(query_id=each, setting=arm, k=k) for each in benchmark.queries]
        return contexts

    def find(
        self, benchmark: Benchmark, contexts: Sequence[Context], histories: Sequence[History]
    ) -> list[RetrievedEvidence]:
        """Returns each turn's evidence: kept image search entries by rank, then web pages by rank,
        as its setting requires. A setting has one context of a query, as from `contexts`.

        Entries without a named entity, and pages without title or snippet, have no text to show:
        they are skipped, and counted. A turn fails if the rewriter fails on its question.
        """
        found: dict[tuple[str, QueryId], RetrievedEvidence] = {}
        turns = list(zip(contexts, histories, strict=True))
        for arm in dict.fromkeys(context.setting for context in contexts):
            mine = [turn for turn in turns if turn[0].setting == arm]
            queries = [benchmark.queries[context.query_id] for context, _ in mine]
            evidence = self._found(arm, queries, [history for _, history in mine])
            found |= {(arm, name): each for name, each in evidence.items()}
        return [found[context.setting, context.query_id] for context in contexts]

    def _found(
        self, arm: str, queries: Sequence[Query], histories: Sequence[History]
    ) -> dict[QueryId, RetrievedEvidence]:
        """The evidence of each question in one setting."""
        services = self._services(arm)
        found = {query.query_id: RetrievedEvidence() for query in queries}
        if images := services.get("image"):
            run = images.search(queries, self.image_k)
            found |= _shown(run[run["score"] > self.similarity_threshold], images)
        if not (web := services.get("web")):
            return found
        rewritten = self._rewritten(queries, list(found.values()), histories)
        pairs = list(zip(queries, rewritten, strict=True))
        asked = [replace(query, text=new.text) for query, new in pairs if new.failure is None]
        pages = _shown(web.search(asked, self.web_k), web)
        for query, new in pairs:
            first, then = found[query.query_id], pages.get(query.query_id, RetrievedEvidence())
            found[query.query_id] = RetrievedEvidence(
                documents=first.documents + then.documents,
                n_skipped=first.n_skipped + then.n_skipped,
                search_query=new.text,
                rewrite_status=new.outcome,
                failure=new.failure,
            )
        return found

    def _rewritten(
        self,
        queries: Sequence[Query],
        entries: Sequence[RetrievedEvidence],
        histories: Sequence[History],
    ) -> list[RewriteResult]:
        """The web search query of each question, from the entries found for it and its history."""
        if self.rewrite == "none":
            return [RewriteResult(text=query.text, outcome="") for query in queries]
        if self.rewrite == "reference" or self.rewriter is None:
            results = []
            for query in queries:
                words = str(query.metadata.get("reference_query") or "")
                outcome = "reference" if words else "no_reference"
                results.append(RewriteResult(text=words or query.text, outcome=outcome))
            return results
        template = self.rewriter.prompts.template(self.rewrite)
        prompts = []
        for query, hits, history in zip(queries, entries, histories, strict=True):
            documents = hits.documents if "retrieved" in self.rewrite else ()
            earlier = history if "history" in self.rewrite else ()
            prompts.append(render(template, query, documents, earlier))
        return self.rewriter.rewrite(prompts, [query.text for query in queries])


def _shown(run: pd.DataFrame, service: SearchService) -> dict[QueryId, RetrievedEvidence]:
    """Maps each query to its documents that have text to show, by rank."""
    found = {}
    for query_id, part in run.sort_values("rank").groupby("query_id", sort=False):
        documents = [service.corpus[doc_id] for doc_id in part["doc_id"]]
        shown = tuple(filter(_has_text, documents))
        n_skipped = len(documents) - len(shown)
        found[str(query_id)] = RetrievedEvidence(documents=shown, n_skipped=n_skipped)
    return found


def _has_text(document: Document) -> bool:
    """Whether an entry names an entity, or a page has a title and a snippet."""
    page = document.text and document.metadata.get("page_name")
    return any(entity_names(document)) or bool(page)


_OF_IMAGES = ("egocentric", "image_quality", "image_size", "region", "where")
"""Metadata of a query that describe its image."""
_SEED = 0


def with_mismatched_images(benchmark: Benchmark) -> Benchmark:
    """Replaces every query's image, and its metadata, by those of another session; all turns of a
    conversation get the same one.

    The new image shows another entity, where the data name entities, and is of the same domain if
    possible. The session determines the choice. Questions, answers and groups stay. Raises
    `VragError` for a session without a possible replacement.
    """
    first: dict[str, Query] = {}
    for query in benchmark.queries.values():
        first.setdefault(query.group, query)
    lenders, queries = {group: _lender(query, first) for group, query in first.items()}, {}
    for name, query in benchmark.queries.items():
        lender = lenders[query.group]
        metadata = {key: each for key, each in query.metadata.items() if key not in _OF_IMAGES}
        metadata |= {key: lender.metadata[key] for key in _OF_IMAGES if key in lender.metadata}
        queries[name] = replace(query, image=lender.image, metadata=metadata)
    return benchmark.derive(f"other pictures, seed {_SEED}", queries=queries)


def _lender(query: Query, first: Mapping[str, Query]) -> Query:
    """A query of another session, whose image may replace this one's."""
    others = [other for other in first.values() if other.group != query.group]
    if query.entity:
        others = [other for other in others if other.entity != query.entity]
    if not others:
        raise VragError(
            f"session {query.group!r}: no other shows another entity; its picture cannot be"
            " swapped. Ask several sessions."
        )
    domain = query.metadata.get("domain")
    alike = [other for other in others if other.metadata.get("domain") == domain] or others
    chosen = ordered([other.group for other in alike], _SEED, query.group, "other picture")[0]
    return first[chosen]


ORACLES = (
    *("no oracle", "oracle region", "oracle entity", "oracle query"),
    "oracle entity and query",
)
"""The arm without an oracle; image search with the annotated region; only the entries of the
annotated entity as evidence; web search for the reference query; the last two together.
"""
LADDER = tuple(oracle for oracle in ORACLES if oracle != "oracle query")
"""Oracles in order; each adds information to the one before."""
PARTS = ("region", "entity", "query", "unrecovered")
"""The parts of the loss: by step of `LADDER`, and after the last."""


def oracle_entity_search(service: SearchService) -> SearchService:
    """Returns an image search that finds the first k entries of each query's annotated entity, with
    a score above any threshold, whatever the image; none if the graph lacks it, or the data do not
    name it.
    """
    of_entity: dict[str, list[DocId]] = {}
    for doc_id, document in service.corpus.items():
        for name in entity_names(document):
            of_entity.setdefault(_plain(name), []).append(doc_id)

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        rows = []
        for query in queries:
            entries = of_entity.get(_plain(query.entity), [])[:k]
            rows += [(query.query_id, name, rank, 2.0) for rank, name in enumerate(entries, 1)]
        return pd.DataFrame(rows, columns=["query_id", "doc_id", "rank", "score"])

    name, fingerprint = f"{service.name}-oracle-entity", f"{service.fingerprint}-oracle-entity"
    return replace(service, name=name, fingerprint=fingerprint, ranker=rank)


def sample_questions(benchmark: Benchmark, count: int | None) -> Benchmark:
    """Samples `count` single questions, or whole conversations, of the benchmark at random; all if
    it is None. For questions that are asked several times: with every oracle, or with mismatched
    images.
    """
    groups = ordered(dict.fromkeys(benchmark.groups.values()), 0, "oracles")
    wanted = set(groups[:count])
    return benchmark.subset([name for name, group in benchmark.groups.items() if group in wanted])


def oracle_pipelines(arms: SearchPipeline, *, margin: float = 0.0) -> dict[str, SearchPipeline]:
    """Maps each of `ORACLES` to a search pipeline with that oracle; the region has a `margin` on
    each side, as in `with_regions`. Raises `VragError` without an image search.
    """
    if arms.images is None:
        raise VragError("oracle_pipelines: no image search; name an image_service.")
    region = with_regions(arms.images, annotated_region, margin=margin)
    entity = oracle_entity_search(arms.images)
    reference = replace(arms, rewrite="reference", rewriter=None)
    pipelines = [arms, replace(arms, images=region), replace(arms, images=entity)]
    pipelines += [reference, replace(reference, images=entity)]
    return dict(zip(ORACLES, pipelines, strict=True))


def truthfulness_budget(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Computes the truthfulness lost in each of `PARTS`. Columns: model, part, metric
    ("truthfulness_lost"), value, ci_low, ci_high, n, n_failed. Values are in [−2, 2] and add up to
    1 − truthfulness.

    `judged` has one arm's answers with each of `ORACLES` as their setting. All parts but the last
    are paired differences and may be negative; random effects cancel in the mean. A question, or
    conversation, without a score in one of `LADDER` is excluded from all parts, and counted.
    """
    values = conversation_values(judged, benchmark, by=["model", "setting"])
    keys = ["model", "query_id", "group"]
    steps = values.pivot(index=keys, columns="setting", values="value")[list(LADDER)]
    known = steps.notna().all(axis=1)
    lost = steps.assign(correct=1.0).diff(axis=1).iloc[:, 1:].where(known)
    rows = lost.set_axis(list(PARTS), axis=1).melt(var_name="part", ignore_index=False)
    rows = rows.reset_index().assign(metric="truthfulness_lost", score_min=-2.0, score_max=2.0)
    return cluster_means(rows, ["model", "part", "metric"])


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
