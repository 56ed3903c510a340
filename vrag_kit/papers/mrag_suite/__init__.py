"""MRAG-Suite (Ji, 2025): its data in numbers, its printed numbers with their audit, the
words of its prompts and their sweep, its filter in two steps, and ambiguous questions.
"""

from vrag_kit.papers.audit_rows import audit_summary, contradictions
from vrag_kit.papers.mrag_suite.ambiguity import (
    Detection,
    detection_prompt,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.papers.mrag_suite.ambiguity_answers import (
    ANEW_LESS_CLEAR,
    CHECK,
    ambiguity_contrasts,
    checks_of,
    save_versions,
)
from vrag_kit.papers.mrag_suite.ambiguity_figure import flags_figure
from vrag_kit.papers.mrag_suite.ambiguous_pairs import (
    ambiguous_less_clear,
    clear_partners,
    pairs_of_suite,
)
from vrag_kit.papers.mrag_suite.asked import (
    Asker,
    SideBySide,
    ask_suite,
    some_of_each,
)
from vrag_kit.papers.mrag_suite.audit import audit, paper_tables
from vrag_kit.papers.mrag_suite.audit_claims import (
    claim_rows,
    inequalities,
    near_copies,
    readings,
)
from vrag_kit.papers.mrag_suite.audit_figure import audit_figure, inequality_figure
from vrag_kit.papers.mrag_suite.beside_print import (
    DEFINITIONS,
    claims_beside_print,
    gaps_beside_print,
)
from vrag_kit.papers.mrag_suite.claim_modes import (
    CHANGES,
    CLAIM_METRICS,
    MODALITIES,
    MODE_NAMES,
    POOLED,
    best_labels,
    claim_strata,
    confusion_counts,
    mode_changes,
    mode_confusions,
    stratified,
    with_both,
    with_fixed,
)
from vrag_kit.papers.mrag_suite.closed_book import CLOSED_BOOK, closed_book_wording, with_confidence
from vrag_kit.papers.mrag_suite.detection import (
    detected_by_rule,
    flag_rates,
    load_assessor,
    status_kappa,
)
from vrag_kit.papers.mrag_suite.difficulty_filter import (
    FilterRules,
    filter_decisions,
    keep_rates,
    kept,
    stands_in_question,
    without_dropped,
    write_dropped,
)
from vrag_kit.papers.mrag_suite.equations import (
    definitions_table,
    equation_means,
    printed_equations,
)
from vrag_kit.papers.mrag_suite.filter_controls import filter_controls, filter_without
from vrag_kit.papers.mrag_suite.filter_figure import kept_figure
from vrag_kit.papers.mrag_suite.filter_tables import (
    closed_book_table,
    kept_shares,
    printed_change,
    suite_controls,
)
from vrag_kit.papers.mrag_suite.hybrid import (
    fused_less_each,
    in_one_list,
    score_suite,
    search_suite,
)
from vrag_kit.papers.mrag_suite.hybrid_figure import hybrid_figure
from vrag_kit.papers.mrag_suite.in_modes import InModes
from vrag_kit.papers.mrag_suite.modes import (
    ARMS,
    by_training,
    effects_table,
    judged_by_own,
    mode_effects,
    mode_means,
    modes_beside_print,
)
from vrag_kit.papers.mrag_suite.modes_figure import modes_figure
from vrag_kit.papers.mrag_suite.own_metrics import OWN_METRIC, metric_name, own_metric
from vrag_kit.papers.mrag_suite.printed import (
    DATASETS,
    MODELS,
    MODES,
    printed_accuracy,
    printed_ambiguous,
    printed_best_prompts,
    printed_claims,
    printed_clear_and_ambiguous,
    printed_data,
    printed_gaps,
    printed_modes,
    printed_range,
    printed_retrievers,
)
from vrag_kit.papers.mrag_suite.prompt_sweep import (
    NO_EVIDENCE,
    TAUGHT,
    ask_with_prompts,
    halves_of,
    prompt_gains,
    prompt_sweep,
)
from vrag_kit.papers.mrag_suite.prompts import (
    EXAMPLES,
    PROMPTS,
    domain_of,
    parts_table,
    prompt_design,
)
from vrag_kit.papers.mrag_suite.said_anew import agreement_of, flags_of, with_questions
from vrag_kit.papers.mrag_suite.short_answers import SHORT_ANSWERS, read_grade
from vrag_kit.papers.mrag_suite.statistics import (
    evidence_table,
    printed_name,
    statistics_table,
    suite_statistics,
)
from vrag_kit.papers.mrag_suite.statistics_figure import one_of_each_figure, statistics_figure
from vrag_kit.papers.mrag_suite.sweep_figure import sweep_figure
from vrag_kit.papers.mrag_suite.sweep_tables import (
    chosen_beside_print,
    gains_of,
    readable_table,
    sweeps_of,
)
from vrag_kit.papers.mrag_suite.wording import LAYOUT, SETTINGS, suite_wording

__all__ = [
    "ANEW_LESS_CLEAR",
    "ARMS",
    "CHANGES",
    "CHECK",
    "CLAIM_METRICS",
    "CLOSED_BOOK",
    "DATASETS",
    "DEFINITIONS",
    "EXAMPLES",
    "LAYOUT",
    "MODALITIES",
    "MODELS",
    "MODES",
    "MODE_NAMES",
    "NO_EVIDENCE",
    "OWN_METRIC",
    "POOLED",
    "PROMPTS",
    "SETTINGS",
    "SHORT_ANSWERS",
    "TAUGHT",
    "Asker",
    "Detection",
    "FilterRules",
    "InModes",
    "SideBySide",
    "agreement_of",
    "ambiguity_contrasts",
    "ambiguous_less_clear",
    "ask_suite",
    "ask_with_prompts",
    "audit",
    "audit_figure",
    "audit_summary",
    "best_labels",
    "by_training",
    "checks_of",
    "chosen_beside_print",
    "claim_rows",
    "claim_strata",
    "claims_beside_print",
    "clear_partners",
    "closed_book_table",
    "closed_book_wording",
    "confusion_counts",
    "contradictions",
    "definitions_table",
    "detected_by_rule",
    "detection_prompt",
    "domain_of",
    "effects_table",
    "equation_means",
    "evidence_table",
    "filter_controls",
    "filter_decisions",
    "filter_without",
    "flag_rates",
    "flags_figure",
    "flags_of",
    "fused_less_each",
    "gains_of",
    "gaps_beside_print",
    "halves_of",
    "hybrid_figure",
    "in_one_list",
    "inequalities",
    "inequality_figure",
    "judged_by_own",
    "keep_rates",
    "kept",
    "kept_figure",
    "kept_shares",
    "load_assessor",
    "metric_name",
    "mode_changes",
    "mode_confusions",
    "mode_effects",
    "mode_means",
    "modes_beside_print",
    "modes_figure",
    "near_copies",
    "one_of_each_figure",
    "own_metric",
    "pairs_of_suite",
    "paper_tables",
    "parts_table",
    "printed_accuracy",
    "printed_ambiguous",
    "printed_best_prompts",
    "printed_change",
    "printed_claims",
    "printed_clear_and_ambiguous",
    "printed_data",
    "printed_equations",
    "printed_gaps",
    "printed_modes",
    "printed_name",
    "printed_range",
    "printed_retrievers",
    "prompt_design",
    "prompt_gains",
    "prompt_sweep",
    "read_detection",
    "read_grade",
    "read_query_rewrite",
    "readable_table",
    "readings",
    "save_versions",
    "score_suite",
    "search_suite",
    "some_of_each",
    "stands_in_question",
    "statistics_figure",
    "statistics_table",
    "status_kappa",
    "stratified",
    "suite_controls",
    "suite_statistics",
    "suite_wording",
    "sweep_figure",
    "sweeps_of",
    "with_both",
    "with_confidence",
    "with_fixed",
    "with_questions",
    "without_dropped",
    "write_dropped",
]
