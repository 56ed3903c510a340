"""Visual-RAG (Wu et al.): prompts, rubric, the statistics of Figure 2, published numbers and their
audit, and comparisons of replications with the paper.
"""

from vrag_kit.papers.audit import audit_summary, audit_table, contradictions
from vrag_kit.papers.statements import show_statements
from vrag_kit.papers.visual_rag.abstention import (
    change_over_k,
    detect_abstention,
    detector_agreement,
    published_change_over_k,
)
from vrag_kit.papers.visual_rag.audit import audit, published_tables, run_statistics
from vrag_kit.papers.visual_rag.derived import (
    gains_vs_judge_bias,
    published_gcue,
    published_selective_accuracy,
)
from vrag_kit.papers.visual_rag.distractors import distractor_cost, distractor_cost_by_k
from vrag_kit.papers.visual_rag.error_budget import (
    accuracy_given_clue,
    error_budget,
    error_budget_figure,
    first_clue_rank,
    mean_error_budget,
)
from vrag_kit.papers.visual_rag.error_cases import error_cases, error_gallery, outcome_shares
from vrag_kit.papers.visual_rag.evidence_swap import (
    OUTCOMES,
    counterfactual_bars,
    counterfactual_effect,
    counterfactual_images,
    counterfactual_outcomes,
)
from vrag_kit.papers.visual_rag.examples_figure import retrieval_examples, settings_images
from vrag_kit.papers.visual_rag.figures import (
    accuracy_over_k_figure,
    baselines_figure,
    benchmark_figure,
    gcue_figure,
    number_of_clues_figure,
)
from vrag_kit.papers.visual_rag.gcue import gcue, gcue_from_means, gcue_table
from vrag_kit.papers.visual_rag.judge import RUBRIC
from vrag_kit.papers.visual_rag.ndcg_bound import ndcg_bound, ndcg_bounds
from vrag_kit.papers.visual_rag.partial_labels import READINGS, expand_confusion
from vrag_kit.papers.visual_rag.pipeline import pipeline_diagram
from vrag_kit.papers.visual_rag.pools import notebook_requirements
from vrag_kit.papers.visual_rag.printed import (
    data_source,
    is_paper_data,
    retrieval_table_with_published,
)
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.papers.visual_rag.replication import (
    best_top_k,
    compare_gcue_to_paper,
    compare_retrieval_to_paper,
    compare_to_paper,
    std_over_draws,
)
from vrag_kit.papers.visual_rag.rouge import (
    rouge_figure,
    rouge_mean_correlation,
    rouge_score_correlation,
)
from vrag_kit.papers.visual_rag.statements import check_statements, statements_table
from vrag_kit.papers.visual_rag.statistics import describe, distribution, query_table, question_kind
from vrag_kit.papers.visual_rag.uncertainty import with_binomial_interval, with_uncertainty
