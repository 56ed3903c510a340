"""MRAG-Suite (Ji, 2025): its data in numbers, its printed numbers with their audit, the
words of its prompts and their sweep, its filter in two steps, and ambiguous questions.
"""

from vrag_kit.papers.audit_rows import audit_summary, contradictions
from vrag_kit.papers.mrag_suite.ambiguity import (
    AnswerRewrite,
    Detection,
    answer_rewrite_prompt,
    detection_prompt,
    query_rewrite_prompt,
    read_answer_rewrite,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.papers.mrag_suite.ambiguity_answers import ambiguity_contrasts, save_versions
from vrag_kit.papers.mrag_suite.ambiguity_figure import flags_figure
from vrag_kit.papers.mrag_suite.ambiguous_pairs import (
    ambiguous_less_clear,
    clear_partners,
    pairs_of_suite,
)
from vrag_kit.papers.mrag_suite.asked import Asker, SideBySide, ask_suite, some_of_each
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
    beside_print,
    claims_beside_print,
    gaps_beside_print,
)
from vrag_kit.papers.mrag_suite.closed_book import CLOSED_BOOK, closed_book_wording, with_confidence
from vrag_kit.papers.mrag_suite.detection import (
    Assessor,
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
    effects_in_words,
    effects_table,
    judged_by_own,
    mode_effects,
    mode_means,
    modes_beside_print,
)
from vrag_kit.papers.mrag_suite.modes_figure import modes_figure
from vrag_kit.papers.mrag_suite.own_metrics import OWN_METRIC
from vrag_kit.papers.mrag_suite.printed import (
    DATASETS,
    MODELS,
    MODES,
    TEXT_ONLY,
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
from vrag_kit.papers.mrag_suite.printed_text import claims
from vrag_kit.papers.mrag_suite.prompt_sweep import ask_with_prompts, halves_of, prompt_sweep
from vrag_kit.papers.mrag_suite.prompts import (
    EXAMPLES,
    INIT,
    PROMPTS,
    REASONING,
    PromptDesign,
    domain_of,
    parts_table,
    prompt_design,
)
from vrag_kit.papers.mrag_suite.said_anew import agreement_of, flags_of, with_questions
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
    gains_table,
    readable_table,
    sweeps_of,
)
from vrag_kit.papers.mrag_suite.wording import LAYOUT, SETTINGS, suite_wording

__all__ = [
    "ARMS",
    "CLOSED_BOOK",
    "DATASETS",
    "DEFINITIONS",
    "EXAMPLES",
    "INIT",
    "LAYOUT",
    "MODELS",
    "MODES",
    "OWN_METRIC",
    "PROMPTS",
    "REASONING",
    "SETTINGS",
    "TEXT_ONLY",
    "AnswerRewrite",
    "Asker",
    "Assessor",
    "Detection",
    "FilterRules",
    "InModes",
    "PromptDesign",
    "SideBySide",
    "agreement_of",
    "ambiguity_contrasts",
    "ambiguous_less_clear",
    "answer_rewrite_prompt",
    "ask_suite",
    "ask_with_prompts",
    "audit",
    "audit_figure",
    "audit_summary",
    "beside_print",
    "chosen_beside_print",
    "claim_rows",
    "claims",
    "claims_beside_print",
    "clear_partners",
    "closed_book_table",
    "closed_book_wording",
    "contradictions",
    "definitions_table",
    "detected_by_rule",
    "detection_prompt",
    "domain_of",
    "effects_in_words",
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
    "gains_table",
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
    "mode_effects",
    "mode_means",
    "modes_beside_print",
    "modes_figure",
    "near_copies",
    "one_of_each_figure",
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
    "prompt_sweep",
    "query_rewrite_prompt",
    "read_answer_rewrite",
    "read_detection",
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
    "suite_controls",
    "suite_statistics",
    "suite_wording",
    "sweep_figure",
    "sweeps_of",
    "with_confidence",
    "with_questions",
    "write_dropped",
]
