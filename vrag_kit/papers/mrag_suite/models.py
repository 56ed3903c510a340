"""The models of MRAG-Suite: what each is called on the hub, and whether it runs here."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def suite_models() -> pd.DataFrame:
    """One row for each of the six models of Tables 2, 5 and 13 to 15, by the names that
    they print; the columns are those of CRAG-MM's (`crag_models`).

    Their colours in figures stand in `colors.json` beside: a model that another paper
    has too has the same there.
    """
    path = Path(__file__).with_name("models.csv")
    return pd.read_csv(path, keep_default_na=False, dtype=str)
