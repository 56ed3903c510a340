"""Answers with the prompt as it was sent: browsed one by one, or those whose score flipped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from vrag_kit.analysis.run_comparison import condition_columns, format_setting, side_name
from vrag_kit.benchmarks.datasets.webqa import TsvImage, tsv_image_from_uri
from vrag_kit.benchmarks.images import ImageFile, pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.generation import AnswerStore, build_prompt
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging.scale import require_columns
from vrag_kit.types import Benchmark, Context
from vrag_kit.widgets.browser import Browser
from vrag_kit.widgets.html import Page, card_html, image_html, page_html, render
from vrag_kit.workspace import Workspace

FILTERS = ["model", "setting", "k", "draw", "outcome", "status", "score"]
"""Columns of answers that may become filters; those with a single value do not."""
_FACTS = ["outcome", "score", "verdict", "model", "setting", "k", "draw"]
"""Columns that a card has below the answer, if the table has them."""
SIDE = 144
"""Longer side of an image of a prompt, in pixels."""


def browse_answers(
    benchmark: Benchmark, answers: pd.DataFrame, at: Workspace | None = None
) -> Browser:
    """Return a panel to browse `answers`: a table of `ask_models`, judged or not, or a part of it.

    With `at`, a card shows the prompt as it was sent, with its images; without it, the
    images of doc_ids. Relevant images are framed. Filters are the columns of `FILTERS` that differ.
    Raises `VragError` for a table without the columns query_id, answer and doc_ids.
    """
    labels = answers[[name for name in FILTERS if name in answers]].astype(str)
    cards = _answer_cards(benchmark, answers, at)
    return Browser(labels.reset_index(drop=True), cards, "answer")


def answers_page(benchmark: Benchmark, answers: pd.DataFrame, at: Workspace | None = None) -> Page:
    """Return all rows as static HTML, one below another, otherwise as `browse_answers`; all text is
    escaped.
    """
    cards = _answer_cards(benchmark, answers, at)
    return page_html(map(cards, range(len(answers))), "no such answer")


def show_prompt(benchmark: Benchmark, context: Context, prompts: PromptSet) -> Page:
    """Return a query as a model receives it, as static HTML: the images and the text of its prompt
    in order, below the accepted answers. Relevant images are framed; nothing is asked. Raises as
    `build_prompt` does.
    """
    query = benchmark.queries[context.query_id]
    facts = {"setting": context.setting, "accepted answers": " | ".join(query.answers)}
    relevant = [benchmark.corpus[name].image for name in benchmark.relevant(query.query_id)]
    parts: list[Markup] = []
    for message in build_prompt(benchmark, context, prompts):
        for part in message.parts:
            if isinstance(part, str):
                parts.append(Markup("<pre style='white-space: pre-wrap'>{}</pre>").format(part))
            else:
                kind = "relevant" if part in relevant else ""
                parts.append(image_html(part, caption=kind, kind=kind, side=SIDE))
    return page_html([card_html(query.text, facts, parts)], "")


def _answer_cards(
    benchmark: Benchmark, answers: pd.DataFrame, at: Workspace | None
) -> Callable[[int], Markup]:
    """Return a function that makes the card of a row."""
    require_columns(answers, ["query_id", "answer", "doc_ids"], "browse_answers")
    prompts = SentPrompts()

    def card(number: int) -> Markup:
        row = answers.iloc[number]
        query = benchmark.queries[row["query_id"]]
        answer = row["answer"] if isinstance(row["answer"], str) else ""
        facts = {
            "accepted answers": " | ".join(query.answers),
            "answer": answer or f"({row.get('status', 'none')})",
            **{name: row[name] for name in _FACTS if name in row and pd.notna(row[name])},
        }
        if query.choices:
            facts["options"] = " | ".join(query.choices)
        relevant = benchmark.relevant(query.query_id)
        evidence = [image_html(query.image, caption="asked about")]
        if at is not None and row.get("answer_id"):
            images = [benchmark.corpus[doc_id].image for doc_id in relevant]
            places = {image.where for image in images if image is not None}
            prompt = prompts.read(at.answers_file, row["answer_id"])
            evidence.append(prompt_html(prompt, "prompt as sent", places))
        else:
            for position, doc_id in enumerate(row["doc_ids"], start=1):
                kind = "relevant" if doc_id in relevant else ""
                caption = kind or f"image {position}"
                image = benchmark.corpus[doc_id].image
                evidence.append(image_html(image, caption=caption, kind=kind))
        return card_html(query.text, facts, evidence)

    return card


def flips_page(flipped: pd.DataFrame) -> Page:
    """Return the rows of `flips` as static HTML, one below another.
    All text is escaped.
    """
    return page_html(flip_cards(flipped), "no answer changed its score")


def flip_cards(flipped: pd.DataFrame) -> list[Markup]:
    """Return an HTML card for each row of `flips`: the question, the accepted answers, both answers
    with their scores, and the images and text of both prompts, read from the stores. Equal prompts
    are shown once. Relevant images have a frame.
    """
    by = condition_columns(flipped)
    with closing(SentPrompts()) as prompts:
        return [_flip_card(row, by, prompts) for row in flipped.to_dict("records")]


def _flip_card(row: Mapping[Hashable, Any], by: Sequence[str], prompts: SentPrompts) -> Markup:
    """The card of a row; Any: cells of a table."""
    facts = {"accepted answers": row["references"]}
    sent = {}
    for side in "ab":
        name = side_name(side.upper(), row[side])
        answer = row[f"answer_{side}"]
        if not isinstance(answer, str) or not answer:
            answer = f"({row[f'status_{side}']})"
        facts[name] = f"{answer}   → {float(row[f'score_{side}']):g}"
        store = project_path(str(row[f"store_{side}"]))
        prompt = prompts.read(store, str(row[f"answer_id_{side}"]))
        sent[name] = prompt, row.get(f"relevant_images_{side}") or ()
    (first, relevant), (second, _) = sent.values()
    if first == second:
        sent = {"both prompts": (first, relevant)}
    conditions = [
        format_setting(name, row[name]) if name == "setting" else f"{name} {row[name]}"
        for name in (*by, "stratum", "query_id", "draw")
        if row[name] != ""
    ]
    evidence = [prompt_html(prompt, name, relevant) for name, (prompt, relevant) in sent.items()]
    return card_html(str(row["question"]), facts, evidence, note=", ".join(conditions))


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """The images and the text of a prompt, in order; images are the same if their pixels are."""

    pixels: tuple[str, ...] = ()
    """Hashes of the images."""
    text: str = ""
    missing: str = ""
    """Why the prompt is unavailable; "" where it is available."""
    sources: tuple[str, ...] = field(default=(), compare=False)
    """Where the images were when they were sent."""
    places: tuple[str, ...] = field(default=(), compare=False)
    """Where they are now."""


class SentPrompts:
    """Reads prompts from the stores of answers, which are opened when first needed."""

    def __init__(self) -> None:
        self._stores: dict[Path, AnswerStore] = {}

    def read(self, path: Path, answer_id: str) -> SentPrompt:
        """Return the prompt of an answer in the store at `path`."""
        if not path.is_file():
            return SentPrompt(missing=f"the store of its answers is not at {path}")
        if path not in self._stores:
            self._stores[path] = AnswerStore(path)
        store = self._stores[path]
        try:
            messages = store.prompt(answer_id)
        except VragError as error:
            return SentPrompt(missing=str(error))
        parts = list(chain.from_iterable(message["parts"] for message in messages))
        images = [part for part in parts if not isinstance(part, str)]
        return SentPrompt(
            pixels=tuple(image["pixels"] for image in images),
            text="\n".join(part for part in parts if isinstance(part, str)).strip(),
            sources=tuple(image["image"] for image in images),
            places=tuple(_current_place(image, store) for image in images),
        )

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()


def prompt_html(prompt: SentPrompt, title: str, relevant: Collection[str]) -> Markup:
    """Return the images of a prompt and its text, folded, as HTML. Images whose place is in
    `relevant`, now or when they were sent, are framed.
    """
    images = [
        _image(place, source in relevant or place in relevant)
        for source, place in zip(prompt.sources, prompt.places, strict=True)
    ]
    return render("prompt.html", prompt=prompt, title=title, images=images)


def _current_place(part: Mapping[str, str], store: AnswerStore) -> str:
    """Return where an image is now: where it was when it was sent, where else the same pixels were
    seen since, or below this project as it was below another one.
    """
    known = part["image"]
    for place in (known, *store.image_uris(part["pixels"])):
        if _lazy_image(place).path.is_file():
            return place
    parts = Path(known).parts
    for start in range(1, len(parts)):
        place = str(project_path(str(Path(*parts[start:]))))
        with suppress(VragError):
            if pixel_hash(_lazy_image(place).open()) == part["pixels"]:
                return place
    return known


@cache
def _image(place: str, relevant: bool) -> Markup:
    kind = "relevant" if relevant else ""
    return image_html(_lazy_image(place), caption=kind, kind=kind, side=SIDE)


def _lazy_image(place: str) -> ImageFile | TsvImage:
    return tsv_image_from_uri(place) or ImageFile(Path(place))
