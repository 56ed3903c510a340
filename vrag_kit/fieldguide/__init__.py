"""The Field Guide: invented species, drawn, stored and read exactly like the real
benchmark; and data opened as a notebook's parameter names them.
"""

from vrag_kit.fieldguide.guide import draw_field_guide
from vrag_kit.fieldguide.opening import (
    open_articles,
    open_benchmark,
    open_other_corpus,
    open_pictures,
    open_webqa,
    told_by_articles,
)
from vrag_kit.fieldguide.pages import EDITIONS
from vrag_kit.fieldguide.remarks import remark
from vrag_kit.fieldguide.swaps import swapped_world, with_look_alikes, with_swapped_clues

__all__ = [
    "EDITIONS",
    "draw_field_guide",
    "open_articles",
    "open_benchmark",
    "open_other_corpus",
    "open_pictures",
    "open_webqa",
    "remark",
    "swapped_world",
    "told_by_articles",
    "with_look_alikes",
    "with_swapped_clues",
]
