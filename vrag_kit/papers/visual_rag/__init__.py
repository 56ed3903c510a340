"""Visual-RAG (Wu et al.): its wording and rubric, Figure 2's statistics, its printed
numbers, their audit, and replications held against them.
"""

from vrag_kit.papers.visual_rag.audit import (
    audit,
    audit_summary,
    mismatches,
    paper_tables,
    run_statistics,
)
from vrag_kit.papers.visual_rag.audit_figure import audit_figure
from vrag_kit.papers.visual_rag.ndcg_bound import ndcg_bound, ndcg_bounds
from vrag_kit.papers.visual_rag.printed import (
    PAPER_NAMES,
    PAPER_QUERIES,
    beside_paper,
    gcue_printed,
    is_papers_data,
    printed,
    rouge_published,
)
from vrag_kit.papers.visual_rag.query_counts import query_counts
from vrag_kit.papers.visual_rag.replication import beside_printed, held_against_paper
from vrag_kit.papers.visual_rag.statistics import (
    clip_length,
    distribution,
    organism_category,
    query_table,
    question_kind,
    statistics,
)

__all__ = [
    "PAPER_NAMES",
    "PAPER_QUERIES",
    "audit",
    "audit_figure",
    "audit_summary",
    "beside_paper",
    "beside_printed",
    "clip_length",
    "distribution",
    "gcue_printed",
    "held_against_paper",
    "is_papers_data",
    "mismatches",
    "ndcg_bound",
    "ndcg_bounds",
    "organism_category",
    "paper_tables",
    "printed",
    "query_counts",
    "query_table",
    "question_kind",
    "rouge_published",
    "run_statistics",
    "statistics",
]
