"""The table of CRAG-MM's models names all of them, and classes that are there."""

from __future__ import annotations

import re

import pandas as pd
import transformers
from conftest import ROOT

from vrag_kit.papers import published


def test_every_model_has_a_row_and_what_loads_has_a_class_of_transformers() -> None:
    models = pd.read_csv(ROOT / "vrag_kit/papers/crag_mm/models.csv", keep_default_na=False)
    asked = models[~models["instead"].str.startswith("printed numbers")]
    for table in (8, 9):
        assert set(asked["model"]) == set(published("crag_mm", table=table)["model"])
    systems = published("crag_mm", table=5)["system"]
    assert set(models["model"]) == set(asked["model"]) | set(systems)
    for row in models.itertuples(index=False):
        named = [row.read_by] if row.loads == "yes" else re.findall(r"\((\w+For\w+)\)", row.instead)
        assert all(hasattr(transformers, name) for name in named)
        assert row.loads != "no" or named or row.instead.startswith("printed numbers only")
