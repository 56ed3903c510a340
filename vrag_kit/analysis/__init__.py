"""Analysis: intervals over clusters, paired tests, accuracy, gCUE, agreement."""

from vrag_kit.analysis.abstention import (
    abstention_detection,
    add_has_evidence,
    risk_coverage,
    selective_accuracy,
)
from vrag_kit.analysis.agreement import agreement, agreement_table, associations, confusion_matrix
from vrag_kit.analysis.comparisons import (
    broadcast_baseline,
    paired_differences,
)
from vrag_kit.analysis.conversations import apply_early_stop
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import column_means, mean_scores, per_query, to_percent
from vrag_kit.analysis.prediction_powered import corrected_accuracy, judge_bias_check
from vrag_kit.analysis.rankings import all_pairs, rank_intervals
from vrag_kit.analysis.report_tables import (
    add_clue_position,
    ci_cells,
    differences_table,
    finding,
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
    name_paired_tests,
    paired_answers,
    paired_tests,
    paired_tests_table,
)
from vrag_kit.analysis.strata import assign_stratum, expand_strata, trained_groups
