"""MRAG-Bench's nine scenarios drawn with the guide's organisms: an edition in the data
set's own layout.
"""

from vrag_kit.fieldguide.scenarios.drawing import draw_mrag_bench
from vrag_kit.fieldguide.scenarios.edition import EDITIONS
from vrag_kit.fieldguide.scenarios.opening import (
    DRAWN_MRAG,
    open_labels,
    open_mrag_bench,
    open_mrag_texts,
)
from vrag_kit.fieldguide.scenarios.passages import passage
from vrag_kit.fieldguide.scenarios.table import SCENARIOS
from vrag_kit.fieldguide.scenarios.topics import told_names

__all__ = [
    "DRAWN_MRAG",
    "EDITIONS",
    "SCENARIOS",
    "draw_mrag_bench",
    "open_labels",
    "open_mrag_bench",
    "open_mrag_texts",
    "passage",
    "told_names",
]
