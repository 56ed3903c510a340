"""The table of MRAG-Bench's models names all of them, and classes that are there."""

from __future__ import annotations

import re

import pandas as pd
import transformers
from conftest import ROOT

from vrag_kit.papers import published


def test_every_model_of_table_3_has_a_row_and_what_loads_has_a_class_of_transformers() -> None:
    table = published("mrag_bench", table=3)
    printed = table[~table["model_group"].isin(["random", "human"])]["model"].unique()
    models = pd.read_csv(ROOT / "vrag_kit/papers/mrag_bench/models.csv", keep_default_na=False)
    assert sorted(models["model"]) == sorted(printed)
    for row in models.itertuples(index=False):
        named = [row.read_by] if row.loads == "yes" else re.findall(r"\((\w+)\)", row.instead)
        assert all(hasattr(transformers, name) for name in named)
        assert row.loads != "no" or row.instead
