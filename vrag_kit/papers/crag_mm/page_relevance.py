"""Which pages contain the answer to a query, for the recall of web search."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.judging import Judge, TruthfulnessRuleJudge
from vrag_kit.judging.answer_metrics import has_new_words
from vrag_kit.judging.text import normalized_words
from vrag_kit.retrieval.entity_hit_rate import Pair, Relevance
from vrag_kit.types import Benchmark, Document, Query

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
