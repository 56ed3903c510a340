"""Search pipelines of the settings mm_llm, task_1, task_2 and task_3 (A.5.1): the searches before
each turn, and the evidence that is kept.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vrag_kit.benchmarks import entity_names
from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import History, RetrievedEvidence
from vrag_kit.generation.rendering import render
from vrag_kit.generation.rewriting import Rewriter, RewriteResult
from vrag_kit.judging import Judge, TruthfulnessRuleJudge
from vrag_kit.judging.answer_metrics import has_new_words
from vrag_kit.judging.text import normalized_words
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.entity_hit_rate import Pair, Relevance
from vrag_kit.types import Benchmark, Context, Document, Query, QueryId, ordered

IMAGE_K = 30
WEB_K = 50
THRESHOLD = 0.75
"""Minimum similarity (exclusive) of an image search entry."""
ARMS: Mapping[str, tuple[str, ...]] = {
    "mm_llm": (),
    "task_1": ("image",),
    "task_2": ("image", "web"),
    "task_3": ("image", "web"),
}
"""Maps a setting to its searches. mm_llm and task_3 also get the conversation."""
SETTING_NAMES = {
    "mm_llm": "no search (MM-LLM)",
    "task_1": "image search (Task 1)",
    "task_2": "image and web search (Task 2)",
    "task_3": "image and web search (Task 3)",
}
"""Setting → its name in figures."""
NOT_REWRITTEN = ("none", "reference")
"""Kinds of web search queries without a model. none: the question itself. reference: the annotated
reference query, where there is one. The others are settings of `rewriting_prompts`, rewritten by a
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
    image_k: int = IMAGE_K
    web_k: int = WEB_K
    threshold: float = THRESHOLD
    rewrite: str = "none"
    """One of `NOT_REWRITTEN`, or a setting of `rewriting_prompts`."""
    rewriter: Rewriter | None = None
    """Model that rewrites questions, where `rewrite` needs one."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a `rewrite` that needs a model without one."""
        if self.rewrite not in NOT_REWRITTEN and self.rewriter is None:
            raise VragError(
                f"rewrite is {self.rewrite!r}, but there is no rewriter. Name a model, or set"
                ' rewrite to "none" or "reference".'
            )

    def _services(self, arm: str) -> dict[str, SearchService | None]:
        """The searches of a setting, by kind."""
        searches = {"image": self.images, "web": self.web}
        return {kind: searches[kind] for kind in ARMS[arm]}

    @property
    def found_by(self) -> dict[str, str]:
        """Maps each setting to the names of its available searches, "field-guide-egocentric +
        bm25".
        """
        services = {arm: self._services(arm).values() for arm in ARMS}
        return {arm: " + ".join(each.name for each in of if each) for arm, of in services.items()}

    def contexts(self, benchmark: Benchmark, arms: Sequence[str]) -> list[Context]:
        """Returns one context per query and setting, to which `find` adds documents at each turn.

        k is the number of documents requested from image and web search together. Raises
        `VragError` for a setting without its search, `KeyError` for an unknown one.
        """
        ks, contexts = {"image": self.image_k, "web": self.web_k}, []
        for arm in arms:
            for kind, service in self._services(arm).items():
                if service is None:
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
        turns: dict[str, dict[QueryId, History]] = defaultdict(dict)
        for context, history in zip(contexts, histories, strict=True):
            turns[context.setting][context.query_id] = history
        found = {}
        for arm, asked in turns.items():
            queries = [benchmark.queries[name] for name in asked]
            evidence = self._found(ARMS[arm], queries, list(asked.values()))
            found[arm] = dict(zip(asked, evidence, strict=True))
        return [found[context.setting][context.query_id] for context in contexts]

    def _found(
        self, searched: Sequence[str], queries: Sequence[Query], histories: Sequence[History]
    ) -> list[RetrievedEvidence]:
        entries: Mapping[QueryId, RetrievedEvidence] = {}
        if self.images is not None and "image" in searched:
            run = self.images.search(queries, self.image_k)
            entries = _shown(run[run["score"] > self.threshold], self.images)
        from_images = [entries.get(query.query_id, RetrievedEvidence()) for query in queries]
        if self.web is None or "web" not in searched:
            return from_images
        rewritten = self._rewritten(queries, from_images, histories)
        pairs = list(zip(queries, rewritten, strict=True))
        asked = [replace(query, text=new.text) for query, new in pairs if new.failure is None]
        pages = _shown(self.web.search(asked, self.web_k), self.web)
        found = []
        for (query, question), first in zip(pairs, from_images, strict=True):
            then = pages.get(query.query_id, RetrievedEvidence())
            both = RetrievedEvidence(
                documents=first.documents + then.documents,
                n_skipped=first.n_skipped + then.n_skipped,
                search_query=question.text,
                rewrite_status=question.outcome,
                failure=question.failure,
            )
            found.append(both)
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
            known = [str(query.metadata.get("reference_query") or "") for query in queries]
            outcomes = ["reference" if each else "no_reference" for each in known]
            texts = [each or query.text for each, query in zip(known, queries, strict=True)]
            pairs = zip(texts, outcomes, strict=True)
            return [RewriteResult(text=text, outcome=outcome) for text, outcome in pairs]
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


