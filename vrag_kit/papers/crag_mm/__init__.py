"""CRAG-MM (Wang et al., 2025): settings and their prompts, early stopping, truthfulness and its
judges, and the paper's published numbers with their audit.
"""

from vrag_kit.papers.crag_mm import (
    audit,
    conversations,
    figures,
    judge,
    parameters,
    recall,
    results,
    search,
    statistics,
)
