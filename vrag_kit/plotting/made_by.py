"""Who scored the answers behind a row of results, and who found what they were shown."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.retrieval.run import NAME

Finder = str | pd.DataFrame
"""A retriever's name, or a run of `search_all`, which has it."""
_PRINTED = r"as printed|Table \d"
"""In the source of what a paper prints."""


def made_by(data: pd.DataFrame, judged_by: str, found_by: Mapping[str, Finder]) -> pd.DataFrame:
    """The rows with the columns judged_by and retriever, where these are told and a
    row has none yet; "" in what is printed.

    `found_by` names for a setting who found what it shows, for a difference also in that
    of its baseline; the setting "" stands for all rows.
    """
    source = data["source"].astype(str) if "source" in data else pd.Series("", data.index)
    ours = ~source.str.contains(_PRINTED)
    if judged_by and "judged_by" not in data:
        data = data.assign(judged_by=ours.map({True: judged_by, False: ""}))
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
