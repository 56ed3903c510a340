"""Analysis: intervals over clusters, paired tests, accuracy, gCUE, agreement."""

from vrag_kit.analysis.abstention import (
    change_over_k,
    detect_abstention,
    detector_agreement,
    selective_accuracy,
)
from vrag_kit.analysis.across import (
    ACROSS,
    JudgedBenchmark,
    cross_benchmark_scores,
    cross_benchmark_table,
    stratum_rows,
)
from vrag_kit.analysis.agreement import (
    READINGS,
    agreement,
    agreement_table,
    confusion_matrix,
    expand_confusion,
)
from vrag_kit.analysis.arm_differences import paired_tests, paired_tests_table
from vrag_kit.analysis.association import association
from vrag_kit.analysis.cases import error_cases, outcome_shares, sample_cases
from vrag_kit.analysis.claims import ClaimVerdicts, EvidenceItem
from vrag_kit.analysis.claims_annotated import (
    annotator_agreement,
    compare_label_sources,
    labels_from_verdicts,
)
from vrag_kit.analysis.claims_apart import claim_means_by_modality, verdict_table
from vrag_kit.analysis.claims_checked import check_answers, text_only, with_caption
from vrag_kit.analysis.claims_error import (
    corrected_claim_means,
    verdict_agreement,
    verdict_confusion_matrix,
    verdict_pairs,
)
from vrag_kit.analysis.claims_evidence import evidence_metrics
from vrag_kit.analysis.claims_file import (
    RagCheckerFile,
    add_ragchecker_metrics,
    ragchecker_means,
    read_ragchecker_json,
    write_ragchecker_json,
)
from vrag_kit.analysis.claims_labelled import add_human_verdicts, pairs_to_label
from vrag_kit.analysis.claims_means import claim_means, claim_values, metric_rows
from vrag_kit.analysis.claims_ragchecker import ragchecker_metrics
from vrag_kit.analysis.claims_raw import complete_ragchecker_json, count_unchecked
from vrag_kit.analysis.claims_written import to_ragchecker
from vrag_kit.analysis.comparisons import (
    broadcast_baseline,
    change_from_smallest_k,
    paired_differences,
)
from vrag_kit.analysis.conversation_means import (
    conversation_means,
    conversation_values,
    slice_means,
    slice_values,
)
from vrag_kit.analysis.conversations import StopRule, apply_early_stop
from vrag_kit.analysis.detection import (
    abstention_detection,
    add_has_evidence,
    d_prime,
    risk_coverage,
)
from vrag_kit.analysis.distractors import distractor_cost, distractor_cost_by_k
from vrag_kit.analysis.error_budget import (
    accuracy_given_clue,
    error_budget,
    first_clue_rank,
    mean_error_budget,
)
from vrag_kit.analysis.estimates import cluster_means, estimate
from vrag_kit.analysis.evidence_swap import OUTCOMES, counterfactual_effect, counterfactual_outcomes
from vrag_kit.analysis.gcue import fieller, gcue, gcue_from_means, gcue_table
from vrag_kit.analysis.means import (
    best_top_k,
    column_means,
    mean_scores,
    per_query,
    std_over_draws,
)
from vrag_kit.analysis.percent import to_percent
from vrag_kit.analysis.prediction_powered import corrected_accuracy, judge_bias_check
from vrag_kit.analysis.report_tables import ci_cells, differences_table, report_table
from vrag_kit.analysis.results import load_results
from vrag_kit.analysis.rouge import rouge_mean_correlation, rouge_score_correlation
from vrag_kit.analysis.run_comparison import flips, paired_answers
from vrag_kit.analysis.saved_answers import (
    add_questions,
    load_answers,
    save_answers,
    save_collection_answers,
)
from vrag_kit.analysis.sentences import finding
from vrag_kit.analysis.settings_table import add_clue_position, settings_table
from vrag_kit.analysis.strata import assign_stratum, expand_strata, split_by_stratum
from vrag_kit.analysis.training_facts import trained_groups
from vrag_kit.analysis.weights import PoststratificationWeights
from vrag_kit.analysis.what_differs import config_diff

__all__ = [
    "ACROSS",
    "OUTCOMES",
    "READINGS",
    "ClaimVerdicts",
    "EvidenceItem",
    "JudgedBenchmark",
    "PoststratificationWeights",
    "RagCheckerFile",
    "StopRule",
    "abstention_detection",
    "accuracy_given_clue",
    "add_clue_position",
    "add_has_evidence",
    "add_human_verdicts",
    "add_questions",
    "add_ragchecker_metrics",
    "agreement",
    "agreement_table",
    "annotator_agreement",
    "apply_early_stop",
    "assign_stratum",
    "association",
    "best_top_k",
    "broadcast_baseline",
    "change_from_smallest_k",
    "change_over_k",
    "check_answers",
    "ci_cells",
    "claim_means",
    "claim_means_by_modality",
    "claim_values",
    "cluster_means",
    "column_means",
    "compare_label_sources",
    "complete_ragchecker_json",
    "config_diff",
    "confusion_matrix",
    "conversation_means",
    "conversation_values",
    "corrected_accuracy",
    "corrected_claim_means",
    "count_unchecked",
    "counterfactual_effect",
    "counterfactual_outcomes",
    "cross_benchmark_scores",
    "cross_benchmark_table",
    "d_prime",
    "detect_abstention",
    "detector_agreement",
    "differences_table",
    "distractor_cost",
    "distractor_cost_by_k",
    "error_budget",
    "error_cases",
    "estimate",
    "evidence_metrics",
    "expand_confusion",
    "expand_strata",
    "fieller",
    "finding",
    "first_clue_rank",
    "flips",
    "gcue",
    "gcue_from_means",
    "gcue_table",
    "judge_bias_check",
    "labels_from_verdicts",
    "load_answers",
    "load_results",
    "mean_error_budget",
    "mean_scores",
    "metric_rows",
    "outcome_shares",
    "paired_answers",
    "paired_differences",
    "paired_tests",
    "paired_tests_table",
    "pairs_to_label",
    "per_query",
    "ragchecker_means",
    "ragchecker_metrics",
    "read_ragchecker_json",
    "report_table",
    "risk_coverage",
    "rouge_mean_correlation",
    "rouge_score_correlation",
    "sample_cases",
    "save_answers",
    "save_collection_answers",
    "selective_accuracy",
    "settings_table",
    "slice_means",
    "slice_values",
    "split_by_stratum",
    "std_over_draws",
    "stratum_rows",
    "text_only",
    "to_percent",
    "to_ragchecker",
    "trained_groups",
    "verdict_agreement",
    "verdict_confusion_matrix",
    "verdict_pairs",
    "verdict_table",
    "with_caption",
    "write_ragchecker_json",
]
