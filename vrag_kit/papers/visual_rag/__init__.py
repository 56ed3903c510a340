"""Visual-RAG (Wu et al.): its wording and rubric, Figure 2's statistics, its printed
numbers, their audit, and replications held against them.
"""

from vrag_kit.papers.audit_rows import audit_summary, contradictions
from vrag_kit.papers.claim_rows import show_claims
from vrag_kit.papers.visual_rag.audit import audit, paper_tables
from vrag_kit.papers.visual_rag.audit_figure import audit_figure
from vrag_kit.papers.visual_rag.audit_runs import run_statistics
from vrag_kit.papers.visual_rag.benchmark_figure import benchmark_figure
from vrag_kit.papers.visual_rag.claims import claims_on, claims_table
from vrag_kit.papers.visual_rag.clip_tokens import clip_length
from vrag_kit.papers.visual_rag.derived import (
    change_printed,
    gains_beside_bias,
    gcue_printed,
    selective_printed,
)
from vrag_kit.papers.visual_rag.ndcg_bound import ndcg_bound, ndcg_bounds
from vrag_kit.papers.visual_rag.pools import pools_needed
from vrag_kit.papers.visual_rag.printed import (
    EDITIONS,
    PAPER_NAMES,
    PAPER_QUERIES,
    beside_paper,
    is_papers_data,
    printed,
    printed_retrieval,
    rouge_published,
    source_of,
)
from vrag_kit.papers.visual_rag.query_counts import query_counts
from vrag_kit.papers.visual_rag.replication import beside_printed, held_against_paper
from vrag_kit.papers.visual_rag.replication_gcue import (
    gcue_beside_printed,
    gcue_held_against_paper,
)
from vrag_kit.papers.visual_rag.replication_retrieval import (
    retrieval_beside_printed,
    retrieval_held_against_paper,
)
from vrag_kit.papers.visual_rag.rubric import PAPER_JUDGE, RUBRIC, judge_prompt
from vrag_kit.papers.visual_rag.statistics import (
    distribution,
    organism_category,
    query_table,
    question_kind,
    statistics,
)
from vrag_kit.papers.visual_rag.verdicts import read_verdict
from vrag_kit.papers.visual_rag.wording import WORDING

__all__ = [
    "EDITIONS",
    "PAPER_JUDGE",
    "PAPER_NAMES",
    "PAPER_QUERIES",
    "RUBRIC",
    "WORDING",
    "audit",
    "audit_figure",
    "audit_summary",
    "benchmark_figure",
    "beside_paper",
    "beside_printed",
    "change_printed",
    "claims_on",
    "claims_table",
    "clip_length",
    "contradictions",
    "distribution",
    "gains_beside_bias",
    "gcue_beside_printed",
    "gcue_held_against_paper",
    "gcue_printed",
    "held_against_paper",
    "is_papers_data",
    "judge_prompt",
    "ndcg_bound",
    "ndcg_bounds",
    "organism_category",
    "paper_tables",
    "pools_needed",
    "printed",
    "printed_retrieval",
    "query_counts",
    "query_table",
    "question_kind",
    "read_verdict",
    "retrieval_beside_printed",
    "retrieval_held_against_paper",
    "rouge_published",
    "run_statistics",
    "selective_printed",
    "show_claims",
    "source_of",
    "statistics",
]
