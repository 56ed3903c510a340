"""Show answers of two sides whose scores differ, one by one, with the images of each prompt."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.analysis.run_comparison import condition_columns, format_setting, side_name
from vrag_kit.benchmarks.images import ImageFile, pixel_hash
from vrag_kit.benchmarks.webqa_images import TsvImage, tsv_image_from_uri
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore
from vrag_kit.widgets.cards import definition_list, page_html
from vrag_kit.widgets.images import image_html
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from IPython.display import HTML

_Row = Mapping[Hashable, Any]  # Any: cells of a table
"""A row of `flips`."""
SIDE = 144
"""Longer side of an image of a prompt, in pixels."""


@dataclass(frozen=True, slots=True)
class PromptImage:
    """An image of a prompt, identified by its pixels."""

    pixels: str
    """Hash of the pixels."""
    where: str = field(compare=False)
    """Its current location."""


@dataclass(frozen=True, slots=True)
class PromptContent:
    """The images and the text of a prompt, in order."""

    pictures: tuple[PromptImage, ...] = ()
    words: str = ""
    missing: str = ""
    """Why the prompt is unavailable; "" where it is available."""


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
    with ExitStack() as opened:
        prompts = _Prompts(opened)
        return [
            _card(row, condition_columns(flipped), prompts) for row in flipped.to_dict("records")
        ]


@dataclass
class _Prompts:
    """Prompts of the stores that answers name, opened when first needed."""

    opened: ExitStack
    stores: dict[str, AnswerStore] = field(default_factory=dict)

    def of(self, row: _Row, side: str) -> PromptContent:
        """What a side's prompt held."""
        place = project_path(str(row[f"store_{side}"]))
        if not place.is_file():
            return PromptContent(missing=f"the store of its answers is not at {place}")
        name = str(place)
        if name not in self.stores:
            self.stores[name] = self.opened.enter_context(AnswerStore(place))
        store = self.stores[name]
        try:
            messages = store.prompt(str(row[f"answer_id_{side}"]))
        except VragError as error:
            return PromptContent(missing=str(error))
        pictures, words = [], []
        for message in messages:
            for part in message["parts"]:
                if isinstance(part, str):
                    words.append(part)
                else:
                    pictures.append(PromptImage(part["pixels"], _found(part, store)))
        return PromptContent(tuple(pictures), "\n".join(words).strip())


def _found(part: Mapping[str, str], store: AnswerStore) -> str:
    """Where a picture is now: where it was when it was asked about, where else the same
    pixels were met since, or below this project as it was below another one.
    """
    known = part["image"]
    there = filter(_is_there, (known, *store.image_uris(part["pixels"])))
    if found := next(there, ""):
        return found
    parts = Path(known).parts
    ends = [str(project_path(str(Path(*parts[start:])))) for start in range(1, len(parts))]
    alike = (end for end in ends if _is_there(end) and _pixels(end) == part["pixels"])
    return next(alike, known)


def _is_there(where: str) -> bool:
    return _image(where).path.is_file()


def _pixels(where: str) -> str:
    """The hash of a picture's pixels; "" for one that cannot be read."""
    try:
        return pixel_hash(_image(where).open())
    except VragError:
        return ""


def _card(row: _Row, by: Sequence[str], prompts: _Prompts) -> str:
    a, b = prompts.of(row, "a"), prompts.of(row, "b")
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


def _held(held: PromptContent, row: _Row, side: str, whose: str) -> str:
    """The pictures of a prompt, and its words, folded."""
    # imported here, for it brings the libraries that draw figures
    from vrag_kit.plotting.style import CLUE

    if held.missing:
        return f"<p><i>{escape(whose)}: {escape(held.missing)}</i></p>"
    relevant = set(row.get(f"relevant_pixel_hashes_{side}") or ())
    count = f"pictures: {len(held.pictures)}"
    pictures = [_picture(each.where, CLUE, each.pixels in relevant) for each in held.pictures]
    return (
        f"<div><small>{escape(whose)}, {count}</small><br>{''.join(pictures)}"
        "<details><summary style='cursor:pointer'>the words of the prompt</summary>"
        f"<div style='white-space:pre-wrap'>{escape(held.words)}</div></details></div>"
    )


@cache
def _picture(where: str, color: str, relevant: bool) -> str:
    caption, frame = ("relevant", color) if relevant else ("", "transparent")
    return image_html(_image(where), caption=caption, frame=frame, side=SIDE)


def _image(where: str) -> ImageFile | TsvImage:
    """The picture of that `where`."""
    return tsv_image_from_uri(where) or ImageFile(Path(where))
