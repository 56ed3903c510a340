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

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.log import track
from vrag_kit.synthetic.editions import DRAWN_SUITE, generate_once, read_note
from vrag_kit.synthetic.mrag_suite.charts import write_charts
from vrag_kit.synthetic.mrag_suite.facts import write_ground_truth
from vrag_kit.synthetic.mrag_suite.pages import PAGE_SETS, write_pages
from vrag_kit.synthetic.mrag_suite.species import EDITIONS, extra_species, suite_species
from vrag_kit.synthetic.mrag_suite.webqa import write_webqa
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.workspace import path as project_path

WEBQA = "WebQA"
CHARTS = "Chart-MRAG"
DRAWN_HERE = (WEBQA, CHARTS, *PAGE_SETS)
"""The data sets without an edition of their own."""


def generate_suite(suite: str, folder: Path | str = "") -> tuple[Path, Path]:
    """Generate the edition of this name in `folder`, data/<name> unless given, and the Field Guide
    that it is about, unless they exist; returns both folders. Raises as `suite_edition` and
    `generate_once` do.
    """
    edition = suite_edition(suite)
    guide = generate_field_guide(edition, project_path(sibling_folder(suite, "")))
    target = generate_once(
        "field-guide-mrag-suite",
        edition,
        EDITIONS,
        folder or project_path(f"data/{suite}"),
        partial(_draw, edition, guide),
        [*map(str.lower, DRAWN_HERE), "truth"],
        guide_note=read_note(guide),
    )
    return target, guide


def suite_edition(suite: str) -> str:
    """Return the edition of a synthetic suite, "full" or "small", by its name; raises `VragError`,
    with the nearest name, for another one.
    """
    if suite not in DRAWN_SUITE:
        hint = did_you_mean(suite, DRAWN_SUITE)
        raise VragError(
            f"mrag_suite is {suite!r}; expected {' or '.join(map(repr, DRAWN_SUITE))}, which are"
            f" generated, or a mapping of data sets.{hint}"
        )
    return DRAWN_SUITE[suite]


def sibling_folder(suite: str, benchmark: str) -> str:
    """Return the folder of the same edition of another benchmark, "-mrag-bench" or, for the Field
    Guide itself, "".
    """
    return f"data/{suite.replace('-mrag-suite', benchmark)}"


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
