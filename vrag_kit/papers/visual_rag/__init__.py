"""Visual-RAG (Wu et al.): prompts, rubric, the statistics of Figure 2, published numbers and their
audit, and comparisons of replications with the paper.
"""

from vrag_kit.papers.audit import audit_summary, contradictions
from vrag_kit.papers.statements import show_statements
from vrag_kit.papers.visual_rag.audit import audit, published_tables
from vrag_kit.papers.visual_rag.audit_figure import audit_figure
from vrag_kit.papers.visual_rag.audit_runs import run_statistics
from vrag_kit.papers.visual_rag.benchmark_figure import benchmark_figure
from vrag_kit.papers.visual_rag.clip_tokens import clip_token_count
from vrag_kit.papers.visual_rag.derived import (
    gains_vs_judge_bias,
    published_change_over_k,
    published_gcue,
    published_selective_accuracy,
)
from vrag_kit.papers.visual_rag.judge import PAPER_JUDGE, RUBRIC, judge_prompt
from vrag_kit.papers.visual_rag.ndcg_bound import ndcg_bound, ndcg_bounds
from vrag_kit.papers.visual_rag.pools import notebook_requirements
from vrag_kit.papers.visual_rag.printed import (
    EDITIONS,
    PAPER_NAMES,
    PAPER_QUERIES,
    data_source,
    is_paper_data,
    published_results,
    published_retrieval,
    published_rouge,
    retrieval_table_with_published,
)
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.papers.visual_rag.query_counts import query_counts
from vrag_kit.papers.visual_rag.replication import (
    compare_to_paper,
    differences_from_published,
)
from vrag_kit.papers.visual_rag.replication_gcue import (
    compare_gcue_to_paper,
    gcue_differences_from_published,
)
from vrag_kit.papers.visual_rag.replication_retrieval import (
    compare_retrieval_to_paper,
    retrieval_differences_from_published,
)
from vrag_kit.papers.visual_rag.statement_checks import check_statements, statements_table
from vrag_kit.papers.visual_rag.statistics import (
    describe,
    distribution,
    organism_category,
    query_table,
    question_kind,
)
from vrag_kit.papers.visual_rag.verdicts import read_verdict

__all__ = [
    "EDITIONS",
    "PAPER_JUDGE",
    "PAPER_NAMES",
    "PAPER_QUERIES",
    "PROMPTS",
    "RUBRIC",
    "audit",
    "audit_figure",
    "audit_summary",
    "benchmark_figure",
    "check_statements",
    "clip_token_count",
    "compare_gcue_to_paper",
    "compare_retrieval_to_paper",
    "compare_to_paper",
    "contradictions",
    "data_source",
    "describe",
    "differences_from_published",
    "distribution",
    "gains_vs_judge_bias",
    "gcue_differences_from_published",
    "is_paper_data",
    "judge_prompt",
    "ndcg_bound",
    "ndcg_bounds",
    "notebook_requirements",
    "organism_category",
    "published_change_over_k",
    "published_gcue",
    "published_results",
    "published_retrieval",
    "published_rouge",
    "published_selective_accuracy",
    "published_tables",
    "query_counts",
    "query_table",
    "question_kind",
    "read_verdict",
    "retrieval_differences_from_published",
    "retrieval_table_with_published",
    "run_statistics",
    "show_statements",
    "statements_table",
]
