"""Writes one of the suite's drawn data sets."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.fieldguide.suite.charts import write_charts
from vrag_kit.fieldguide.suite.counts import plan_counts
from vrag_kit.fieldguide.suite.edition import Edition
from vrag_kit.fieldguide.suite.printed import PAGE_SETS
from vrag_kit.fieldguide.suite.sheets import write_pages
from vrag_kit.fieldguide.suite.truth import Shown
from vrag_kit.fieldguide.suite.webqa import write_webqa
from vrag_kit.fieldguide.suite.world import Life

WEBQA = "WebQA"
CHARTS = "Chart-MRAG"


def write_data_set(
    name: str, edition: Edition, known: tuple[Life, ...], room: Path, guide: Path
) -> Shown:
    """Write a data set of an edition into its folder `room`, about the species `known`;
    returns what its documents show. `guide` is the drawn Field Guide.
    """
    seed = f"{edition.seed}/{name}"
    if name == WEBQA:
        return write_webqa(guide, known, room, seed)
    if name == CHARTS:
        return write_charts(*plan_counts(known, edition.counts, seed), room)
    return write_pages(PAGE_SETS[name](known, edition.pages, seed), room)
