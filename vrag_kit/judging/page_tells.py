"""Whether a page tells the answer to a question: by a judge, or by words for the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from vrag_kit.judging.judge import Judge
from vrag_kit.judging.truth_rules import TruthRuleJudge
from vrag_kit.judging.truth_words import content, plain, plain_words
from vrag_kit.types import Benchmark, Evidence, Query

PARTS = ("snippets", "full pages")
"""What of a page may be read."""
Pair = tuple[Query, Evidence]
Tells = Callable[[Sequence[Pair]], list[bool | None]]
"""As `retrieval.search_recall` asks it."""


def page_tells(judge: Judge, benchmark: Benchmark, part: str) -> Tells:
    """Tells whether a page's snippet (`part` "snippets") or its full text ("full pages",
    the snippet where there is none) holds the answer to a query of the benchmark.

    A model reads it as if it were the answer, and the judge's verdict counts: true where
    that is the best of its scale, None where it could not be read; each text is read
    once. The rule judge of truthfulness, which expects an answer of a sentence, gives
    way to `told_by_words`. A page without text tells nothing.
    """
    if isinstance(judge, TruthRuleJudge):
        return lambda pairs: [
            told_by_words(query, page, _text(page, part)) for query, page in pairs
        ]

    def tells(pairs: Sequence[Pair]) -> list[bool | None]:
        asked = [(query.query_id, _text(page, part)) for query, page in pairs]
        table = pd.DataFrame(
            [pair for pair in dict.fromkeys(asked) if pair[1]], columns=["query_id", "answer"]
        )
        known: dict[tuple[str, str], bool | None] = {}
        pages = zip(table["query_id"], table["answer"], judge.judge(benchmark, table), strict=True)
        for query_id, text, verdicts in pages:
            score = verdicts[0].score
            known[query_id, text] = None if score is None else score == judge.scale.best
        return [known[pair] if pair[1] else False for pair in asked]

    return tells


def told_by_words(query: Query, page: Evidence, text: str) -> bool:
    """Whether a page names the query's entity, in its title or text, and its text has
    every content word of an accepted answer that the question has not; where it has all,
    every content word.

    Of a query whose entity is not known the name is not asked for. It is a rule for
    regular sentences: a real page says the same in other words.
    """
    title = str(page.metadata.get("page_name") or "")
    there = plain_words(text)
    if query.entity and not plain_words(query.entity) <= plain_words(f"{title} {text}"):
        return False
    for answer in query.answers:
        words = {plain(word) for word in content(answer, plain_words(query.text))}
        wanted = words or plain_words(answer)
        if wanted and wanted <= there:
            return True
    return False


def _text(page: Evidence, part: str) -> str:
    snippet = page.text or ""
    return snippet if part == PARTS[0] else str(page.metadata.get("page_result") or snippet)
