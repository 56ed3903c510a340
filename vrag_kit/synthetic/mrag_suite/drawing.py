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
from vrag_kit.log import track
from vrag_kit.synthetic.generate import EditionSpec, check_edition, clear_outputs, generate_once
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.synthetic.mrag_suite.data_sets import CHARTS, WEBQA, write_dataset
from vrag_kit.synthetic.mrag_suite.edition import EDITIONS, MragSuiteEdition
from vrag_kit.synthetic.mrag_suite.ground_truth import write_ground_truth
from vrag_kit.synthetic.mrag_suite.page_questions import PAGE_SETS
from vrag_kit.synthetic.mrag_suite.species_facts import extra_species, suite_species
from vrag_kit.types import Json

_DRAWN_BY = ("mrag_suite/data_sets", "mrag_suite/ground_truth", "mrag_suite/species_facts")
"""The modules that decide, with all that they import, what is drawn; besides the guide."""


def generate_suite(edition: str, folder: Path | str, guide: Path | str) -> Path:
    """Draw an edition ("full" or "small") into `folder` unless it is there already;
    returns the folder. `guide` is the drawn Field Guide of the same edition.

    Raises `VragError` for an unknown edition, another guide, and a folder that holds
    other data or cannot be written.
    """
    check_edition(edition, EDITIONS, "the drawn suite")
    size, guide = EDITIONS[edition], Path(guide)
    told = _guide_edition(guide)
    if told.get("edition") != size.guide or not told.get("complete"):
        raise VragError(
            f"{guide}: not the complete {size.guide} Field Guide, which this edition is drawn"
            " from. Draw it by generate_field_guide."
        )
    note = {
        "edition": edition,
        **asdict(size),
        "drawn_by": generator_version(*_DRAWN_BY),
        "guide": told,
    }
    drawing = EditionSpec(what="the suite", by="generate_suite", megabytes=40)
    return generate_once(folder, note, partial(_draw, size, guide), drawing)


def dataset_folder(data_set: str) -> str:
    """The name of its folder: that of the paper in lower case."""
    return data_set.lower()


def ground_truth_file(folder: Path, data_set: str) -> Path:
    """Where it stands what the documents of a data set show."""
    return folder / "truth" / f"{dataset_folder(data_set)}.jsonl"


def _draw(edition: MragSuiteEdition, guide: Path, folder: Path, note: Json) -> None:
    names = [WEBQA, CHARTS, *PAGE_SETS]
    clear_outputs(folder, [folder / dataset_folder(name) for name in (*names, "truth")], note)
    known, others = suite_species(edition), extra_species(edition)
    for name in track(names, f"drawing the suite ({edition.seed})", len(names), "data sets"):
        about = known if name == WEBQA else others
        shown = write_dataset(name, edition, about, folder / dataset_folder(name), guide)
        write_ground_truth(shown, ground_truth_file(folder, name))


def _guide_edition(guide: Path) -> Json:
    """What the guide's own note says; nothing where there is none."""
    try:
        return dict(json.loads((guide / "guide.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
