"""Read prompts as they were sent from answer stores, and show them in HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path

from vrag_kit.benchmarks.datasets.webqa import TsvImage, tsv_image_from_uri
from vrag_kit.benchmarks.images import ImageFile, pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore
from vrag_kit.widgets.images import image_html
from vrag_kit.workspace import path as project_path

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


class SentPrompts:
    """Prompts of the stores that answers name, opened when first needed."""

    def __init__(self) -> None:
        self._stores: dict[Path, AnswerStore] = {}

    def read(self, store: Path, answer_id: str) -> PromptContent:
        """Return the prompt of an answer."""
        if not store.is_file():
            return PromptContent(missing=f"the store of its answers is not at {store}")
        if store not in self._stores:
            self._stores[store] = AnswerStore(store)
        try:
            messages = self._stores[store].prompt(answer_id)
        except VragError as error:
            return PromptContent(missing=str(error))
        pictures, words = [], []
        for message in messages:
            for part in message["parts"]:
                if isinstance(part, str):
                    words.append(part)
                else:
                    where = _current_place(part, self._stores[store])
                    pictures.append(PromptImage(part["pixels"], where))
        return PromptContent(tuple(pictures), "\n".join(words).strip())

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()


def prompt_html(
    prompt: PromptContent, title: str, is_relevant: Callable[[PromptImage], bool]
) -> str:
    """Return the images of a prompt, relevant ones framed, and its text, folded, as HTML."""
    if prompt.missing:
        return f"<p><i>{escape(title)}: {escape(prompt.missing)}</i></p>"
    count = f"images: {len(prompt.pictures)}"
    pictures = [_image(each.where, is_relevant(each)) for each in prompt.pictures]
    return (
        f"<div><small>{escape(title)}, {count}</small><br>{''.join(pictures)}"
        "<details><summary style='cursor:pointer'>the text of the prompt</summary>"
        f"<div style='white-space:pre-wrap'>{escape(prompt.words)}</div></details></div>"
    )


def _current_place(part: Mapping[str, str], store: AnswerStore) -> str:
    """Return where an image is now: where it was when it was sent, where else the same pixels were
    seen since, or below this project as it was below another one.
    """
    known = part["image"]
    there = filter(_exists, (known, *store.image_uris(part["pixels"])))
    if found := next(there, ""):
        return found
    parts = Path(known).parts
    ends = [str(project_path(str(Path(*parts[start:])))) for start in range(1, len(parts))]
    same = (end for end in ends if _exists(end) and _pixels(end) == part["pixels"])
    return next(same, known)


def _exists(where: str) -> bool:
    return _lazy_image(where).path.is_file()


def _pixels(where: str) -> str:
    """Return the hash of an image's pixels; "" if it cannot be read."""
    try:
        return pixel_hash(_lazy_image(where).open())
    except VragError:
        return ""


@cache
def _image(where: str, relevant: bool) -> str:
    # imported here, for it brings the libraries that draw figures
    from vrag_kit.plotting.style import CLUE

    caption, frame = ("relevant", CLUE) if relevant else ("", "transparent")
    return image_html(_lazy_image(where), caption=caption, frame=frame, side=SIDE)


def _lazy_image(where: str) -> ImageFile | TsvImage:
    return tsv_image_from_uri(where) or ImageFile(Path(where))
