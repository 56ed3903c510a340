"""MRAG-Bench (Hu et al., ICLR 2025): prompts and settings, option extraction and the official
scorer, results by scenario, option format, retrieval, and published numbers with their audit.
"""

from vrag_kit.papers.audit import audit_summary, audit_table, contradictions
from vrag_kit.papers.mrag_bench.across import candidates_from_run, without_unlabelled_positives
from vrag_kit.papers.mrag_bench.audit import (
    audit,
    overall_means,
    published_tables,
    retriever_correlations,
)
from vrag_kit.papers.mrag_bench.examples_figure import examples_figure
from vrag_kit.papers.mrag_bench.extraction import compare_extractors, with_extracted_options
from vrag_kit.papers.mrag_bench.found_and_right import (
    published_retrieval_vs_accuracy,
    retrieval_accuracy_correlations,
    retrieval_vs_accuracy,
    with_retrieval_hit,
)
from vrag_kit.papers.mrag_bench.found_and_right_figure import retriever_ranking
from vrag_kit.papers.mrag_bench.judge import MultipleChoiceJudge
from vrag_kit.papers.mrag_bench.labelled_choices import evaluate_extractors
from vrag_kit.papers.mrag_bench.option_leakage import (
    option_format_baseline,
    option_format_by_scenario,
    option_format_table,
)
from vrag_kit.papers.mrag_bench.people import (
    inter_rater_agreement,
    load_human_answers,
    micro_and_macro_accuracy,
    published_human_baseline,
)
from vrag_kit.papers.mrag_bench.positions import (
    option_selection_rates,
    rotation_consistency,
    with_options,
)
from vrag_kit.papers.mrag_bench.prompts import PROMPT_SETS, load_prompts
from vrag_kit.papers.mrag_bench.readers import (
    accuracy_by_extractor,
    official_run_ends,
    rule_counts,
    with_official_score,
)
from vrag_kit.papers.mrag_bench.readers_figure import extraction_figure, extraction_shares
from vrag_kit.papers.mrag_bench.results import (
    CHANCE,
    MODEL_GROUPS,
    accuracy_by_scenario,
    data_source,
    gains_by_scenario,
    multiple_choice_accuracy,
    published_range,
    scenario_table,
    scenario_weights,
    with_scenarios,
)
from vrag_kit.papers.mrag_bench.retrieval import (
    is_evaluated_retriever,
    retrieval_by_scenario,
    runs_with_inserted_gold,
    shipped_run,
)
from vrag_kit.papers.mrag_bench.settings import (
    gt_at_each_position,
    gt_rag,
    gt_rag_by_count,
    no_rag,
    retrieved_rag,
    reversed_contexts,
    rotate_options,
    sample_per_scenario,
)
from vrag_kit.papers.mrag_bench.spelling_arms import (
    explained_by_cue,
    option_format_variants,
    with_cue_strata,
)
from vrag_kit.papers.mrag_bench.statements import (
    check_statements,
    settings_at_chance,
    statement_differences,
    statements_table,
)
from vrag_kit.papers.mrag_bench.statistics import describe, distribution
from vrag_kit.papers.mrag_bench.statistics_figure import option_format_figure
from vrag_kit.papers.mrag_bench.swapped import mismatched_rag
from vrag_kit.papers.mrag_bench.text_settings import (
    TEXT_OR_IMAGE,
    gt_image_and_text,
    gt_text,
    retrieved_text,
    with_passages,
)
from vrag_kit.papers.mrag_bench.turned import answer_flips, example_per_scenario
from vrag_kit.papers.statements import show_statements
