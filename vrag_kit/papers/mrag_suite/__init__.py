"""MRAG-Suite (Ji, 2025): data set statistics, published numbers with their audit, prompts and their
sweep, the two-step difficulty filter, and ambiguous questions.
"""

from vrag_kit.papers.mrag_suite import (
    ambiguity,
    audit,
    claims,
    datasets,
    figures,
    filter,
    hybrid,
    modes,
    prompts,
)
