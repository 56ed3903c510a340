"""The Field Guide: invented species, drawn, stored and read exactly like the real benchmark."""

from vrag_kit.synthetic.editions import synthetic_mark
from vrag_kit.synthetic.visual_rag.counterfactual import (
    counterfactual_benchmark,
    with_contradicting_images,
    with_counterfactual_clues,
)
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.synthetic.visual_rag.pages import EDITIONS
