"""Generates the synthetic MRAG-Suite from the Field Guide, in the layouts of its data sets.

    <folder>/webqa/WebQA_train_val.json     snippets beside the guide's captioned images
    <folder>/chart-mrag/rows/…              as saved by `save_to_disk`
    <folder>/chart-mrag/text_corpus.jsonl   the sentences
    <folder>/chart-mrag/chart_texts.jsonl   the words of each chart
    <folder>/visrag-…/corpus, queries, qrels, page_texts.jsonl
                                            four page data sets, and the words of their pages
    <folder>/truth/<data set>.jsonl         what every document shows
    <folder>/edition.json                   edition and version; complete once all is written

Visual-RAG and MRAG-Bench have synthetic editions of their own. The same edition gives the same
bytes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.log import track
from vrag_kit.synthetic.generate import generate_once, read_note
from vrag_kit.synthetic.mrag_suite.charts import write_charts
from vrag_kit.synthetic.mrag_suite.facts import write_ground_truth
from vrag_kit.synthetic.mrag_suite.pages import PAGE_SETS, write_pages
from vrag_kit.synthetic.mrag_suite.species import EDITIONS, extra_species, suite_species
from vrag_kit.synthetic.mrag_suite.webqa import write_webqa

WEBQA = "WebQA"
CHARTS = "Chart-MRAG"
DRAWN_HERE = (WEBQA, CHARTS, *PAGE_SETS)
"""The data sets without an edition of their own."""


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
    outputs = [*map(str.lower, DRAWN_HERE), "truth"]
    draw = partial(_draw, edition, Path(guide))
    return generate_once(
        "field-guide-mrag-suite", edition, EDITIONS, folder, draw, outputs, guide_note=note
    )


def ground_truth_file(folder: Path, dataset: str) -> Path:
    """Return the file with what the documents of a data set show."""
    return folder / "truth" / f"{dataset.lower()}.jsonl"


def _draw(edition: str, guide: Path, folder: Path) -> None:
    size = EDITIONS[edition]
    others = extra_species(size)
    for name in track(DRAWN_HERE, f"drawing the suite ({size.seed})", len(DRAWN_HERE), "data sets"):
        seed, room = f"{size.seed}/{name}", folder / name.lower()
        if name == WEBQA:
            shown = write_webqa(guide, suite_species(size), seed, room)
        elif name == CHARTS:
            shown = write_charts(others, size.counts, seed, room)
        else:
            shown = write_pages(*PAGE_SETS[name](others, size.pages, seed), room)
        write_ground_truth(shown, ground_truth_file(folder, name))
