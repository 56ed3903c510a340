"""The table of MRAG-Suite's models names all of them, and classes that are there; their
colours are those that the same models have elsewhere.
"""

from __future__ import annotations

import re

import pandas as pd
import transformers
from conftest import ROOT

from vrag_kit.papers import published
from vrag_kit.plotting.style import colors_of

MODELS = pd.read_csv(ROOT / "vrag_kit/papers/mrag_suite/models.csv", keep_default_na=False)
SAME = {  # in Visual-RAG's tables, or as the kit loads them
    "Pixtral-12B-2409": ("Pixtral", "mistral-community-pixtral-12b"),
    "InternVL3-8B": ("InternVL3", "OpenGVLab-InternVL3-8B-hf"),
    "Phi-4": ("Phi4-MM", "microsoft-Phi-4-multimodal-instruct"),
    "Qwen2.5-VL-72B": ("Qwen-Qwen2.5-VL-72B-Instruct",),
    "Claude 3.5": ("claude-3-5-sonnet-20241022",),
    "LLaVa-v1.6-34B": ("llava-hf-llava-v1.6-34b-hf",),
}


def test_every_model_has_a_row_and_what_loads_has_a_class_of_transformers() -> None:
    for table in (2, 5, 13, 14, 15):
        assert set(MODELS["model"]) == set(published("mrag_suite", table=table)["model"])
    for row in MODELS.itertuples(index=False):
        named = [row.read_by] if row.loads == "yes" else re.findall(r"\((\w+For\w+)\)", row.instead)
        assert all(hasattr(transformers, name) for name in named)
        assert named or row.loads == "endpoint"


def test_a_model_has_the_color_that_it_has_elsewhere_and_no_other_of_the_paper_has() -> None:
    printed = colors_of(MODELS["model"])
    assert len(set(printed.values())) == len(printed)
    for name, others in SAME.items():
        for other in others:
            assert colors_of([other])[other] == printed[name]
    demo = colors_of(["field-guide-vlm-few", "field-guide-vlm-many"])
    assert not set(demo.values()) & set(printed.values())
