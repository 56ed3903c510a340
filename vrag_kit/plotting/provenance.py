"""Adds the judge and the retriever behind each row of results."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.retrieval.runs import NAME

Finder = str | pd.DataFrame
"""A retriever's name, or a run of `search_all`, which has it."""
_PRINTED = r"reported|^reported|Table \d"
"""In the source of what a paper prints."""


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
