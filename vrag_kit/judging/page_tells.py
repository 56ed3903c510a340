"""Decide whether a page contains the answer to a question, by a judge or by its words (demo)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.judging.judge import Judge
from vrag_kit.judging.text import content_words, normalize_word, normalized_words
from vrag_kit.judging.truth_rules import TruthfulnessRuleJudge
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
            answer_in_page(query, page, _text(page, part)) for query, page in pairs
        ]

    def relevance(pairs: Sequence[Pair]) -> list[bool | None]:
        texts = [(query.query_id, _text(page, part)) for query, page in pairs]
        table = pd.DataFrame(
            [pair for pair in dict.fromkeys(texts) if pair[1]], columns=["query_id", "answer"]
        )
        known: dict[tuple[str, str], bool | None] = {}
        pages = zip(table["query_id"], table["answer"], judge.judge(benchmark, table), strict=True)
        for query_id, text, verdicts in pages:
            score = verdicts[0].score
            known[query_id, text] = None if score is None else score == judge.scale.best
        return [known[pair] if pair[1] else False for pair in texts]

    return relevance


def answer_in_page(query: Query, page: Document, text: str) -> bool:
    """Return whether a page names the query's entity and contains an accepted answer.
    The entity may be in its title or text. The text must have every content word of an accepted
    answer that the question lacks; where it lacks none, every content word.

    A query without a known entity needs no name. This rule suits regular sentences: real pages
    paraphrase.
    """
    title = str(page.metadata.get("page_name") or "")
    there = normalized_words(text)
    if query.entity and not normalized_words(query.entity) <= normalized_words(f"{title} {text}"):
        return False
    for answer in query.answers:
        words = {
            normalize_word(word) for word in content_words(answer, normalized_words(query.text))
        }
        wanted = words or normalized_words(answer)
        if wanted and wanted <= there:
            return True
    return False


def _text(page: Document, part: str) -> str:
    snippet = page.text or ""
    return snippet if part == PARTS[0] else str(page.metadata.get("page_result") or snippet)
