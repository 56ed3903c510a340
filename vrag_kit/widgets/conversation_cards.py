"""HTML card of a conversation: its image, its turns, and where it stopped early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd

from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark, JsonView, Query
from vrag_kit.widgets.cards import definition_list
from vrag_kit.widgets.hits import Hits, SearchHits, hits_html
from vrag_kit.widgets.images import image_html

AFTER = "after the stop"
_LABELS = ("query_category", "dynamism", "domain", "image_quality")
"""Fields of a query's metadata that are shown above its question."""


def turn_outcomes(turns: pd.DataFrame) -> pd.Series:
    """Return the outcome of each turn of `apply_early_stop`.
    It is "correct", "missing", "incorrect", "no verdict" or "not asked".
    """
    scale = scale_of(turns)
    names = {scale.worst: "incorrect", scale.nothing: "missing", scale.best: "correct"}
    kinds = turns["score"].map(names).fillna("no verdict")
    return kinds.where(turns["asked"].astype(bool), "not asked")


def turn_outcomes_after_stop(turns: pd.DataFrame) -> pd.Series:
    """Return the outcome of each turn; `AFTER` for turns after early stopping."""
    return turn_outcomes(turns).mask(turns["turn"] > turns["stopped_at"], AFTER)


def setting_labels(turns: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return the label of each turn's arm: its setting, and the other columns in `by`.
    The column model is left out.
    """
    arms = pd.Series(turns["setting"].to_numpy(object), index=turns.index)
    for name in by:
        if name not in ("model", "setting"):
            arms += f", {name} = " + turns[name].astype(str)
    return arms


def conversation_card(benchmark: Benchmark, turns: pd.DataFrame, searches: SearchHits) -> str:
    """Return one conversation as HTML, from all its rows of `apply_early_stop`.
    The column arm has the label of its arm; all text is escaped.
    """
    told = turns.assign(kind=turn_outcomes(turns))
    names = list(map(str, told.columns))
    rows = [dict(zip(names, cells, strict=True)) for cells in told.itertuples(index=False)]
    parts: list[str] = []
    before: Hits = {}
    for row in rows:
        query = benchmark.queries[row["query_id"]]
        hits: Hits = searches.hits_of_turn(row) if row["asked"] else {}
        parts.append(_turn(query, row, hits_html(hits, before)))
        before = hits
        if row["turn"] == row["stopped_at"]:
            parts.append(_stop(row))
    image = benchmark.queries[rows[0]["query_id"]].image
    picture = "<i>no picture</i>" if image is None else image_html(image, caption="asked about")
    return (
        "<div style='line-height:1.5'>"
        "<div style='display:flex;flex-wrap:wrap;column-gap:16px'>"
        f"<div>{picture}</div><div>{_head(rows)}</div></div>{''.join(parts)}</div>"
    )


def _head(rows: Sequence[JsonView]) -> str:
    """What the whole conversation is, how its turns went, and what it earned."""
    first = rows[0]
    told = {"conversation": first["conversation"], "model": first["model"], "arm": first["arm"]}
    if first.get("draw") or first.get("sample"):
        told["arm"] += f", draw {first['draw']}, sample {first['sample']}"
    went = [row["kind"] for row in rows]
    stop = first["stopped_at"]
    told["turns"] = ", ".join(went)
    told["score"] = "none, for a turn has no verdict"
    scores = [row["after_stop"] for row in rows]
    if not pd.isna(scores).any():
        count = "1 turn" if len(rows) == 1 else f"{len(rows)} turns"
        told["score"] = f"{_signed(sum(scores) / len(scores))}, the mean of {count}"
    if stop < len(rows) - 1:
        kept = int(stop) + 1
        told["turns"] = f"{', '.join(went[:kept])} | after the stop: {', '.join(went[kept:])}"
        told["score"] += " after the stop"
    return definition_list(told)


def _turn(query: Query, row: JsonView, found: str) -> str:
    """One turn: question, what was found, answer, and what it is worth."""
    place = f"turn {row['turn'] + 1} of {row['turns']}"
    labels = [str(query.metadata[name]) for name in _LABELS if query.metadata.get(name)]
    searched = _text_in(row, "search_query")
    if searched not in ("", query.text):
        found = f"<div>searched: {escape(searched)}</div>{found}"
    rows = {"answer": _text_in(row, "answer")} if row["asked"] else {}
    rows["reference"] = " | ".join(query.answers)
    rows["verdict"] = _verdict(row)
    if row["turn"] > row["stopped_at"]:
        rows["counts as"] = "missing, 0: it comes after the stop"
    line = "dashed" if row["turn"] > row["stopped_at"] else "solid"
    border = f"6px {line} {_color(row['kind'])}"
    return (
        f"<div style='border-left:{border};padding-left:12px;margin:12px 0'>"
        f"<div style='opacity:0.75'>{escape(' · '.join([place, *labels]))}</div>"
        f"<div><b>{escape(query.text)}</b></div>{found}{definition_list(rows)}</div>"
    )


def _verdict(row: JsonView) -> str:
    """What a turn is worth, and the judge's words."""
    kind = row["kind"]
    if not pd.isna(row["score"]):
        kind = f"{kind}, {_signed(row['score'])}"
    if marks := _text_in(row, "marks"):
        kind += f" ({marks})"
    words = _text_in(row, "verdict")
    return f"{kind}: {words}" if words else kind


def _stop(row: JsonView) -> str:
    """The line below the turn at which the conversation stopped."""
    left = row["turns"] - row["turn"] - 1
    what = "what is below counts as missing" if left else "no turn is left"
    words = f"stopped at turn {row['turn'] + 1}: {what}"
    return f"<div style='border-top:2px solid;padding-top:2px'><b>{words}</b></div>"


def _color(kind: str) -> str:
    # imported here, for it brings the libraries that draw figures
    from vrag_kit.plotting.style import CLUE, GREY, PALETTE

    colors: Mapping[str, str] = {"correct": CLUE, "incorrect": PALETTE[1]}
    return colors.get(kind, GREY)


def _text_in(row: JsonView, column: str) -> str:
    """The words in a column; "" where there are none."""
    words = row.get(column)
    return words if isinstance(words, str) else ""


def _signed(score: float) -> str:
    return f"{score:.3g}".replace("-", "−")
