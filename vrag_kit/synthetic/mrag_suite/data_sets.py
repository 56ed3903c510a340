"""Writes one of the suite's drawn data sets."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.synthetic.mrag_suite.chart_questions import plan_chart_data
from vrag_kit.synthetic.mrag_suite.charts import write_charts
from vrag_kit.synthetic.mrag_suite.edition import MragSuiteEdition
from vrag_kit.synthetic.mrag_suite.ground_truth import Shown
from vrag_kit.synthetic.mrag_suite.page_questions import PAGE_SETS
from vrag_kit.synthetic.mrag_suite.species_facts import SpeciesFacts
from vrag_kit.synthetic.mrag_suite.visrag_writer import write_pages
from vrag_kit.synthetic.mrag_suite.webqa import write_suite_webqa

WEBQA = "WebQA"
CHARTS = "Chart-MRAG"


def write_dataset(
    name: str, edition: MragSuiteEdition, known: tuple[SpeciesFacts, ...], room: Path, guide: Path
) -> Shown:
    """Write a data set of an edition into its folder `room`, about the species `known`;
    returns what its documents show. `guide` is the drawn Field Guide.
    """
    seed = f"{edition.seed}/{name}"
    if name == WEBQA:
        return write_suite_webqa(guide, known, room, seed)
    if name == CHARTS:
        return write_charts(*plan_chart_data(known, edition.counts, seed), room)
    return write_pages(PAGE_SETS[name](known, edition.pages, seed), room)
