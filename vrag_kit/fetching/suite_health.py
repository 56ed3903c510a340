"""What is wrong with the data sets of MRAG-Suite, as one table: rows that cannot be used,
shards cut short, labels of pages that are not there, pictures that are missing or damaged,
and what is odd; and how much each holds, in which revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.page_rows import splits_in
from vrag_kit.benchmarks.revisions import revision_of
from vrag_kit.errors import VragError
from vrag_kit.fetching.chart_health import ChartWalk
from vrag_kit.fetching.health import COLUMNS, KINDS, Finding
from vrag_kit.fetching.page_health import PageWalk

PAGES, CHARTS = "pages", "charts"


@dataclass(frozen=True, slots=True)
class SuiteCheck:
    """What `check_suite` found."""

    findings: pd.DataFrame
    """Columns and kinds are those of `check_visual_rag`."""
    counts: pd.DataFrame
    """One row a data set and split: data, layout, split, revision ("" unknown), questions,
    documents, labels, of rows that can be used.
    """


def check_suite(folder: Path | str) -> SuiteCheck:
    """Everything that is wrong or odd with page benchmarks and Chart-MRAG in a folder,
    which may be one itself.

    Faults are `row`: one that loading would refuse or leave out (a text that is missing,
    an answer that is none of the options, an id that came before, a label of a page that
    is not there, evidence without its sentence or chart, a claim that is empty), a shard
    that cannot be read, two revisions in one folder; `missing`: shards, and a page
    without a picture; `damaged`: pictures that cannot be decoded. Odd, and no faults:
    questions without gold evidence, labels of questions that are not there, equal
    options, a row's id that says something else than its evidence, more charts than
    pictures.

    Raises `VragError` when there is neither.
    """
    folder = Path(folder).expanduser()
    sets = suite_sets(folder)
    if not sets:
        raise VragError(
            f"{folder}: neither pages (corpus, queries and qrels) nor charts"
            " (data-00000-of-00001.arrow) in it or in its folders. Get them by `vrag fetch suite`."
        )
    found: list[Finding] = []
    counts: list[dict[str, object]] = []
    for name, (layout, place) in sets.items():
        if layout == CHARTS:
            charts = ChartWalk(name, place, found)
            charts.walk()
            counts.append({**_told(name, layout, place), "split": "", **charts.counts})
            continue
        for split in splits_in(place):
            pages = PageWalk(f"{name} {split}" if name else split, place, split, found)
            pages.walk()
            counts.append({**_told(name, layout, place), "split": split, **pages.counts})
    ordered = sorted(found, key=lambda finding: KINDS.index(finding[0]))
    return SuiteCheck(pd.DataFrame(ordered, columns=COLUMNS), pd.DataFrame(counts))


def suite_sets(folder: Path) -> dict[str, tuple[str, Path]]:
    """Name → (layout, folder) of the page benchmarks and charts in a folder; "" for the
    folder itself.
    """
    if layout := _layout(folder):
        return {"": (layout, folder)}
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    layouts = {path.name: (_layout(path), path) for path in below}
    return {name: found for name, found in layouts.items() if found[0]}


def _layout(folder: Path) -> str:
    """The layout of a folder; "" for neither."""
    if (folder / "queries").is_dir() and splits_in(folder):
        return PAGES
    has_rows = any(folder.glob("*.arrow")) or any(folder.glob("rows/*.arrow"))
    return CHARTS if has_rows else ""


def _told(name: str, layout: str, place: Path) -> Mapping[str, object]:
    pattern = "*/*.parquet" if layout == PAGES else "*.arrow"
    files = [path for path in place.glob(pattern) if ".cache" not in path.parts]
    return {"data": name or place.name, "layout": layout, "revision": revision_of(place, files)}
