"""Analysis: intervals over clusters, paired tests, accuracy, gCUE, agreement."""

from vrag_kit.analysis.abstention import (
    abstention_detection,
    add_has_evidence,
    risk_coverage,
    selective_accuracy,
)
from vrag_kit.analysis.agreement import (
    agreement,
    agreement_table,
    confusion_matrix,
)
from vrag_kit.analysis.comparisons import (
    broadcast_baseline,
    change_from_smallest_k,
    paired_differences,
)
from vrag_kit.analysis.conversations import (
    apply_early_stop,
)
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import (
    column_means,
    mean_scores,
    per_query,
    to_percent,
)
from vrag_kit.analysis.prediction_powered import corrected_accuracy, judge_bias_check
from vrag_kit.analysis.report_tables import (
    add_clue_position,
    ci_cells,
    differences_table,
    report_table,
    settings_table,
)
from vrag_kit.analysis.results import (
    add_questions,
    load_answers,
    load_results,
    save_answers,
    save_collection_answers,
)
from vrag_kit.analysis.run_comparison import (
    config_diff,
    flips,
    paired_answers,
    paired_tests,
    paired_tests_table,
)
from vrag_kit.analysis.strata import assign_stratum, expand_strata, split_by_stratum, trained_groups

__all__ = [
    "abstention_detection",
    "add_clue_position",
    "add_has_evidence",
    "add_questions",
    "agreement",
    "agreement_table",
    "apply_early_stop",
    "assign_stratum",
    "broadcast_baseline",
    "change_from_smallest_k",
    "ci_cells",
    "cluster_means",
    "column_means",
    "config_diff",
    "confusion_matrix",
    "corrected_accuracy",
    "differences_table",
    "expand_strata",
    "flips",
    "judge_bias_check",
    "load_answers",
    "load_results",
    "mean_scores",
    "paired_answers",
    "paired_differences",
    "paired_tests",
    "paired_tests_table",
    "per_query",
    "report_table",
    "risk_coverage",
    "save_answers",
    "save_collection_answers",
    "selective_accuracy",
    "settings_table",
    "split_by_stratum",
    "to_percent",
    "trained_groups",
]
