"""The drawn edition of CRAG-MM: pictures as from smart glasses, a knowledge graph and a
small web, and what is asked about them, in the data sets' own layouts.
"""

from vrag_kit.fieldguide.worn.drawing import draw_crag_mm
from vrag_kit.fieldguide.worn.edition import EDITIONS
from vrag_kit.fieldguide.worn.opening import open_multi_turn, open_single_turn
from vrag_kit.fieldguide.worn.searching import Services, open_services
from vrag_kit.fieldguide.worn.talking import PROMPTS, SEARCH, TALK, arms_over, open_arms, open_talk

__all__ = [
    "EDITIONS",
    "PROMPTS",
    "SEARCH",
    "TALK",
    "Services",
    "arms_over",
    "draw_crag_mm",
    "open_arms",
    "open_multi_turn",
    "open_services",
    "open_single_turn",
    "open_talk",
]
