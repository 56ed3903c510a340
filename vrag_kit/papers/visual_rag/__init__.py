"""Visual-RAG (Wu et al.): prompts, rubric, the statistics of Figure 2, published numbers and their
audit, and comparisons of replications with the paper.
"""

from vrag_kit.papers.visual_rag import (
    abstention,
    audit,
    error_budget,
    evidence_swap,
    figures,
    gcue,
    judge,
    ndcg_bound,
    published,
    replication,
    rouge,
    statements,
    statistics,
)
from vrag_kit.papers.visual_rag.published import reported
from vrag_kit.papers.visual_rag.replication import compare_to_paper
from vrag_kit.papers.visual_rag.statements import check_statements
