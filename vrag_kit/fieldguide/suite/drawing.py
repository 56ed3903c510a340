"""MRAG-Suite drawn from the Field Guide, in the layouts of its data sets.

    <folder>/webqa/WebQA_train_val.json     snippets beside the guide's captioned pictures
    <folder>/chart-mrag/rows/…              as saved by `save_to_disk`
    <folder>/chart-mrag/text_corpus.jsonl   the sentences
    <folder>/chart-mrag/chart_texts.jsonl   what the bars of each chart say, in sentences
    <folder>/visrag-…/corpus, queries, qrels, page_texts.jsonl
                                            four page data sets, and the words of their pages
    <folder>/truth/<data set>.jsonl         what every document shows or tells
    <folder>/edition.json                   edition and hash of the code; complete once all
                                            is written

Visual-RAG and MRAG-Bench have drawn editions of their own. The same edition gives the
same bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.fieldguide.drawn import Drawing, check_edition, draw_once, make_room
from vrag_kit.fieldguide.stamps import drawn_by
from vrag_kit.fieldguide.suite.data_sets import CHARTS, WEBQA, write_data_set
from vrag_kit.fieldguide.suite.edition import EDITIONS, Edition
from vrag_kit.fieldguide.suite.printed import PAGE_SETS
from vrag_kit.fieldguide.suite.truth import write_truth
from vrag_kit.fieldguide.suite.world import lives, strangers
from vrag_kit.plain import Json
from vrag_kit.progress import track

_DRAWN_BY = ("suite/data_sets", "suite/truth", "suite/world")
"""The modules that decide, with all that they import, what is drawn; besides the guide."""


def draw_suite(edition: str, folder: Path | str, guide: Path | str) -> Path:
    """Draw an edition ("full" or "small") into `folder` unless it is there already;
    returns the folder. `guide` is the drawn Field Guide of the same edition.

    Raises `VragError` for an unknown edition, another guide, and a folder that holds
    other data or cannot be written.
    """
    check_edition(edition, EDITIONS, "the drawn suite")
    size, guide = EDITIONS[edition], Path(guide)
    told = _told_by(guide)
    if told.get("edition") != size.guide or not told.get("complete"):
        raise VragError(
            f"{guide}: not the complete {size.guide} Field Guide, which this edition is drawn"
            " from. Draw it by draw_field_guide."
        )
    note = {"edition": edition, **asdict(size), "drawn_by": drawn_by(*_DRAWN_BY), "guide": told}
    drawing = Drawing(what="the suite", by="draw_suite", megabytes=40)
    return draw_once(folder, note, partial(_draw, size, guide), drawing)


def folder_of(data_set: str) -> str:
    """The name of its folder: that of the paper in lower case."""
    return data_set.lower()


def truth_file(folder: Path, data_set: str) -> Path:
    """Where it stands what the documents of a data set show."""
    return folder / "truth" / f"{folder_of(data_set)}.jsonl"


def _draw(edition: Edition, guide: Path, folder: Path, note: Json) -> None:
    names = [WEBQA, CHARTS, *PAGE_SETS]
    make_room(folder, [folder / folder_of(name) for name in (*names, "truth")], note)
    known, others = lives(edition), strangers(edition)
    for name in track(names, f"drawing the suite ({edition.seed})", len(names), "data sets"):
        about = known if name == WEBQA else others
        shown = write_data_set(name, edition, about, folder / folder_of(name), guide)
        write_truth(shown, truth_file(folder, name))


def _told_by(guide: Path) -> Json:
    """What the guide's own note says; nothing where there is none."""
    try:
        return dict(json.loads((guide / "guide.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
