"""CRAG-MM (Wang et al., 2025): when a conversation stops, truthfulness and its judges,
and the paper's printed numbers with their audit.
"""

from vrag_kit.papers.crag_mm.stop_rule import two_not_right

__all__ = [
    "two_not_right",
]
