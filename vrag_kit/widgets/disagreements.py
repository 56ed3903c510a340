"""Show answers of two sides whose scores differ, one by one, with the images of each prompt."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.analysis.run_comparison import condition_columns, format_setting, side_name
from vrag_kit.widgets.cards import definition_list, page_html
from vrag_kit.widgets.sent_prompts import PromptContent, SentPrompts, prompt_html
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from IPython.display import HTML

_Row = Mapping[Hashable, Any]  # Any: cells of a table
"""A row of `flips`."""


def flips_page(flipped: pd.DataFrame) -> HTML:
    """Return the rows of `flips` as static HTML, one below another.
    All text is escaped.
    """
    return page_html(flip_cards(flipped), "no answer changed its score")


def flip_cards(flipped: pd.DataFrame) -> list[str]:
    """Return an HTML card for each row of `flips`: the question, the accepted answers, both answers
    with their scores, and the images and text of both prompts, read from the stores. Equal prompts
    are shown once. Relevant images have a frame.
    """
    by = condition_columns(flipped)
    with closing(SentPrompts()) as prompts:
        return [_card(row, by, prompts) for row in flipped.to_dict("records")]


def _card(row: _Row, by: Sequence[str], prompts: SentPrompts) -> str:
    a, b = _prompt(row, "a", prompts), _prompt(row, "b", prompts)
    told = {name: row[name] for name in (*by, "stratum", "query_id", "draw") if row[name] != ""}
    how = ", ".join(_how(name, value) for name, value in told.items())
    names = {side: side_name(side.upper(), row[side]) for side in "ab"}
    if a == b:
        shown = _held(a, row, "a", "both prompts")
    else:
        shown = _held(a, row, "a", names["a"]) + _held(b, row, "b", names["b"])
    rows = {
        "accepted answers": row["references"],
        names["a"]: _scored_answer(row, "a"),
        names["b"]: _scored_answer(row, "b"),
    }
    return (
        f"<div style='line-height:1.5'><p><b>{escape(str(row['question']))}</b><br>"
        f"<small>{escape(how)}</small></p>{definition_list(rows)}{shown}</div>"
    )


def _how(name: str, value: object) -> str:
    return format_setting(name, value) if name == "setting" else f"{name} {value}"


def _scored_answer(row: _Row, side: str) -> str:
    """An answer with what it earned."""
    said = row[f"answer_{side}"]
    answer = said if isinstance(said, str) and said else f"({row[f'status_{side}']})"
    return f"{answer}   → {float(row[f'score_{side}']):g}"


def _prompt(row: _Row, side: str, prompts: SentPrompts) -> PromptContent:
    store = project_path(str(row[f"store_{side}"]))
    return prompts.read(store, str(row[f"answer_id_{side}"]))


def _held(prompt: PromptContent, row: _Row, side: str, title: str) -> str:
    relevant = set(row.get(f"relevant_pixel_hashes_{side}") or ())
    return prompt_html(prompt, title, lambda image: image.pixels in relevant)
