"""The synthetic edition of CRAG-MM: images as from smart glasses, a knowledge graph and a small
web, and questions about them, in the data sets' own layouts.
"""

from vrag_kit.synthetic.crag_mm.drawing import generate_crag_mm
from vrag_kit.synthetic.crag_mm.edition import CONVERSATION, EDITIONS, PROMPTS, SEARCH
from vrag_kit.synthetic.crag_mm.opening import open_multi_turn, open_single_turn
