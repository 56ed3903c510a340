"""Check the data sets of MRAG-Suite: a table of unusable rows, truncated shards, labels of
missing pages, missing or damaged images, and oddities; and the size and revision of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.page_rows import splits_in
from vrag_kit.errors import VragError
from vrag_kit.fetching.chart_health import check_charts
from vrag_kit.fetching.page_health import Finding, check_pages
from vrag_kit.fetching.webqa_health import ANNOTATIONS, check_webqa

KINDS = ("row", "missing", "damaged", "odd")
FINDING_COLUMNS = ["kind", "where", "image", "found"]
PAGES = "pages"
CHARTS = "charts"
WEBQA = "webqa"


@dataclass(frozen=True, slots=True)
class SuiteCheck:
    """The result of `check_suite`."""

    findings: pd.DataFrame
    """The findings, with kind, where, image and found."""
    counts: pd.DataFrame
    """One row per data set and split: data, layout, split, revision ("" if unknown), and the
    usable questions, documents and labels.
    """


def check_suite(folder: Path | str) -> SuiteCheck:
    """Check page benchmarks, Chart-MRAG and WebQA in a folder, which may be one itself.

    Faults are `row`: a row that loading would refuse or leave out (a missing text, an answer
    that is none of the options, a duplicate id, a label of a missing page, evidence without
    its sentence or chart, an empty claim), an unreadable shard, two revisions in one folder;
    `missing`: shards, and a page without an image; `damaged`: images that cannot be decoded
    (WebQA's are looked up in the index of imgs.tsv, and not opened). Odd, and no faults:
    questions without gold evidence, labels of unknown questions, equal options, a row's id
    that contradicts its evidence, numbers of charts and images that differ.

    Raises `VragError` if there is none of them.
    """
    folder = Path(folder).expanduser()
    sets = suite_sets(folder)
    if not sets:
        raise VragError(
            f"{folder}: neither pages (corpus, queries and qrels) nor charts"
            f" (data-00000-of-00001.arrow) nor {ANNOTATIONS} in it or in its folders. Get them by"
            " `vrag fetch suite`."
        )
    found: list[Finding] = []
    counts: list[dict[str, object]] = []
    for name, (layout, place) in sets.items():
        told = {"data": name or place.name, "layout": layout}
        walk = {PAGES: check_pages, CHARTS: check_charts, WEBQA: check_webqa}[layout]
        counts += [{**told, **each} for each in walk(name, place, found)]
    ordered = sorted(found, key=lambda finding: KINDS.index(finding[0]))
    return SuiteCheck(pd.DataFrame(ordered, columns=FINDING_COLUMNS), pd.DataFrame(counts))


def suite_sets(folder: Path) -> dict[str, tuple[str, Path]]:
    """Map the name of each page benchmark, chart set and WebQA in a folder to (layout, folder); ""
    is the folder itself. Empty if its subfolders hold only WebQA, as in the synthetic Field
    Guide.
    """
    if layout := _layout(folder):
        return {"": (layout, folder)}
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    layouts = {path.name: (_layout(path), path) for path in below}
    found = {name: told for name, told in layouts.items() if told[0]}
    return {} if {layout for layout, _ in found.values()} == {WEBQA} else found


def _layout(folder: Path) -> str:
    """The layout of a folder; "" for none."""
    if (folder / "queries").is_dir() and splits_in(folder):
        return PAGES
    if any(folder.glob("*.arrow")) or any(folder.glob("rows/*.arrow")):
        return CHARTS
    return WEBQA if (folder / ANNOTATIONS).is_file() else ""
