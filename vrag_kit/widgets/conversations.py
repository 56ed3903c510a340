"""Browse conversations: image, questions, searches, hits and answers, and where each stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.types import Benchmark
from vrag_kit.widgets.browser import Browser
from vrag_kit.widgets.cards import page_html
from vrag_kit.widgets.conversation_cards import (
    conversation_card,
    setting_labels,
    turn_outcomes_after_stop,
)
from vrag_kit.widgets.hits import SearchHits

if TYPE_CHECKING:
    from IPython.display import HTML

FIELDS = {"quality": "image_quality", "type": "query_category"}
"""Filter → the field of a query's metadata that it uses."""
RUN = ("conversation", "draw", "sample")
"""Columns that identify one run through a conversation, within an arm."""


class ConversationBrowser(Browser[int]):
    """Panel that browses conversations, each with its turns below one another.

    The filters select conversations with a turn that matches all of them: model, arm, score (right,
    missing, wrong, after the stop, no verdict, not asked), quality of the image, type of question.
    """

    thing = "conversation"

    def __init__(self, conversations: ConversationTable) -> None:
        """Opens at the first conversation."""
        self.talks = conversations
        choices = {
            str(name): list(dict.fromkeys(told.dropna()))
            for name, told in conversations.labels.items()
        }
        super().__init__({name: values for name, values in choices.items() if values})

    def __repr__(self) -> str:
        return f"conversation browser: {len(self.talks.places)} conversations"

    def matching(self, wanted: Mapping[str, str]) -> Sequence[int]:
        """Return the conversations with a turn that matches all filters."""
        labels = self.talks.labels
        fits = pd.Series(True, index=labels.index)
        for name, value in wanted.items():
            fits &= labels[name] == value
        rows = set(fits.to_numpy().nonzero()[0])
        places = enumerate(self.talks.places)
        return [number for number, place in places if not rows.isdisjoint(place)]

    def render_card(self, thing: int) -> str:
        """Return the conversation as HTML."""
        return self.talks.render_card(thing)


class ConversationTable:
    """Conversations of a table of turns, one for each arm, draw and sample.

    `places` are the row numbers of each; `labels` has the filter values, one row per turn.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        turns: pd.DataFrame,
        found: Mapping[str, pd.DataFrame],
        by: Sequence[str],
    ) -> None:
        """Takes the arguments of `browse_conversations`."""
        self.benchmark = benchmark
        self.searches = SearchHits(benchmark, found)
        arms = setting_labels(turns, by)
        self.turns = turns.assign(arm=arms)
        keys = [*dict.fromkeys([*by, *(name for name in RUN if name in turns)])]
        self.places = list(turns.groupby(keys, sort=False, dropna=False).indices.values())
        labels = {"model": turns["model"], "arm": arms, "score": turn_outcomes_after_stop(turns)}
        for name, field in FIELDS.items():
            told = {key: query.metadata.get(field) for key, query in benchmark.queries.items()}
            labels[name] = turns["query_id"].map(told)
        self.labels = pd.DataFrame(labels)

    def render_card(self, number: int) -> str:
        """Return a conversation as HTML."""
        return conversation_card(
            self.benchmark, self.turns.iloc[self.places[number]], self.searches
        )


def browse_conversations(
    benchmark: Benchmark,
    turns: pd.DataFrame,
    found: Mapping[str, pd.DataFrame] | None = None,
    *,
    by: Sequence[str] = ARM,
) -> ConversationBrowser:
    """Return a panel to browse conversations.
    `turns` is the result of `apply_early_stop`; the columns `by` distinguish its arms.

    `found` maps a setting to the runs of its searches, concatenated; they show which documents a
    turn kept (doc_ids) and which it did not. Where a search depended on the model's own answers,
    its run also has the columns model, draw or sample. Without the runs only kept documents are
    shown. Documents that are not in the benchmark (`with_documents`) are shown by their id. The
    column search_query, where there is one, is shown where it differs from the question.
    """
    return ConversationBrowser(ConversationTable(benchmark, turns, found or {}, by))


def conversations_page(
    benchmark: Benchmark,
    turns: pd.DataFrame,
    found: Mapping[str, pd.DataFrame] | None = None,
    *,
    by: Sequence[str] = ARM,
    most: int = 3,
) -> HTML:
    """Return the first conversations of `turns`, at most `most`, as static HTML.
    Otherwise as `browse_conversations`.
    """
    talks = ConversationTable(benchmark, turns, found or {}, by)
    cards = [talks.render_card(number) for number in range(len(talks.places))[:most]]
    return page_html(cards, "no such conversation")
