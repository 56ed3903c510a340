"""Analysis: intervals over clusters, paired tests, accuracy, gCUE, agreement."""

from vrag_kit.analysis.abstention import (
    change_over_k,
    detect_abstention,
    detector_agreement,
    selective_accuracy,
)
from vrag_kit.analysis.accuracy import accuracy, best_top_k, column_means, over_draws, per_query
from vrag_kit.analysis.across import ACROSS, Answered, across, across_table, strata_of
from vrag_kit.analysis.agreement import (
    READINGS,
    agreement,
    agreement_table,
    confusion,
    pairs_of,
)
from vrag_kit.analysis.arm_differences import arm_differences, arm_table
from vrag_kit.analysis.association import association
from vrag_kit.analysis.cases import error_cases, kinds_of_answers, sample_cases
from vrag_kit.analysis.cells import differences_table, interval_cells, interval_table
from vrag_kit.analysis.claims import ClaimSheet, Item
from vrag_kit.analysis.claims_annotated import annotator_agreement, beside_truth, labels_of
from vrag_kit.analysis.claims_apart import claim_means_apart, sheet_table
from vrag_kit.analysis.claims_checked import as_text, with_caption, with_claims
from vrag_kit.analysis.claims_error import (
    corrected_claims,
    verdict_agreement,
    verdict_confusion,
    verdict_pairs,
)
from vrag_kit.analysis.claims_evidence import evidence_metrics
from vrag_kit.analysis.claims_file import (
    ClaimsFile,
    ragchecker_groups,
    read_claims_file,
    with_metrics,
    write_claims_file,
)
from vrag_kit.analysis.claims_labelled import to_label, with_true_sheets
from vrag_kit.analysis.claims_means import claim_means, claim_values, sheet_rows
from vrag_kit.analysis.claims_ragchecker import ragchecker_metrics
from vrag_kit.analysis.claims_raw import check_claims_file, unchecked
from vrag_kit.analysis.claims_written import claims_file_of
from vrag_kit.analysis.company import cost_of_company, growth_of_company
from vrag_kit.analysis.comparison import beside_each, compare, since_smallest_k
from vrag_kit.analysis.conversation_means import (
    conversation_means,
    conversation_values,
    slice_means,
    slice_values,
)
from vrag_kit.analysis.conversations import StopRule, with_stop
from vrag_kit.analysis.detection import d_prime, detection, risk_coverage, with_evidence
from vrag_kit.analysis.error_budget import (
    accuracy_given_clue,
    error_budget,
    first_clue_rank,
    mean_budget,
)
from vrag_kit.analysis.evidence_swap import OUTCOMES, swap_effect, swap_outcomes
from vrag_kit.analysis.gcue import fieller, gcue, gcue_of, gcue_table
from vrag_kit.analysis.intervals import estimate, summarise
from vrag_kit.analysis.mix import Mix
from vrag_kit.analysis.percent import in_percent
from vrag_kit.analysis.prediction_powered import corrected_accuracy, gains_beside_judge
from vrag_kit.analysis.results import load_results
from vrag_kit.analysis.rouge import arm_correlation, rouge_follows
from vrag_kit.analysis.saved_answers import (
    load_answers,
    save_answers,
    save_suite_answers,
    with_questions,
)
from vrag_kit.analysis.sentences import finding
from vrag_kit.analysis.settings_table import settings_table, with_clue_place
from vrag_kit.analysis.strata import by_stratum, with_strata, with_stratum
from vrag_kit.analysis.two_arms import flips, paired_answers
from vrag_kit.analysis.what_differs import what_differs

__all__ = [
    "ACROSS",
    "OUTCOMES",
    "READINGS",
    "Answered",
    "ClaimSheet",
    "ClaimsFile",
    "Item",
    "Mix",
    "StopRule",
    "accuracy",
    "accuracy_given_clue",
    "across",
    "across_table",
    "agreement",
    "agreement_table",
    "annotator_agreement",
    "arm_correlation",
    "arm_differences",
    "arm_table",
    "as_text",
    "association",
    "beside_each",
    "beside_truth",
    "best_top_k",
    "by_stratum",
    "change_over_k",
    "check_claims_file",
    "claim_means",
    "claim_means_apart",
    "claim_values",
    "claims_file_of",
    "column_means",
    "compare",
    "confusion",
    "conversation_means",
    "conversation_values",
    "corrected_accuracy",
    "corrected_claims",
    "cost_of_company",
    "d_prime",
    "detect_abstention",
    "detection",
    "detector_agreement",
    "differences_table",
    "error_budget",
    "error_cases",
    "estimate",
    "evidence_metrics",
    "fieller",
    "finding",
    "first_clue_rank",
    "flips",
    "gains_beside_judge",
    "gcue",
    "gcue_of",
    "gcue_table",
    "growth_of_company",
    "in_percent",
    "interval_cells",
    "interval_table",
    "kinds_of_answers",
    "labels_of",
    "load_answers",
    "load_results",
    "mean_budget",
    "over_draws",
    "paired_answers",
    "pairs_of",
    "per_query",
    "ragchecker_groups",
    "ragchecker_metrics",
    "read_claims_file",
    "risk_coverage",
    "rouge_follows",
    "sample_cases",
    "save_answers",
    "save_suite_answers",
    "selective_accuracy",
    "settings_table",
    "sheet_rows",
    "sheet_table",
    "since_smallest_k",
    "slice_means",
    "slice_values",
    "strata_of",
    "summarise",
    "swap_effect",
    "swap_outcomes",
    "to_label",
    "unchecked",
    "verdict_agreement",
    "verdict_confusion",
    "verdict_pairs",
    "what_differs",
    "with_caption",
    "with_claims",
    "with_clue_place",
    "with_evidence",
    "with_metrics",
    "with_questions",
    "with_stop",
    "with_strata",
    "with_stratum",
    "with_true_sheets",
    "write_claims_file",
]
