"""Search pipelines of the settings mm_llm, task_1, task_2 and task_3 (A.5.1): the searches before
each turn, and the evidence that is kept.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vrag_kit.errors import VragError, did_you_mean
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
_NAMES = {
    "mm_llm": "no search (MM-LLM)",
    "task_1": "image search (Task 1)",
    "task_2": "image and web search (Task 2)",
    "task_3": "image and web search (Task 3)",
}
REFERENCE = {True: "reference", False: "no_reference"}
"""Rewriting status by whether the data have a reference query."""
REWRITES = ("none", "reference", "image", "retrieved", "image_history", "retrieved_history")
"""Kinds of web search queries. none: the question itself. reference: the annotated reference query,
where there is one. The others are rewritten by a model that gets the image (as in the authors'
code), also the image search results (as in the paper's text), also the earlier turns (ours).
"""


def setting_names(settings: Iterable[str]) -> dict[str, str]:
    """Maps settings to display names, without duplicates, in their order. Other settings keep their
    name.
    """
    return {setting: _NAMES.get(setting, setting) for setting in settings}


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
    """One of `REWRITES`."""
    rewriter: Rewriter | None = None
    """Model that rewrites questions, where `rewrite` needs one."""

    def __post_init__(self) -> None:
        """Raise `VragError` for an unknown `rewrite`, or one without its model."""
        if self.rewrite not in REWRITES:
            raise VragError(
                f"rewrite is {self.rewrite!r}; expected one of {', '.join(REWRITES)}."
                f"{did_you_mean(self.rewrite, REWRITES)}"
            )
        if self.rewrite not in ("none", "reference") and self.rewriter is None:
            raise VragError(
                f"rewrite is {self.rewrite!r}, but there is no rewriter. Name a model, or set"
                ' rewrite to "none" or "reference".'
            )

    @property
    def found_by(self) -> dict[str, str]:
        """Maps each setting to the names of its available searches, "field-guide-egocentric +
        bm25".
        """
        there = {"image": self.images, "web": self.web}
        searched = {arm: [there[each] for each in kinds] for arm, kinds in ARMS.items()}
        return {
            arm: " + ".join(service.name for service in services if service is not None)
            for arm, services in searched.items()
        }

    def contexts(self, benchmark: Benchmark, arms: Sequence[str]) -> list[Context]:
        """Returns one context per query and setting, to which `find` adds documents at each turn.

        k is the number of documents requested from image and web search together. Raises
        `VragError` for an unknown setting, and for one without its search.
        """
        ks = {"image": self.image_k, "web": self.web_k}
        there = {"image": self.images, "web": self.web}
        contexts: list[Context] = []
        for arm in arms:
            if arm not in ARMS:
                raise VragError(f"unknown arm {arm!r}; expected some of {', '.join(ARMS)}.")
            if missing := [each for each in ARMS[arm] if there[each] is None]:
                raise VragError(
                    f"{arm} searches {' and '.join(ARMS[arm])}, but there is no {missing[0]}"
                    " service. Name one, or leave the arm out."
                )
            k = sum(ks[each] for each in ARMS[arm])
            contexts += [Context(query_id=each, setting=arm, k=k) for each in benchmark.queries]
        return contexts

    def find(
        self, benchmark: Benchmark, contexts: Sequence[Context], histories: Sequence[History]
    ) -> list[RetrievedEvidence]:
        """Returns each turn's evidence: kept image search entries by rank, then web pages by rank,
        as its setting requires.

        Entries without a named entity, and pages without title or snippet, have no text to show:
        they are skipped, and counted. A turn fails if the rewriter fails on its question.
        """
        arms: dict[tuple[str, int, int], list[int]] = defaultdict(list)
        for place, context in enumerate(contexts):  # each query is there once in an arm
            arms[context.setting, context.k, context.draw].append(place)
        found: dict[int, RetrievedEvidence] = {}
        for (arm, _, _), places in arms.items():
            queries = [benchmark.queries[contexts[place].query_id] for place in places]
            told = [histories[place] for place in places]
            found.update(zip(places, self._found(ARMS[arm], queries, told), strict=True))
        return [found[place] for place in range(len(contexts))]

    def _found(
        self, searched: Sequence[str], queries: Sequence[Query], histories: Sequence[History]
    ) -> list[RetrievedEvidence]:
        entries: dict[QueryId, _Hits] = {}
        if self.images is not None and "image" in searched:
            run = self.images.search(queries, self.image_k)
            entries = _shown(run[run["score"] > self.threshold], self.images, _has_entity)
        if self.web is None or "web" not in searched:
            return [_found(entries.get(query.query_id, _NOTHING)) for query in queries]
        rewritten = self._rewritten(queries, entries, histories)
        asked = []
        for query, question in zip(queries, rewritten, strict=True):
            if question.failure is None:
                asked.append(replace(query, text=question.text))
        pages = _shown(self.web.search(asked, self.web_k), self.web, _has_words)
        found = []
        for query, question in zip(queries, rewritten, strict=True):
            hits = [each.get(query.query_id, _NOTHING) for each in (entries, pages)]
            found.append(
                replace(
                    _found(*hits),
                    search_query=question.text,
                    rewrite_status=question.outcome,
                    failure=question.failure,
                )
            )
        return found

    def _rewritten(
        self,
        queries: Sequence[Query],
        entries: Mapping[QueryId, _Hits],
        histories: Sequence[History],
    ) -> list[RewriteResult]:
        """What the web is searched for, for each query, the entries found for it, and
        what was said before.
        """
        if self.rewriter is None or self.rewrite in ("none", "reference"):
            return [
                _without_rewriting(query, given=self.rewrite == "reference") for query in queries
            ]
        template = self.rewriter.prompts.template(self.rewrite)
        prompts = []
        for query, history in zip(queries, histories, strict=True):
            hits = entries.get(query.query_id, _NOTHING)
            found = hits.shown if "retrieved" in self.rewrite else ()
            told = history if "history" in self.rewrite else ()
            prompts.append(render(template, query, found, told))
        return self.rewriter.rewrite(prompts, [query.text for query in queries])


@dataclass(frozen=True, slots=True)
class _Hits:
    """What one search found for one query."""

    shown: tuple[Document, ...] = ()  # by rank
    n_skipped: int = 0  # which have nothing to show


_NOTHING = _Hits()


def _shown(
    run: pd.DataFrame, service: SearchService, has_words: Callable[[Document], bool]
) -> dict[QueryId, _Hits]:
    """Query → what was found for it, and has words to show."""
    found: dict[QueryId, _Hits] = {}
    for query_id, part in run.groupby("query_id", sort=False):
        documents = [service.corpus[doc_id] for doc_id in part.sort_values("rank")["doc_id"]]
        shown = tuple(each for each in documents if has_words(each))
        found[str(query_id)] = _Hits(shown, len(documents) - len(shown))
    return found


def _found(*searches: _Hits) -> RetrievedEvidence:
    """What several searches found for one query, one behind the other."""
    documents: list[Document] = []
    for hits in searches:
        documents += hits.shown
    n_skipped = sum(hits.n_skipped for hits in searches)
    return RetrievedEvidence(documents=tuple(documents), n_skipped=n_skipped)


def _has_entity(entry: Document) -> bool:
    return any(each.get("entity_name") for each in entry.metadata.get("entities") or ())


def _has_words(page: Document) -> bool:
    return bool(page.text) and bool(page.metadata.get("page_name"))


def _without_rewriting(query: Query, *, given: bool) -> RewriteResult:
    """The question as it is asked, or the one that the data give to search for."""
    reference = str(query.metadata.get("reference_query") or "") if given else ""
    outcome = REFERENCE[bool(reference)] if given else ""
    return RewriteResult(text=reference or query.text, outcome=outcome)


PARTS = ("snippets", "full pages")
"""The parts of a page that may be read."""


def page_relevance(judge: Judge, benchmark: Benchmark, part: str) -> Relevance:
    """Return a function that decides whether a page contains the answer to a query, for `hit_rate`.
    `part` is "snippets", or "full pages" (the snippet of a page without full text).

    A text is judged as if it were the answer. It is relevant if the verdict is the best of the
    judge's scale, and None if that could not be parsed; each text is judged once. The truthfulness
    rule judge expects an answer of one sentence, and is replaced by `answer_in_page`. A page
    without text is not relevant.
    """
    if isinstance(judge, TruthfulnessRuleJudge):
        return lambda pairs: [
            answer_in_page(query, page, _page_text(page, part)) for query, page in pairs
        ]

    def relevance(pairs: Sequence[Pair]) -> list[bool | None]:
        texts = [(query.query_id, _page_text(page, part)) for query, page in pairs]
        distinct = [pair for pair in dict.fromkeys(texts) if pair[1]]
        table = pd.DataFrame(distinct, columns=["query_id", "answer"])
        scores = [verdict.score for verdict, *_ in judge.judge(benchmark, table)]
        best = [None if score is None else score == judge.scale.best for score in scores]
        found = dict(zip(distinct, best, strict=True))
        return [found.get(pair, False) for pair in texts]

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
    return snippet if part == PARTS[0] else str(page.metadata.get("page_result") or snippet)


_OF_THE_PICTURE = ("egocentric", "image_quality", "image_size", "region", "where")


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
    queries = {
        name: replace(
            query,
            image=lenders[query.group].image,
            metadata=_metadata(query, lenders[query.group]),
        )
        for name, query in benchmark.queries.items()
    }
    named = f"{benchmark.fingerprint}\nother pictures, seed {seed}"
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries=queries)


def _lender(query: Query, first: Mapping[str, Query], seed: int) -> Query:
    """A query of another session, whose picture may stand in."""
    others = [other for group, other in first.items() if group != query.group]
    others = [other for other in others if not query.entity or other.entity != query.entity]
    if not others:
        raise VragError(
            f"session {query.group!r}: no other shows another entity; its picture cannot be"
            " swapped. Ask several sessions."
        )
    domain = query.metadata.get("domain")
    alike = [other for other in others if other.metadata.get("domain") == domain] or others
    chosen = ordered([other.group for other in alike], seed, query.group, "other picture")[0]
    return first[chosen]


def _metadata(query: Query, lender: Query) -> dict[str, object]:
    """What is told of the query, and of the picture that it is lent."""
    own = {key: value for key, value in query.metadata.items() if key not in _OF_THE_PICTURE}
    lent = {key: lender.metadata[key] for key in _OF_THE_PICTURE if key in lender.metadata}
    return {**own, **lent}
