"""Analysis: intervals over clusters, paired tests, accuracy, gCUE, and the papers' own numbers."""

from vrag_kit.analysis.abstention import change_over_k, change_printed, detect_abstention, detector_agreement, selective_accuracy, selective_printed
from vrag_kit.analysis.accuracy import accuracy, best_top_k, column_means, over_draws, per_query
from vrag_kit.analysis.agreement import READINGS, agreement, agreement_table, confusion, gains_beside_bias, pairs_of
from vrag_kit.analysis.association import association
from vrag_kit.analysis.audit import audit, audit_summary, mismatches, paper_tables, run_statistics
from vrag_kit.analysis.cases import error_cases, kinds_of_answers
from vrag_kit.analysis.comparison import compare
from vrag_kit.analysis.error_budget import accuracy_given_clue, error_budget, first_clue_rank, mean_budget
from vrag_kit.analysis.gcue import Ratio, fieller, gcue, gcue_of, gcue_printed
from vrag_kit.analysis.intervals import Estimate, estimate, summarise
from vrag_kit.analysis.ndcg_bound import ndcg_bound, ndcg_bounds
from vrag_kit.analysis.prediction_powered import corrected_accuracy
from vrag_kit.analysis.published import PAPER_NAMES, beside_paper, in_percent, is_papers_data, printed, published
from vrag_kit.analysis.query_counts import query_counts
from vrag_kit.analysis.replication import beside_printed, held_against_paper
from vrag_kit.analysis.results import load_results
from vrag_kit.analysis.rouge import arm_correlation, rouge_follows, rouge_published
from vrag_kit.analysis.settings_table import settings_table

__all__ = ["PAPER_NAMES", "READINGS", "Estimate", "Ratio", "accuracy", "accuracy_given_clue", "agreement", "agreement_table", "arm_correlation", "association",
           "audit", "audit_summary", "beside_paper", "beside_printed", "best_top_k", "change_over_k", "change_printed", "column_means", "compare", "confusion",
           "corrected_accuracy", "detect_abstention", "detector_agreement", "error_budget", "error_cases", "estimate", "fieller", "first_clue_rank",
           "gains_beside_bias", "gcue", "gcue_of", "gcue_printed", "held_against_paper", "in_percent", "is_papers_data", "kinds_of_answers", "load_results",
           "mean_budget", "mismatches", "ndcg_bound", "ndcg_bounds", "over_draws", "pairs_of", "paper_tables", "per_query", "printed", "published",
           "query_counts", "rouge_follows", "rouge_published", "run_statistics", "selective_accuracy", "selective_printed", "settings_table", "summarise"]
