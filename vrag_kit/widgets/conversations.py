"""Conversations as a page: image, questions, evidence and answers, and where each stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from vrag_kit.analysis.means import ARM
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark, Document, Json, JsonView
from vrag_kit.widgets.html import Page, page_html, render


class Hit(NamedTuple):
    """A document in the context of a turn."""

    document: Document
    relevant: bool
    """Whether the benchmark's qrels call it relevant."""

    @property
    def entries(self) -> list[tuple[str, str]]:
        """Names and texts: the entities of an image with their attributes, the title of a page with
        its snippet, else the document's name and text.
        """
        fields, entries = self.document.metadata, []
        for entity in fields.get("entities", ()):
            attributes = entity.get("entity_attributes") or {}
            if isinstance(attributes, Mapping):
                attributes = "; ".join(f"{name}: {value}" for name, value in attributes.items())
            entries.append((str(entity.get("entity_name") or ""), str(attributes)))
        text = fields.get("page_snippet") or self.document.text or ""
        return entries or [(fields.get("page_name") or self.document.doc_id, text)]


def conversations_page(benchmark: Benchmark, turns: pd.DataFrame, *, most: int = 3) -> Page:
    """Return the first conversations of `turns`, at most `most`, as static HTML, each with its
    turns below one another. `turns` is the result of `apply_early_stop`, with an arm for each
    model, setting and k; all text is escaped.

    Documents that are not in the benchmark (`with_documents`) are shown by their id. The column
    search_query, where there is one, is shown where it differs from the question.
    """
    texts = turns.reindex(columns=["answer", "search_query", "verdict", "marks"]).fillna("")
    arms = turns["setting"] + ", k = " + turns["k"].astype(str)
    turns = turns.assign(**texts, arm=arms, outcome=_outcomes(turns))
    keys = [*ARM, "conversation", *turns.columns.intersection(["draw", "sample"])]
    numbers = turns.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    shown = range(min(most, numbers.max(initial=-1) + 1))
    cards = [_card(benchmark, turns[numbers == each].to_dict("records")) for each in shown]
    return page_html(cards, "no such conversation")


def _outcomes(turns: pd.DataFrame) -> pd.Series:
    """Return "correct", "missing", "incorrect", "no verdict" or "not asked" for each turn."""
    scale = scale_of(turns)
    names = {scale.worst: "incorrect", scale.nothing: "missing", scale.best: "correct"}
    outcomes = turns["score"].map(names).fillna("no verdict")
    return outcomes.where(turns["asked"].astype(bool), "not asked")


def _card(benchmark: Benchmark, rows: Sequence[JsonView]) -> Markup:
    """Return one conversation as HTML, from all its rows of `apply_early_stop`."""
    turns: list[Json] = []
    before: Mapping[str, list[Hit]] = {}
    for row in rows:
        query = benchmark.queries[row["query_id"]]
        hits = _hits(benchmark, row) if row["asked"] else {}
        searches = []
        for service, results in hits.items():
            repeated = results == before.get(service)
            searches.append((_summary(service, results, repeated), () if repeated else results))
        turns.append({**row, "query": query, "verdict": _verdict(row), "searches": searches})
        before = hits
    return render("conversation.html", facts=_overview(rows), turns=turns)


def _overview(rows: Sequence[JsonView]) -> dict[str, object]:
    """What the whole conversation is, how its turns went, and its score."""
    first, outcomes = rows[0], [row["outcome"] for row in rows]
    facts = {name: first[name] for name in ("conversation", "model", "arm")}
    if first.get("draw") or first.get("sample"):
        facts["arm"] += f", draw {first['draw']}, sample {first['sample']}"
    facts["turns"] = ", ".join(outcomes)
    facts["score"] = "none, for a turn has no verdict"
    scores = pd.Series([row["after_stop"] for row in rows])
    if scores.notna().all():
        count = "1 turn" if len(rows) == 1 else f"{len(rows)} turns"
        facts["score"] = f"{_signed(scores.mean())}, the mean of {count}"
    if first["stopped_at"] < len(rows) - 1:
        end = int(first["stopped_at"]) + 1
        before, after = ", ".join(outcomes[:end]), ", ".join(outcomes[end:])
        facts["turns"] = f"{before} | after the stop: {after}"
        facts["score"] += " after the stop"
    return facts


def _verdict(row: JsonView) -> str:
    """What a turn is worth, and the judge's words."""
    words = str(row["outcome"])
    if pd.notna(row["score"]):
        words += f", {_signed(row['score'])}"
    if row["marks"]:
        words += f" ({row['marks']})"
    return f"{words}: {row['verdict']}" if row["verdict"] else words


def _signed(score: float) -> str:
    return f"{score:.3g}".replace("-", "−")


def _hits(benchmark: Benchmark, turn: JsonView) -> dict[str, list[Hit]]:
    """Return the documents of a turn by service, in order; a failed turn may have none."""
    labels = benchmark.qrels.get(turn["query_id"], {})
    hits: dict[str, list[Hit]] = {}
    for doc_id in turn["doc_ids"] if isinstance(turn["doc_ids"], tuple) else ():
        document = benchmark.corpus.get(doc_id) or Document(doc_id=doc_id)
        service = str(document.metadata.get("source", "search")).replace("_", " ")
        hits.setdefault(service, []).append(Hit(document, labels.get(doc_id, 0) > 0))
    return hits


def _summary(service: str, hits: Sequence[Hit], repeated: bool) -> str:
    """What of a service was kept, in a line."""
    count = f"{service}: {len(hits)} kept"
    if relevant := sum(hit.relevant for hit in hits):
        count += f" ({relevant} relevant)"
    if repeated:
        return f"{count}, as in the turn before"
    titles = dict.fromkeys(", ".join(name for name, _ in hit.entries) for hit in hits)
    return f"{count}: {'; '.join(titles)}"
