"""MRAG-Suite (Ji, 2025): data set statistics, published numbers with their audit, prompts and their
sweep, the two-step difficulty filter, and ambiguous questions.
"""

from vrag_kit.papers.audit import audit_summary, audit_table, contradictions
from vrag_kit.papers.mrag_suite.ambiguity_answers import (
    CHECK,
    REWRITTEN_MINUS_CLEAR,
    ambiguity_contrasts,
    oracle_rewrite_checks,
    save_question_versions,
)
from vrag_kit.papers.mrag_suite.ambiguity_figure import ambiguity_figure
from vrag_kit.papers.mrag_suite.ambiguous_pairs import ambiguous_minus_clear, match_suite_questions
from vrag_kit.papers.mrag_suite.asked import (
    HybridContexts,
    SuiteEvaluation,
    ask_suite,
    sample_per_dataset,
)
from vrag_kit.papers.mrag_suite.audit import (
    audit,
    consistent_definitions,
    inequalities,
    near_duplicate_rows,
    published_tables,
)
from vrag_kit.papers.mrag_suite.checked_answer_figure import checked_answer, suite_errors
from vrag_kit.papers.mrag_suite.claim_figures import (
    change_figure,
    checker_figure,
    claim_figure,
    label_figure,
    modality_figure,
)
from vrag_kit.papers.mrag_suite.claim_modes import (
    CLAIM_METRICS,
    MODALITIES,
    MODE_NAMES,
    POOLED,
    best_available_labels,
    confusion_counts,
    confusions_by_mode,
    drop_redundant_pooled,
    mode_contrasts,
    with_both_modalities,
    with_claim_strata,
    with_fixed,
)
from vrag_kit.papers.mrag_suite.closed_book import closed_book_prompts, with_confidence
from vrag_kit.papers.mrag_suite.datasets import dataset_metric, metric_label
from vrag_kit.papers.mrag_suite.detection import detect_with_rule, load_ambiguity_detector
from vrag_kit.papers.mrag_suite.equations import definitions_table, equation_means
from vrag_kit.papers.mrag_suite.filter import (
    FilterRules,
    answer_in_question,
    filter_decisions,
    without_dropped,
    write_dropped,
)
from vrag_kit.papers.mrag_suite.filter_figure import kept_figure
from vrag_kit.papers.mrag_suite.filter_tables import (
    closed_book_table,
    filter_controls_by_dataset,
    kept_shares,
    published_filter_change,
)
from vrag_kit.papers.mrag_suite.hybrid import (
    fusion_gains,
    score_suite,
    search_suite,
    single_list_recall,
)
from vrag_kit.papers.mrag_suite.in_modes import EvidenceModes
from vrag_kit.papers.mrag_suite.inequalities_figure import inequality_figure
from vrag_kit.papers.mrag_suite.modes import (
    ARMS,
    compare_modes_to_paper,
    effects_table,
    judge_suite,
    mode_effects,
    mode_means,
    mode_names,
    strata_or_pooled,
    training_strata,
)
from vrag_kit.papers.mrag_suite.printed import DATASETS, published_range
from vrag_kit.papers.mrag_suite.prompts import (
    EXAMPLES,
    LAYOUT,
    PROMPTS,
    SETTINGS,
    prompt_design,
    prompt_parts_table,
    suite_prompts,
)
from vrag_kit.papers.mrag_suite.published_comparison import (
    compare_claims_to_paper,
    compare_gaps_to_paper,
)
from vrag_kit.papers.mrag_suite.rewriting import (
    detection_agreement,
    flag_rates_by_detector,
    with_rewritten_questions,
)
from vrag_kit.papers.mrag_suite.short_answers import SHORT_ANSWERS
from vrag_kit.papers.mrag_suite.statistics import describe_suite, evidence_table, statistics_table
from vrag_kit.papers.mrag_suite.statistics_figure import (
    example_per_dataset_figure,
    statistics_figure,
)
from vrag_kit.papers.mrag_suite.sweep import NO_EVIDENCE, TAUGHT, ask_with_prompts, prompt_gains
from vrag_kit.papers.mrag_suite.sweep_figure import prompt_gain_figure, sweep_figure
from vrag_kit.papers.mrag_suite.sweep_tables import (
    compare_chosen_to_paper,
    parse_rate_table,
    prompt_gains_by_dataset,
    sweep_by_dataset,
)
