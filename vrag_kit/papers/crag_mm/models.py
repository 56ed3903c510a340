"""The models of CRAG-MM: what each is called on the hub, and whether it runs here."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def crag_models() -> pd.DataFrame:
    """One row for each of the 9 models of Tables 8 and 9 and the 6 systems of Table 5, by
    the names that the tables print.

    `checkpoint` is its name on the hub, or at an endpoint; `read_by` the class of
    transformers, or what else reads it; `loads` "yes" when transformers loads it without
    remote code, "no", or "endpoint"; `instead` the same weights in transformers' layout
    with their class, what to mind, or "printed numbers only". The paper dates none of the
    endpoints.
    """
    path = Path(__file__).with_name("models.csv")
    return pd.read_csv(path, keep_default_na=False, dtype=str)
