"""MRAG-Bench (Hu et al., ICLR 2025): prompts and settings, option extraction and the official
scorer, results by scenario, option format, retrieval, people.
"""

from vrag_kit.papers.mrag_bench import (
    choices,
    option_leakage,
    people,
    results,
    retrieval,
    settings,
)
