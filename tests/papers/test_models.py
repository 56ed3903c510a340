"""The tables of the papers' models name all of them, and classes that are there; a model of
MRAG-Suite has the colour that it has elsewhere.
"""

from __future__ import annotations

import re

import pandas as pd
import pytest
import transformers
from conftest import ROOT

from vrag_kit.papers import published
from vrag_kit.plotting import model_colors

SAME = {  # in Visual-RAG's tables, or as the kit loads them
    "Pixtral-12B-2409": ("Pixtral", "mistral-community-pixtral-12b"),
    "InternVL3-8B": ("InternVL3", "OpenGVLab-InternVL3-8B-hf"),
    "Phi-4": ("Phi4-MM", "microsoft-Phi-4-multimodal-instruct"),
    "Qwen2.5-VL-72B": ("Qwen-Qwen2.5-VL-72B-Instruct",),
    "Claude 3.5": ("claude-3-5-sonnet-20241022",),
    "LLaVa-v1.6-34B": ("llava-hf-llava-v1.6-34b-hf",),
}


def models(paper: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / f"vrag_kit/papers/{paper}/models.csv", keep_default_na=False)


def test_every_model_of_a_paper_has_a_row():
    for table in (2, 5, 13, 14, 15):
        suite = set(published("mrag_suite", table=table)["model"])
        assert set(models("mrag_suite")["model"]) == suite
    bench = published("mrag_bench", table=3).query("model_group not in ('random', 'human')")
    assert sorted(models("mrag_bench")["model"]) == sorted(bench["model"].unique())
    crag = models("crag_mm")
    asked = set(crag[~crag["instead"].str.startswith("printed numbers")]["model"])
    for table in (8, 9):
        assert asked == set(published("crag_mm", table=table)["model"])
    assert set(crag["model"]) == asked | set(published("crag_mm", table=5)["model"])


@pytest.mark.parametrize("paper", ["mrag_suite", "mrag_bench", "crag_mm"])
def test_what_loads_or_stands_in_has_a_class_of_transformers(paper):
    for row in models(paper).itertuples(index=False):
        named = [row.read_by] if row.loads == "yes" else re.findall(r"\((\w+For\w+)\)", row.instead)
        assert all(hasattr(transformers, name) for name in named)
        assert row.loads != "no" or named or row.instead
        assert paper != "mrag_suite" or named or row.loads == "endpoint"


def test_a_model_has_the_color_that_it_has_elsewhere_and_no_other_of_the_paper_has():
    printed = model_colors(models("mrag_suite")["model"])
    assert len(set(printed.values())) == len(printed)
    for name, others in SAME.items():
        for other in others:
            assert model_colors([other])[other] == printed[name]
