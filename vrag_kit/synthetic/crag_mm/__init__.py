"""The drawn edition of CRAG-MM: pictures as from smart glasses, a knowledge graph and a
small web, and what is asked about them, in the data sets' own layouts.
"""

from vrag_kit.synthetic.crag_mm.conversation_config import (
    DEFAULT_CONVERSATION,
    PROMPTS,
    SEARCH,
    build_search_pipeline,
    open_conversation_config,
    open_search_pipeline,
)
from vrag_kit.synthetic.crag_mm.drawing import generate_crag_mm
from vrag_kit.synthetic.crag_mm.edition import EDITIONS
from vrag_kit.synthetic.crag_mm.opening import open_multi_turn, open_single_turn
from vrag_kit.synthetic.crag_mm.search_config import SearchServices, open_services

__all__ = [
    "DEFAULT_CONVERSATION",
    "EDITIONS",
    "PROMPTS",
    "SEARCH",
    "SearchServices",
    "build_search_pipeline",
    "generate_crag_mm",
    "open_conversation_config",
    "open_multi_turn",
    "open_search_pipeline",
    "open_services",
    "open_single_turn",
]
