"""Saves a figure as PNG and SVG with the numbers behind it as tidy CSV."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from html import escape
from types import MappingProxyType

import matplotlib as mpl
import pandas as pd
from IPython.core.getipython import get_ipython
from IPython.display import HTML, display
from matplotlib.figure import Figure
from matplotlib.text import Text

from vrag_kit.analysis.means import BOUNDS
from vrag_kit.analysis.results import RESULT_COLUMNS
from vrag_kit.dry_run import current_dry_run
from vrag_kit.files import display_path, project_path, write_file
from vrag_kit.log import logger
from vrag_kit.plotting.save_table import latex_text, plain_cells
from vrag_kit.plotting.style import GREY, SMALL
from vrag_kit.retrieval.runs import NAME
from vrag_kit.workspace import Workspace

_CLIP = re.compile(r'<clipPath id="(p[0-9a-f]{10})">\s*(.*?)\s*</clipPath>', re.DOTALL)
_PLACE = re.compile(r"(?<![\d.])[1-9]\d*\.\d{5,6}(?!\d)")
_ASIDE = 1.37e-5
"""Added before rounding: half a digit, at which it is a toss-up, is a likely place."""
Finder = str | pd.DataFrame
"""A retriever's name, or a run of `search_all`, which has it."""
_PRINTED = r"reported|Table \d"
"""In the source of what a paper prints."""
LAST = (*RESULT_COLUMNS, *BOUNDS)
"""Columns of the papers' tables and the kit's, in this order; others come before them."""


def concat_sources(sources: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Concatenates the tables of a figure, with their title in the column `source`."""
    return pd.concat(sources, names=["source"]).reset_index("source").reset_index(drop=True)


def order_columns(data: pd.DataFrame) -> pd.DataFrame:
    """Puts the columns in their standard order: source, those of this figure alone, then those of
    `LAST`.

    A row with a `baseline` is a difference from it (`paired_differences`), and its metric is named
    so: "difference in accuracy", in points where that is in percent. Cells are `plain_cells`.
    """
    data = plain_cells(data)
    if {"baseline", "metric"} <= set(data.columns):
        data = _named(data)
    own = [name for name in data.columns if name not in LAST]
    own.sort(key=lambda name: name != "source")
    return data[[*own, *(name for name in LAST if name in data.columns)]]


def add_provenance(data: pd.DataFrame, judge: str, found_by: Mapping[str, Finder]) -> pd.DataFrame:
    """Adds the column judge, unless the table has it, and retriever, where a row has none yet; ""
    for published rows. Neither is added where it is not given.

    `found_by` maps a setting to the retriever of its evidence, for a difference also that of its
    baseline; the setting "" stands for all rows.
    """
    source = data["source"].astype(str) if "source" in data else pd.Series("", data.index)
    ours = ~source.str.contains(_PRINTED)
    if judge and "judge" not in data:
        data = data.assign(judge=ours.map({True: judge, False: ""}))
    if not found_by:
        return data
    names = {setting: _name(finder) for setting, finder in found_by.items()}
    retriever = pd.Series(names.get("", ""), data.index)
    for column in ("baseline", "setting"):
        if column in data:
            retriever = data[column].map(names).fillna(retriever)
    retriever = retriever.where(ours, "")
    if "retriever" in data:
        retriever = data["retriever"].fillna(retriever)
    return data.assign(retriever=retriever)


def _name(finder: Finder) -> str:
    return finder if isinstance(finder, str) else str(finder.attrs.get(NAME, ""))


def _named(data: pd.DataFrame) -> pd.DataFrame:
    """The table with what is a difference called one."""
    less = data["baseline"].notna() & (data["baseline"] != "")
    metric = data["metric"].mask(less, "difference in " + data["metric"].astype(str))
    data = data.assign(metric=metric)
    if "unit" in data:
        data["unit"] = data["unit"].mask(less & (data["unit"] == "percent"), "points")
    return data


def save_figure(
    figure: Figure,
    at: Workspace,
    name: str,
    data: pd.DataFrame,
    *,
    judge: str = "",
    found_by: Mapping[str, Finder] = MappingProxyType({}),
    mark: str = "",
) -> None:
    """Writes <name>.png, <name>.svg, <name>.csv and, as LaTeX, <name>.caption.tex into the
    workspace's `figures_dir`;
    the same figure gives the same bytes; in a notebook the figure and its caption are shown, too.
    `judge`, the judge's name, and `found_by`, setting → run
    or retriever, are columns of the CSV (`add_provenance`) and distinguish results of several runs.
    `mark` is drawn small in the lower right corner, such as "synthetic data".

    Title and caption (`set_caption`) are the SVG's title and description. Each file is replaced
    only when its new version is complete. Raises `OSError` when the folder cannot be written. In
    a dry run nothing is drawn or written.
    """
    if current_dry_run():
        return
    folder = project_path(at.figures_dir)
    if mark:
        words = " ".join(text.get_text() for text in figure.findobj(Text))
        printed = "source" in data and data["source"].astype(str).str.contains(_PRINTED).any()
        if printed and re.search("[Rr]eported|paper", words):
            mark = f"ours: {mark}"
        figure.text(0.995, 0.003, mark, ha="right", va="bottom", fontsize=SMALL, color=GREY)
        below = 0 if figure.get_supxlabel() else 0.15 / figure.get_figheight()
        figure.set_layout_engine("constrained", rect=(0, below, 1, 1 - below))
    title, caption = [*str(figure.get_label()).split("\n", 1), ""][:2]
    stop = "" if title.endswith("?") else "."
    picture, drawing = io.BytesIO(), io.StringIO()
    box = None if figure.get_layout_engine() else "tight"  # a layout of ours has its exact size
    named = {"Date": None, "Creator": None, "Title": title or name}
    with mpl.rc_context({"svg.hashsalt": "vrag_kit", "savefig.dpi": 200}):
        figure.savefig(picture, format="png", bbox_inches=box, metadata={"Software": None})
        figure.savefig(drawing, format="svg", bbox_inches=box, metadata=named)
    described = f"</title>\n <desc>{escape(caption)}</desc>"
    drawn = _steady(drawing.getvalue()).replace("</title>", described, 1)
    lines = "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"
    csv = order_columns(add_provenance(data, judge, found_by)).to_csv(
        index=False, float_format="%.6g", lineterminator="\n"
    )
    write_file(folder / f"{name}.png", picture.getvalue())
    write_file(folder / f"{name}.svg", lines)
    write_file(folder / f"{name}.csv", csv)
    write_file(folder / f"{name}.caption.tex", latex_text(f"{title}{stop} {caption}") + "\n")
    logger.info(f"saved {name}.png, .svg and .csv in {display_path(folder)}/")
    if get_ipython():
        display(figure)  # type: ignore[no-untyped-call]  # IPython has no types
        display(HTML(f"<small>{escape(caption)}</small>"))  # type: ignore[no-untyped-call]


def _steady(svg: str) -> str:
    """The drawing without the digits in which layouts differ from run to run: places to
    four decimals, and each clip path called by what is written of it, where matplotlib's
    names tell every digit.
    """
    svg = re.sub(r"<[^>]+>", lambda tag: _PLACE.sub(_rounded, tag[0]), svg)
    names = {}
    for name, written in _CLIP.findall(svg):
        names[name] = f"p{hashlib.sha256(written.encode()).hexdigest()[:10]}"
    return re.sub(r'(?<=[#"])p[0-9a-f]{10}\b', lambda found: names.get(found[0], found[0]), svg)


def _rounded(place: re.Match[str]) -> str:
    return f"{float(place[0]) + _ASIDE:.4f}"
