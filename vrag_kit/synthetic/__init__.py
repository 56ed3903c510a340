"""The Field Guide: invented species, drawn, stored and read exactly like the real
benchmark; and data opened as a notebook's parameter names them.
"""

from vrag_kit.synthetic.counterfactual import (
    counterfactual_benchmark,
    with_contradicting_images,
    with_counterfactual_clues,
)
from vrag_kit.synthetic.data_card import data_card_note
from vrag_kit.synthetic.guide import generate_field_guide
from vrag_kit.synthetic.opening import (
    open_articles,
    open_benchmark,
    open_images,
    open_inat_corpus,
    open_webqa,
    queries_answered_by_articles,
)
from vrag_kit.synthetic.pages import EDITIONS

__all__ = [
    "EDITIONS",
    "counterfactual_benchmark",
    "data_card_note",
    "generate_field_guide",
    "open_articles",
    "open_benchmark",
    "open_images",
    "open_inat_corpus",
    "open_webqa",
    "queries_answered_by_articles",
    "with_contradicting_images",
    "with_counterfactual_clues",
]
