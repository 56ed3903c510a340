"""The arms mm_llm, task_1, task_2 and task_3 (A.5.1): what each searches before a turn
is asked, and how much of what is found it keeps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.conversations import History
from vrag_kit.generation.rendering import render
from vrag_kit.generation.rewriting import Rewriter, Rewritten
from vrag_kit.generation.talk import Found
from vrag_kit.retrieval import SearchService
from vrag_kit.types import Benchmark, Context, Evidence, Query, QueryId

IMAGE_K = 30
WEB_K = 50
THRESHOLD = 0.75
"""Entries of the image search must be more alike than this."""
ARMS: Mapping[str, tuple[str, ...]] = {
    "mm_llm": (),
    "task_1": ("image",),
    "task_2": ("image", "web"),
    "task_3": ("image", "web"),
}
"""Arm → what it searches. mm_llm and task_3 are told the conversation, too."""
_NAMES = {
    "mm_llm": "no search (MM-LLM)",
    "task_1": "image search (Task 1)",
    "task_2": "both searches (Task 2)",
    "task_3": "both searches (Task 3)",
}
GIVEN = {True: "given", False: "not given"}
"""Whether the data have a reference query."""
REWRITES = ("none", "given", "image", "found", "image_history", "found_history")
"""What the web is searched for. none: the question as it is asked. given: the reference
query of the data, where they have one. The others are said anew by a model that sees
the picture (as the authors' code has it), also what the image search found (as the
paper's text has it), also the earlier turns (ours).
"""


def arm_names(settings: Iterable[str]) -> dict[str, str]:
    """Setting → what it is called for people, once each, in their order; a setting that
    is no arm is called as it is.
    """
    return {setting: _NAMES.get(setting, setting) for setting in settings}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """Searches for turns as their arm says; implements `Search`."""

    images: SearchService | None = None
    """Finds entries of the image index by a picture; None where no arm needs it."""
    web: SearchService | None = None
    """Finds web pages by a question; None where no arm needs it."""
    image_k: int = IMAGE_K
    web_k: int = WEB_K
    threshold: float = THRESHOLD
    rewrite: str = "none"
    """One of `REWRITES`."""
    rewriter: Rewriter | None = None
    """Who says questions anew, where `rewrite` wants that."""

    def __post_init__(self) -> None:
        """Raise `VragError` for an unknown way to rewrite, or one without its model."""
        if self.rewrite not in REWRITES:
            raise VragError(f"rewrite is {self.rewrite!r}; expected one of {', '.join(REWRITES)}.")
        if self.rewrite not in ("none", "given") and self.rewriter is None:
            raise VragError(
                f"rewrite is {self.rewrite!r}, but there is no rewriter. Name a model, or set"
                ' rewrite to "none" or "given".'
            )

    @property
    def found_by(self) -> dict[str, str]:
        """Arm → the names of the searches that it asks, "field-guide-worn + bm25", of those
        that there are.
        """
        there = {"image": self.images, "web": self.web}
        searched = {arm: [there[each] for each in kinds] for arm, kinds in ARMS.items()}
        return {
            arm: " + ".join(service.name for service in services if service is not None)
            for arm, services in searched.items()
        }

    def contexts(self, benchmark: Benchmark, arms: Sequence[str]) -> list[Context]:
        """A context a query and arm, whose documents `find` adds at its turn.

        k is how many documents are asked for: those of the image search, and of the web.
        Raises `VragError` for an unknown arm, and for one without its search.
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
    ) -> list[Found]:
        """For each turn the kept entries of the image search by rank, then the pages of
        the web search by rank, as its arm searches them.

        Entries without a named entity, and pages without title or snippet, have nothing
        to show: they are passed over, and counted. A turn whose question the rewriter
        did not answer fails with it.
        """
        arms: dict[tuple[str, int, int], list[int]] = defaultdict(list)
        for place, context in enumerate(contexts):  # each query is there once in an arm
            arms[context.setting, context.k, context.draw].append(place)
        found: dict[int, Found] = {}
        for (arm, _, _), places in arms.items():
            queries = [benchmark.queries[contexts[place].query_id] for place in places]
            told = [histories[place] for place in places]
            found.update(zip(places, self._found(ARMS[arm], queries, told), strict=True))
        return [found[place] for place in range(len(contexts))]

    def _found(
        self, searched: Sequence[str], queries: Sequence[Query], histories: Sequence[History]
    ) -> list[Found]:
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
                    searched=question.text,
                    rewriting=question.outcome,
                    failure=question.failure,
                )
            )
        return found

    def _rewritten(
        self,
        queries: Sequence[Query],
        entries: Mapping[QueryId, _Hits],
        histories: Sequence[History],
    ) -> list[Rewritten]:
        """What the web is searched for, for each query, the entries found for it, and
        what was said before.
        """
        if self.rewriter is None or self.rewrite in ("none", "given"):
            return [_as_told(query, given=self.rewrite == "given") for query in queries]
        template = self.rewriter.wording.template(self.rewrite)
        prompts = []
        for query, history in zip(queries, histories, strict=True):
            hits = entries.get(query.query_id, _NOTHING)
            found = hits.shown if "found" in self.rewrite else ()
            told = history if "history" in self.rewrite else ()
            prompts.append(render(template, query, found, told))
        return self.rewriter.rewrite(prompts, [query.text for query in queries])


@dataclass(frozen=True, slots=True)
class _Hits:
    """What one search found for one query."""

    shown: tuple[Evidence, ...] = ()  # by rank
    passed_over: int = 0  # which have nothing to show


_NOTHING = _Hits()


def _shown(
    run: pd.DataFrame, service: SearchService, has_words: Callable[[Evidence], bool]
) -> dict[QueryId, _Hits]:
    """Query → what was found for it, and has words to show."""
    found: dict[QueryId, _Hits] = {}
    for query_id, part in run.groupby("query_id", sort=False):
        documents = [service.corpus[doc_id] for doc_id in part.sort_values("rank")["doc_id"]]
        shown = tuple(each for each in documents if has_words(each))
        found[str(query_id)] = _Hits(shown, len(documents) - len(shown))
    return found


def _found(*searches: _Hits) -> Found:
    """What several searches found for one query, one behind the other."""
    documents: list[Evidence] = []
    for hits in searches:
        documents += hits.shown
    passed_over = sum(hits.passed_over for hits in searches)
    return Found(documents=tuple(documents), passed_over=passed_over)


def _has_entity(entry: Evidence) -> bool:
    return any(each.get("entity_name") for each in entry.metadata.get("entities") or ())


def _has_words(page: Evidence) -> bool:
    return bool(page.text) and bool(page.metadata.get("page_name"))


def _as_told(query: Query, *, given: bool) -> Rewritten:
    """The question as it is asked, or the one that the data give to search for."""
    reference = str(query.metadata.get("reference_query") or "") if given else ""
    outcome = GIVEN[bool(reference)] if given else ""
    return Rewritten(text=reference or query.text, outcome=outcome)
