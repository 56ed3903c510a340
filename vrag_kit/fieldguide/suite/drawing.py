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

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.fieldguide.pages import hash_of_modules
from vrag_kit.fieldguide.suite.charts import write_charts
from vrag_kit.fieldguide.suite.counts import plan_counts
from vrag_kit.fieldguide.suite.edition import EDITIONS, Edition
from vrag_kit.fieldguide.suite.printed import PAGE_SETS
from vrag_kit.fieldguide.suite.sheets import write_pages
from vrag_kit.fieldguide.suite.truth import Shown, write_truth
from vrag_kit.fieldguide.suite.webqa import write_webqa
from vrag_kit.fieldguide.suite.world import Life, lives
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.plain import Json
from vrag_kit.progress import track

WEBQA = "WebQA"
CHARTS = "Chart-MRAG"
_DRAWN_BY = ("shapes", "traits", "views", "album", "plates", "pages", "articles", "captions")
_WRITTEN_BY = (
    "charts",
    "counts",
    "drawing",
    "edition",
    "facts",
    "paper",
    "parquet",
    "printed",
    "sheets",
    "truth",
    "webqa",
    "world",
)


def draw_suite(edition: str, folder: Path | str, guide: Path | str) -> Path:
    """Draw an edition ("full" or "small") into `folder` unless it is there already;
    returns the folder. `guide` is the drawn Field Guide of the same edition.

    Raises `VragError` for an unknown edition, another guide, and a folder that holds
    other data or cannot be written.
    """
    if edition not in EDITIONS:
        raise VragError(
            f"unknown edition {edition!r} of the drawn suite; expected one of"
            f" {', '.join(map(repr, EDITIONS))}."
        )
    folder, guide = Path(folder), Path(guide)
    told = _read(guide / "guide.json")
    if told.get("edition") != EDITIONS[edition].guide or not told.get("complete"):
        raise VragError(
            f"{guide}: not the complete {EDITIONS[edition].guide} Field Guide, which this edition"
            " is drawn from. Draw it by draw_field_guide."
        )
    note = {"edition": edition, **asdict(EDITIONS[edition]), "drawn_by": _hash(), "guide": told}
    done = {**note, "complete": True}
    if _read(folder / "edition.json") == done:
        return folder
    try:
        with one_at_a_time(folder, "drawing the suite"):
            if _read(folder / "edition.json") != done:
                _make_room(folder)
                write_file(folder / "edition.json", json.dumps({**note, "complete": False}))
                _draw(EDITIONS[edition], folder, guide)
                write_file(folder / "edition.json", json.dumps(done, indent=1))
    except OSError as error:
        raise VragError(
            f"{error.filename or folder}: the suite cannot be drawn ({error.strerror or error})."
            " Choose a folder with write access and 40 MB free."
        ) from error
    return folder


def folder_of(data_set: str) -> str:
    """The name of its folder: that of the paper in lower case."""
    return data_set.lower()


def truth_file(folder: Path, data_set: str) -> Path:
    """Where it stands what the documents of a data set show."""
    return folder / "truth" / f"{folder_of(data_set)}.jsonl"


def _make_room(folder: Path) -> None:
    """Remove what other code or another edition drew."""
    rooms = [folder / folder_of(name) for name in (WEBQA, CHARTS, *PAGE_SETS, "truth")]
    there = [room for room in rooms if room.exists()]
    if there and not _read(folder / "edition.json"):
        raise VragError(
            f"{folder}: holds {there[0].name!r}, which was not drawn by this kit. Choose another"
            " folder."
        )
    for room in there:
        shutil.rmtree(room)


def _draw(edition: Edition, folder: Path, guide: Path) -> None:
    known = lives(edition.guide, edition.others)
    names = [WEBQA, CHARTS, *PAGE_SETS]
    for name in track(names, f"drawing the suite ({edition.seed})", len(names), "data sets"):
        write_truth(_draw_one(name, edition, known, folder, guide), truth_file(folder, name))


def _draw_one(
    name: str, edition: Edition, known: tuple[Life, ...], folder: Path, guide: Path
) -> Shown:
    seed = f"{edition.seed}/{name}"
    room = folder / folder_of(name)
    if name == WEBQA:
        return write_webqa(guide, known, room, seed)
    if name == CHARTS:
        return write_charts(*plan_counts(known, edition.counts, seed), room)
    return write_pages(PAGE_SETS[name](known, edition.pages, seed), room)


def _hash() -> str:
    """Changes with the code that draws an edition."""
    here = [Path(__file__).parent / f"{name}.py" for name in _WRITTEN_BY]
    own = hashlib.sha256(b"".join(path.read_bytes() for path in here)).hexdigest()[:16]
    return f"{hash_of_modules(_DRAWN_BY)}-{own}"


def _read(path: Path) -> Json:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
