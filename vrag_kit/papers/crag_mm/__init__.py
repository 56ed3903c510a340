"""CRAG-MM (Wang et al., 2025): settings and their prompts, early stopping, truthfulness and its
judges, and the paper's published numbers with their audit.
"""

from vrag_kit.papers.audit import audit_summary, audit_table, contradictions, possible_denominators
from vrag_kit.papers.crag_mm.abstention import READINGS, with_abstention_rules
from vrag_kit.papers.crag_mm.audit import audit, early_stop_rates, published_tables
from vrag_kit.papers.crag_mm.early_stop import early_stopping
from vrag_kit.papers.crag_mm.examples_figure import conversation_card, task_images
from vrag_kit.papers.crag_mm.figures import (
    COUNTED,
    OF_IMAGES,
    TRUTHFULNESS,
    extremes,
    headline,
    of_models,
    outcome_figure,
    threshold_figure,
)
from vrag_kit.papers.crag_mm.found_entities import (
    entity_retrieval_shares,
    entity_retrieval_status,
    with_entity_retrieved,
)
from vrag_kit.papers.crag_mm.judge import judge_by_abstention_rule, load_truthfulness_judge
from vrag_kit.papers.crag_mm.labelled_answers import evaluate_judge, judge_test_set, rule_accuracy
from vrag_kit.papers.crag_mm.oracles import (
    LADDER,
    ORACLES,
    oracle_pipelines,
    recovered_by,
    sample_questions,
    truthfulness_budget,
)
from vrag_kit.papers.crag_mm.page_relevance import page_relevance
from vrag_kit.papers.crag_mm.parameters import (
    open_conversation_config,
    open_search_pipeline,
    open_services,
)
from vrag_kit.papers.crag_mm.printed import published_range, truthfulness_table
from vrag_kit.papers.crag_mm.prompts import PROMPT_SETS
from vrag_kit.papers.crag_mm.recall import (
    BY_IMAGE,
    BY_IMAGE_CUTOFFS,
    CROPPED,
    CURVES,
    WHOLE,
    WITH_MARGIN,
    image_recall,
    index_coverage,
    recall_long_table,
    recall_panels,
    recall_table,
    web_queries,
    web_recall,
)
from vrag_kit.papers.crag_mm.results import (
    COMPARED,
    STEPS,
    gains_by_slice,
    truthfulness_by_slice,
    truthfulness_gains,
    truthfulness_means,
)
from vrag_kit.papers.crag_mm.search import setting_names
from vrag_kit.papers.crag_mm.slices import (
    LOW_LESS_NORMAL,
    NEEDS_LESS_ALONE,
    slice_contrast,
    slice_labels,
    truthfulness_by_all_slices,
)
from vrag_kit.papers.crag_mm.statements import (
    STATEMENTS,
    check_statements,
    data_source,
    statements_table,
)
from vrag_kit.papers.crag_mm.statistics import (
    LABEL_NAMES,
    annotation_coverage,
    describe,
    distribution,
    example_per_quality,
    quality_by_kind,
)
from vrag_kit.papers.crag_mm.stop_rule import early_stopping_rule
from vrag_kit.papers.crag_mm.swapped import with_mismatched_images
from vrag_kit.papers.crag_mm.three_classes import judge_validation
from vrag_kit.papers.crag_mm.turn_slices import (
    NEEDS_HISTORY,
    before_and_after_early_stop,
    needs_history,
    turn_outcome_rates,
)
from vrag_kit.papers.crag_mm.verdicts import read_json, read_result
from vrag_kit.papers.statements import show_statements
