"""MRAG-Suite drawn from the Field Guide, in the layouts of its data sets.

    <folder>/webqa/WebQA_train_val.json     snippets beside the guide's captioned pictures
    <folder>/chart-mrag/rows/…              as saved by `save_to_disk`
    <folder>/chart-mrag/text_corpus.jsonl   the sentences
    <folder>/chart-mrag/chart_texts.jsonl   what the bars of each chart say, in sentences
    <folder>/visrag-…/corpus, queries, qrels, page_texts.jsonl
                                            four page data sets, and the words of their pages
    <folder>/truth/<data set>.jsonl         what every document shows or tells
    <folder>/edition.json                   edition and version; complete once all is written

Visual-RAG and MRAG-Bench have drawn editions of their own. The same edition gives the
same bytes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.log import track
from vrag_kit.synthetic.generate import generate_once, read_note
from vrag_kit.synthetic.mrag_suite.data_sets import CHARTS, WEBQA, write_dataset
from vrag_kit.synthetic.mrag_suite.edition import EDITIONS
from vrag_kit.synthetic.mrag_suite.ground_truth import write_ground_truth
from vrag_kit.synthetic.mrag_suite.page_questions import PAGE_SETS
from vrag_kit.synthetic.mrag_suite.species_facts import extra_species, suite_species

_NAMES = (WEBQA, CHARTS, *PAGE_SETS)


def generate_suite(edition: str, folder: Path | str, guide: Path | str) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.

    `guide` is the Field Guide of the same edition. Raises `VragError` for another guide, and as
    `generate_once` does.
    """
    note = read_note(Path(guide))
    wanted = EDITIONS[edition].guide if edition in EDITIONS else note.get("edition")
    if (note.get("edition"), note.get("complete")) != (wanted, True):
        raise VragError(
            f"{guide}: not the complete {wanted} Field Guide, which this edition is drawn from."
            " Draw it by generate_field_guide."
        )
    outputs = [*map(dataset_folder, _NAMES), "truth"]
    draw = partial(_draw, edition, Path(guide))
    return generate_once(
        "field-guide-mrag-suite", edition, EDITIONS, folder, draw, outputs, guide_note=note
    )


def dataset_folder(data_set: str) -> str:
    """The name of its folder: that of the paper in lower case."""
    return data_set.lower()


def ground_truth_file(folder: Path, data_set: str) -> Path:
    """Where it stands what the documents of a data set show."""
    return folder / "truth" / f"{dataset_folder(data_set)}.jsonl"


def _draw(edition: str, guide: Path, folder: Path) -> None:
    size = EDITIONS[edition]
    known, others = suite_species(size), extra_species(size)
    for name in track(_NAMES, f"drawing the suite ({size.seed})", len(_NAMES), "data sets"):
        about = known if name == WEBQA else others
        shown = write_dataset(name, size, about, folder / dataset_folder(name), guide)
        write_ground_truth(shown, ground_truth_file(folder, name))
