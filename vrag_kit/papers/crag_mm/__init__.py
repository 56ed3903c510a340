"""CRAG-MM (Wang et al., 2025): its arms and their prompts, when a conversation stops,
truthfulness and its judges, and the paper's printed numbers with their audit.
"""

from vrag_kit.papers.crag_mm.arms import ARMS, REWRITES, Arms
from vrag_kit.papers.crag_mm.early_stop import early_stop
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.papers.crag_mm.wording import WORDINGS, rewriting_wording, wording_of

__all__ = [
    "ARMS",
    "REWRITES",
    "WORDINGS",
    "Arms",
    "early_stop",
    "rewriting_wording",
    "two_not_right",
    "wording_of",
]
