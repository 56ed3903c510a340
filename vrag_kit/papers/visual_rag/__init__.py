"""Visual-RAG (Wu et al.): prompts, rubric, published numbers and their audit, and comparisons of
replications with the paper.
"""

from vrag_kit.papers.visual_rag import (
    answers,
    audit,
    error_budget,
    figures,
    gcue,
    judge,
    published,
    replication,
    statements,
)
from vrag_kit.papers.visual_rag.published import reported
from vrag_kit.papers.visual_rag.replication import compare_to_paper
from vrag_kit.papers.visual_rag.statements import check_statements
