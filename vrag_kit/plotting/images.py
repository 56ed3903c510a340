"""Figures of images: those of a question, those that retrievers return, contact sheets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from string import ascii_uppercase
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import blended_transform_factory
from PIL import Image

from vrag_kit.plotting.style import (
    EVIDENCE,
    PAGE,
    SMALL,
    display_name,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.types import Benchmark, Document, LazyImage, Query


@dataclass(frozen=True, slots=True)
class Tile:
    """An image of a grid, with text above and below."""

    image: LazyImage | None
    """None leaves the place to the text below."""
    title: str = ""
    below: str = ""
    frame: str = ""
    """The colour of a thick frame; "" for a thin grey one."""
    region: Sequence[float] = ()
    """A part of the image that is marked: left, top, right, bottom, as shares of its sides."""


def image_grid(
    rows: Mapping[str, Sequence[Tile]], *, height: float = 0.0, title: str = "", caption: str = ""
) -> Figure:
    """Draws rows of images: the label of a row, at its left, → its tiles. A row is `height` inches
    high; as high as its images are wide for 0.
    """
    across = max(1, max(map(len, rows.values()), default=1))
    room = (PAGE - 0.4) / across - 0.1
    lines = [fit(tile.below, room).count("\n") for tile in chain(*rows.values()) if tile.image]
    text = 0.13 * (1 + max(lines, default=-1))
    high = height or min(room, 1.5) + 0.3 + text
    tall = (high + 0.15) * len(rows) + 0.45
    apart = {"hspace": 0.12}  # between the text of a row and the next row's, in rows
    figure, axes = new_figure(len(rows), across, height=tall, gridspec_kw=apart)
    for line, (label, tiles) in zip(axes, rows.items(), strict=True):
        for axis in line:
            axis.set(xticks=[], yticks=[], frame_on=False)
            axis.grid(visible=False)
        for axis, tile in zip(line, tiles, strict=False):
            if tile.image is not None:
                picture = tile.image.open()
                picture.thumbnail((256, 256))
                axis.imshow(np.asarray(picture))
                axis.set(frame_on=True, anchor="N")
                axis.set_xlabel(fit(tile.below, room), fontsize=SMALL)
                if tile.region:
                    box = np.multiply(tile.region, [*picture.size, *picture.size])
                    mark = Rectangle(tuple(box[:2]), *(box[2:] - box[:2]), fill=False)
                    axis.add_patch(mark).set(edgecolor="white", linewidth=1.5)
            else:
                axis.set_frame_on(bool(tile.frame))
                words = axis.text(0.5, 0.5, fit(tile.below, room - 0.1), fontsize=SMALL)
                words.set(ha="center", va="center", transform=axis.transAxes)
            for spine in axis.spines.values():
                spine.set(visible=True, linewidth=2 if tile.frame else 0.6)
                spine.set_color(tile.frame or EVIDENCE["other"])
            axis.set_title(fit(tile.title, room), fontsize=SMALL, loc="center")
        line[0].set_ylabel(fit(label, high - 0.2, 7.5), fontsize=7.5)
    set_caption(figure, title, caption)
    figure.draw_without_rendering()  # the layout fits high images in its second pass only
    if any(map(str.strip, rows)):  # the labels of rows at one place, left of the widest image
        labels = [line[0].yaxis.label for line in axes]
        left = min(label.get_position()[0] for label in labels) / figure.bbox.width
        for line in axes:
            along = blended_transform_factory(figure.transFigure, line[0].transAxes)
            line[0].yaxis.set_label_coords(left, 0.5, transform=along)
    return figure


def draw_thumbnail(
    axis: Axes, picture: Image.Image, corner: tuple[float, float], side: float, *, framed: bool
) -> None:
    """Draws a square picture with its lower left `corner` there, `side` wide; framed as gold."""
    left, low = corner
    axis.imshow(np.asarray(picture), extent=(left, left + side, low, low + side))
    if framed:
        frame = Rectangle(corner, side, side, fill=False, linewidth=2)
        axis.add_patch(frame).set_edgecolor(EVIDENCE["gold"])


def document_tile(
    benchmark: Benchmark, query_id: str, doc_id: str, title: str = "", gold: str = "gold"
) -> Tile:
    """A document's image, or the beginning of its text: framed and called `gold` where it answers
    the question.
    """
    document = benchmark.corpus.get(doc_id) or Document(doc_id=doc_id, text=doc_id)
    text = "" if document.image else shorten(document.text or doc_id, 90, placeholder=" …")
    if benchmark.qrels.get(query_id, {}).get(doc_id, 0) <= 0:
        return Tile(document.image, title, text)
    return Tile(document.image, f"{title} · {gold}" if title else gold, text, EVIDENCE["gold"])


def answer_gallery(
    benchmark: Benchmark,
    answers: pd.DataFrame,
    *,
    most: int = 8,
    title: str = "",
    caption: str = "",
) -> Figure:
    """Draws the first answers of the table, at most one a question and `most` in all, each with the
    question's image, or else the first that was shown. Above: the answer; below: the question, cut
    where long, the accepted answers (with their letter if options) and, of several, the model.
    `answers` has the columns query_id, answer, model and doc_ids.
    """
    tiles, several = [], answers["model"].nunique() > 1
    for row in answers.drop_duplicates("query_id").head(most).to_dict("records"):
        query = benchmark.queries[row["query_id"]]
        images = [benchmark.corpus[each].image for each in row["doc_ids"] if not query.image]
        image = next((each for each in images if each), query.image)
        options = zip(ascii_uppercase, query.choices, strict=False)
        letters = {option: f"({letter}) {option}" for letter, option in options}
        named = [letters.get(each, each) for each in query.answers]
        accepted = " | ".join(named)
        room = max(60, 165 - max(45, len(accepted)))
        question = shorten(query.text, room, placeholder="\N{NO-BREAK SPACE}…")
        answer = f"“{shorten(row['answer'], 90, placeholder=' …') or '(empty)'}”"
        below = f"{question}\naccepted: {accepted}" + f"\nmodel: {row['model']}" * several
        tiles.append(Tile(image, answer, below))
    rows = {" " * place: tiles[place : place + 4] for place in range(0, len(tiles), 4)}
    above = "Above: the answer; below: the question and the accepted answers."
    return image_grid(rows, title=title, caption=f"{caption} {above}")


def question_images(queries: Mapping[str, Query], *, title: str = "", caption: str = "") -> Figure:
    """Draws the image of each query (title → query), with the question below, at most four
    in a row.
    """
    tiles = [Tile(query.image, name, query.text) for name, query in queries.items()]
    across = 3 if len(tiles) in (3, 5, 6, 9) else 4
    rows = {" " * place: tiles[place : place + across] for place in range(0, len(tiles), across)}
    return image_grid(rows, title=title, caption=caption)


def retrieved_images(
    benchmark: Benchmark,
    query_id: str,
    runs: Mapping[str, pd.DataFrame],
    k: int = 6,
    gold: str = "gold",
) -> Figure:
    """Draws the first k images that each retriever returned for one question; gold ones are framed
    and called `gold`. The question's own image, if any, is in a row above.
    """
    query = benchmark.queries[query_id]
    rows = {} if query.image is None else {"question": [Tile(query.image, "the question's image")]}
    for name, run in runs.items():
        found = run[(run["query_id"] == query_id) & (run["rank"] <= k)].sort_values("rank")
        ranked = zip(found["doc_id"], found["rank"], strict=True)
        rows[name] = [
            document_tile(benchmark, query_id, doc_id, f"rank {rank}", gold)
            for doc_id, rank in ranked
        ]
    clues, labelled = benchmark.relevant(query_id), len(benchmark.qrels[query_id])
    held = [sum(bool(tile.frame) for tile in rows[name]) for name in runs]
    counts = [f"{n} for {display_name(name)}" for n, name in zip(held, runs, strict=True)]
    return image_grid(
        rows,
        title=f"Images that show the answer among the first {k}: {', '.join(counts)}\n{query.text}",
        caption=f"""The first {k} images of each retriever. Framed ({gold}): images that show the
        answer; {len(clues)} of the {labelled} labelled images do. {_accepted(query)}""",
    )


def contact_sheet(benchmark: Benchmark, query_id: str, gold: str = "gold") -> Figure:
    """Draws up to four gold images, called `gold`, and eight other candidates of one question, in
    the order of the annotations. The question's own image, if any, comes before them.
    """
    query, labels = benchmark.queries[query_id], benchmark.qrels[query_id]
    first = [doc_id for doc_id, label in labels.items() if label > 0][:4]
    first += [doc_id for doc_id, label in labels.items() if label <= 0][:8]
    tiles = [] if query.image is None else [Tile(query.image, "the question's image")]
    tiles += [document_tile(benchmark, query_id, each, gold=gold) for each in first]
    rows = {" " * place: tiles[place : place + 6] for place in range(0, len(tiles), 6)}
    held = sum(labels[each] > 0 for each in first)
    return image_grid(
        rows,
        title=query.text,
        caption=f"""{len(first)} of {len(labels)} labelled images: the first that show the answer,
        and the first others. Framed ({gold}): {held} of the {len(benchmark.relevant(query_id))}
        images that show the answer. {_accepted(query)}""",
    )


def _accepted(query: Query) -> str:
    return f"Accepted answers: {', '.join(query.answers[:3])}."