def page_relevance(judge: Judge, benchmark: Benchmark, part: str) -> Relevance:
    """Return a function that decides whether a page contains the answer to a query, for `hit_rate`.
    `part` is "snippets", or "full pages" (the snippet of a page without full text).

    A text is judged as if it were the answer. It is relevant if the verdict is the best of the
    judge's scale, and None if that could not be parsed; each text is judged once. The truthfulness
    rule judge expects an answer of one sentence, and is replaced by `answer_in_page`. A page
    without text is not relevant.
    """

    def relevance(pairs: Sequence[Pair]) -> list[bool | None]:
        texts = [_page_text(page, part) for _, page in pairs]
        if isinstance(judge, TruthfulnessRuleJudge):
            return [answer_in_page(*pair, text) for pair, text in zip(pairs, texts, strict=True)]
        asked = [(query.query_id, text) for (query, _), text in zip(pairs, texts, strict=True)]
        distinct = [each for each in dict.fromkeys(asked) if each[1]]
        table = pd.DataFrame(distinct, columns=["query_id", "answer"])
        scores = [verdict.score for verdict, *_ in judge.judge(benchmark, table)]
        best = [None if score is None else score == judge.scale.best for score in scores]
        found = dict(zip(distinct, best, strict=True))
        return [found.get(each, False) for each in asked]

    return relevance


def answer_in_page(query: Query, page: Document, text: str) -> bool:
    """Return whether a page names the query's entity and contains an accepted answer.
    The entity may be in its title or text. The text must have every content word of an accepted
    answer that the question lacks; where it lacks none, every content word.

    A query without a known entity needs no name. This rule suits regular sentences: real pages
    paraphrase.
    """
    named = normalized_words(f"{page.metadata.get('page_name') or ''} {text}")
    has_answer = any(has_new_words(text, accepted, query.text) for accepted in query.answers)
    return has_answer and normalized_words(query.entity) <= named


def _page_text(page: Document, part: str) -> str:
    snippet = page.text or ""
    return snippet if part == "snippets" else str(page.metadata.get("page_result") or snippet)


_OF_IMAGES = ("egocentric", "image_quality", "image_size", "region", "where")
"""Metadata of a query that describe its image."""


def with_mismatched_images(benchmark: Benchmark, *, seed: int = 0) -> Benchmark:
    """Replaces every query's image, and its metadata, by those of another session; all turns of a
    conversation get the same one.

    The new image shows another entity, where the data name entities, and is of the same domain if
    possible. `seed` and the session determine the choice. Questions, answers and groups stay.
    Raises `VragError` for a session without a possible replacement.
    """
    first: dict[str, Query] = {}
    for query in benchmark.queries.values():
        first.setdefault(query.group, query)
    lenders = {group: _lender(query, first, seed) for group, query in first.items()}
    queries = {}
    for name, query in benchmark.queries.items():
        lender = lenders[query.group]
        metadata = {key: each for key, each in query.metadata.items() if key not in _OF_IMAGES}
        metadata |= {key: lender.metadata[key] for key in _OF_IMAGES if key in lender.metadata}
        queries[name] = replace(query, image=lender.image, metadata=metadata)
    named = f"{benchmark.fingerprint}\nother pictures, seed {seed}"
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries=queries)


def _lender(query: Query, first: Mapping[str, Query], seed: int) -> Query:
    """A query of another session, whose image may replace this one's."""
    others = [
        other
        for group, other in first.items()
        if group != query.group and not (query.entity and other.entity == query.entity)
    ]
    if not others:
        raise VragError(
            f"session {query.group!r}: no other shows another entity; its picture cannot be"
            " swapped. Ask several sessions."
        )
    domain = query.metadata.get("domain")
    alike = [other for other in others if other.metadata.get("domain") == domain] or others
    chosen = ordered([other.group for other in alike], seed, query.group, "other picture")[0]
    return first[chosen]
