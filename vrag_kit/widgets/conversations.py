"""Browse conversations: image, questions, searches, hits and answers, and where each stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from vrag_kit.analysis.means import ARM
from vrag_kit.judging.scale import scale_of
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, DocId, Document, Json, JsonView
from vrag_kit.widgets.browser import Browser
from vrag_kit.widgets.html import Page, page_html, render

SEARCH = ("query_id", "model", "draw", "sample")
"""Columns that identify a search; a run has those on which a rewritten query depends."""

Runs = Mapping[str, pd.DataFrame]
"""Setting → the runs of its searches, concatenated."""


class Hit(NamedTuple):
    """A document that a search returned."""

    document: Document
    score: float | None
    """Its similarity; None where the run has no score."""
    kept: bool
    """Whether it was in the context of the model."""
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


def browse_conversations(
    benchmark: Benchmark, turns: pd.DataFrame, found: Runs | None = None
) -> Browser:
    """Return a panel to browse conversations, each with its turns below one another.
    `turns` is the result of `apply_early_stop`, with an arm for each model, setting and k.

    `found` maps a setting to the runs of its searches, concatenated; they show which documents a
    turn kept (doc_ids) and which it did not. Where a search depended on the model's own answers,
    its run also has the columns model, draw or sample. Without the runs only kept documents are
    shown. Documents that are not in the benchmark (`with_documents`) are shown by their id. The
    column search_query, where there is one, is shown where it differs from the question.

    The filters select conversations with a turn that matches all of them: model, arm, score
    (correct, missing, incorrect, after the stop, no verdict, not asked), quality of the image, type
    of question.
    """
    labels, card = _conversations(benchmark, turns, found or {})
    return Browser(labels, card, "conversation")


def conversations_page(
    benchmark: Benchmark, turns: pd.DataFrame, found: Runs | None = None, *, most: int = 3
) -> Page:
    """Return the first conversations of `turns`, at most `most`, as static HTML.
    Otherwise as `browse_conversations`.
    """
    labels, card = _conversations(benchmark, turns, found or {})
    return page_html(map(card, labels.index.unique()[:most]), "no such conversation")


def _conversations(
    benchmark: Benchmark, turns: pd.DataFrame, found: Runs
) -> tuple[pd.DataFrame, Callable[[int], Markup]]:
    """Return the filter values of each turn, by the number of its conversation, and a function that
    makes the card of a number.
    """
    for run in found.values():
        require_columns(run, ["query_id", "doc_id", "rank"], "browse_conversations")
    texts = turns.reindex(columns=["answer", "search_query", "verdict", "marks"]).fillna("")
    arms = turns["setting"] + ", k = " + turns["k"].astype(str)
    turns = turns.assign(**texts, arm=arms, outcome=_outcomes(turns))
    keys = [*ARM, "conversation", *(name for name in ("draw", "sample") if name in turns)]
    numbers = turns.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    metadata = [benchmark.queries[query_id].metadata for query_id in turns["query_id"]]
    labels = {
        "model": turns["model"],
        "arm": arms,
        "score": turns["outcome"].mask(turns["turn"] > turns["stopped_at"], "after the stop"),
        "quality": [fields.get("image_quality") for fields in metadata],
        "type": [fields.get("query_category") for fields in metadata],
    }

    def card(number: int) -> Markup:
        return _card(benchmark, turns[numbers == number].to_dict("records"), found)

    return pd.DataFrame(labels).set_axis(numbers), card


def _outcomes(turns: pd.DataFrame) -> pd.Series:
    """Return "correct", "missing", "incorrect", "no verdict" or "not asked" for each turn."""
    scale = scale_of(turns)
    names = {scale.worst: "incorrect", scale.nothing: "missing", scale.best: "correct"}
    outcomes = turns["score"].map(names).fillna("no verdict")
    return outcomes.where(turns["asked"].astype(bool), "not asked")


def _card(benchmark: Benchmark, rows: Sequence[JsonView], found: Runs) -> Markup:
    """Return one conversation as HTML, from all its rows of `apply_early_stop`."""
    turns: list[Json] = []
    before: Mapping[str, list[Hit]] = {}
    for row in rows:
        query = benchmark.queries[row["query_id"]]
        hits = _hits(benchmark, row, found) if row["asked"] else {}
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


def _hits(benchmark: Benchmark, turn: JsonView, found: Runs) -> dict[str, list[Hit]]:
    """Return the hits of a turn by service, best first.
    For a setting without a run, only the documents that the turn kept.
    """
    # after a failed turn a row may have none
    kept = turn["doc_ids"] if isinstance(turn["doc_ids"], tuple) else ()
    scores: dict[DocId, float | None] = {}
    if (run := found.get(turn["setting"])) is not None:
        keys = [name for name in SEARCH if name in run]
        rows = run[(run[keys] == [turn[name] for name in keys]).all(axis=1)]
        rows = rows.sort_values("rank", kind="stable")
        scores = dict(zip(rows["doc_id"], rows.get("score", [None] * len(rows)), strict=True))
    labels = benchmark.qrels.get(turn["query_id"], {})
    hits: dict[str, list[Hit]] = {}
    for doc_id in dict.fromkeys([*scores, *kept]):
        document = benchmark.corpus.get(doc_id) or Document(doc_id=doc_id)
        service = str(document.metadata.get("source", "search")).replace("_", " ")
        hit = Hit(document, scores.get(doc_id), doc_id in kept, labels.get(doc_id, 0) > 0)
        hits.setdefault(service, []).append(hit)
    return hits


def _summary(service: str, hits: Sequence[Hit], repeated: bool) -> str:
    """What a service found and what of it was kept, in a line."""
    relevant, kept = sum(hit.relevant for hit in hits), [hit for hit in hits if hit.kept]
    of_them = f" ({relevant} relevant)" if relevant else ""
    count = f"{service}: {len(hits)} found{of_them}, {len(kept)} kept"
    if repeated:
        return f"{count}, as in the turn before"
    titles = dict.fromkeys(", ".join(name for name, _ in hit.entries) for hit in kept)
    return ": ".join(filter(None, [count, "; ".join(titles)]))
