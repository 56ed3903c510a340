"""Conversations one by one: the picture, what was asked, searched, found and said, and
where each stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.types import Benchmark
from vrag_kit.widgets.browsing import Browsing
from vrag_kit.widgets.cards import page_of
from vrag_kit.widgets.hits import Searches
from vrag_kit.widgets.talk_cards import arms_of, counted, talk_card

if TYPE_CHECKING:
    from IPython.display import HTML

FIELDS = {"quality": "image_quality", "type": "query_category"}
"""Filter → the field of a query's metadata that it goes by."""
RUN = ("conversation", "draw", "sample")
"""What one way through a conversation is, in an arm."""


class ConversationBrowser(Browsing[int]):
    """A panel that shows one conversation at a time, its turns below one another.

    The filters choose conversations with a turn that has all that is wanted: model, arm,
    score (right, missing, wrong, after the stop, no verdict, not asked), quality of the
    picture, type of question.
    """

    thing = "conversation"

    def __init__(self, talks: Talks) -> None:
        """Opens at the first conversation."""
        self.talks = talks
        choices = {
            str(name): list(dict.fromkeys(told.dropna())) for name, told in talks.labels.items()
        }
        super().__init__({name: values for name, values in choices.items() if values})

    def __repr__(self) -> str:
        return f"conversation browser: {len(self.talks.places)} conversations"

    def matching(self, wanted: Mapping[str, str]) -> Sequence[int]:
        """The conversations with such a turn."""
        labels = self.talks.labels
        fits = pd.Series(True, index=labels.index)
        for name, value in wanted.items():
            fits &= labels[name] == value
        rows = set(fits.to_numpy().nonzero()[0])
        places = enumerate(self.talks.places)
        return [number for number, place in places if not rows.isdisjoint(place)]

    def card_of(self, thing: int) -> str:
        """That conversation."""
        return self.talks.card(thing)


class Talks:
    """Conversations of a table, each as it went in one arm, draw and sample.

    `places` are the rows of each; `labels` is what the filters go by, a row a turn.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        turns: pd.DataFrame,
        found: Mapping[str, pd.DataFrame],
        by: Sequence[str],
    ) -> None:
        """As `browse_conversations`."""
        self.benchmark = benchmark
        self.searches = Searches(benchmark, found)
        arms = arms_of(turns, by)
        self.turns = turns.assign(arm=arms)
        keys = [*dict.fromkeys([*by, *(name for name in RUN if name in turns)])]
        self.places = list(turns.groupby(keys, sort=False, dropna=False).indices.values())
        labels = {"model": turns["model"], "arm": arms, "score": counted(turns)}
        for name, field in FIELDS.items():
            told = {key: query.metadata.get(field) for key, query in benchmark.queries.items()}
            labels[name] = turns["query_id"].map(told)
        self.labels = pd.DataFrame(labels)

    def card(self, number: int) -> str:
        """A conversation in HTML."""
        return talk_card(self.benchmark, self.turns.iloc[self.places[number]], self.searches)


def browse_conversations(
    benchmark: Benchmark,
    turns: pd.DataFrame,
    found: Mapping[str, pd.DataFrame] | None = None,
    *,
    by: Sequence[str] = ARM,
) -> ConversationBrowser:
    """A panel to turn over conversations: `turns`, from `with_stop`, whose `by` tells the
    arms apart.

    `found` is setting → the runs of that arm's searches, one below the other: what a turn
    kept of them (doc_ids) is told from what it passed over. Where a search hung on the
    model's own answers, its run has the columns model, draw or sample too. Without the
    runs only what was kept is shown. Documents that are not in the benchmark
    (`with_documents`) are shown by their id. The words in the column searched, where
    there is one, are shown when they are not the question.
    """
    return ConversationBrowser(Talks(benchmark, turns, found or {}, by))


def conversations_page(
    benchmark: Benchmark,
    turns: pd.DataFrame,
    found: Mapping[str, pd.DataFrame] | None = None,
    *,
    by: Sequence[str] = ARM,
    most: int = 3,
) -> HTML:
    """The first conversations of `turns`, at most so many, below one another, to read
    without a kernel; else as `browse_conversations`.
    """
    talks = Talks(benchmark, turns, found or {}, by)
    cards = [talks.card(number) for number in range(len(talks.places))[:most]]
    return page_of(cards, "no such conversation")
