"""CRAG-MM (Wang et al., 2025): its arms and their prompts, when a conversation stops,
truthfulness and its judges, and the paper's printed numbers with their audit.
"""

from vrag_kit.papers.audit_rows import audit_summary, contradictions
from vrag_kit.papers.claim_rows import show_claims
from vrag_kit.papers.crag_mm.abstention import READINGS, with_readings
from vrag_kit.papers.crag_mm.arms import Arms, arm_names
from vrag_kit.papers.crag_mm.audit import audit, paper_tables
from vrag_kit.papers.crag_mm.audit_counts import denominators, early_stops
from vrag_kit.papers.crag_mm.audit_figure import audit_figure
from vrag_kit.papers.crag_mm.claims import claims_on, claims_table, source_of
from vrag_kit.papers.crag_mm.early_stop import early_stop
from vrag_kit.papers.crag_mm.found_entities import SHOWN, found_entities, found_only, shares_found
from vrag_kit.papers.crag_mm.independent_turns import independent_turns
from vrag_kit.papers.crag_mm.judges import judged_by_reading, load_truth_judge
from vrag_kit.papers.crag_mm.labelled_answers import (
    judge_on_labelled,
    labelled_answers,
    rules_on_labelled,
)
from vrag_kit.papers.crag_mm.oracles import (
    ORACLES,
    lost_to,
    some_questions,
    truth_budget,
    with_oracles,
)
from vrag_kit.papers.crag_mm.printed import (
    printed_gains,
    printed_main,
    printed_range,
    printed_recall,
    printed_systems,
    truth_table,
)
from vrag_kit.papers.crag_mm.recall import (
    CROPPED,
    WEB_CUTOFFS,
    WHOLE,
    WITH_MARGIN,
    coverage,
    image_recall,
    recall_numbers,
    recall_panels,
    recall_table,
    web_questions,
    web_recall,
)
from vrag_kit.papers.crag_mm.results import (
    COMPARED,
    STEPS,
    slice_gains,
    truth_gains,
    truth_means,
    truth_slices,
)
from vrag_kit.papers.crag_mm.rubric import truth_prompt, truth_rubric
from vrag_kit.papers.crag_mm.slices import (
    LOW_LESS_NORMAL,
    NEEDS_LESS_ALONE,
    slice_contrast,
    slice_labels,
    sliced_truth,
)
from vrag_kit.papers.crag_mm.statements import STATEMENTS
from vrag_kit.papers.crag_mm.statistics import (
    distribution,
    one_of_each_quality,
    quality_by_kind,
    statistics,
    told_marks,
)
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.papers.crag_mm.swapped import with_other_pictures
from vrag_kit.papers.crag_mm.three_classes import printed_classes, three_classes
from vrag_kit.papers.crag_mm.turn_slices import (
    NEEDS_HISTORY,
    before_and_after,
    needs_history,
    turn_shares,
)
from vrag_kit.papers.crag_mm.verdicts import read_json, read_result
from vrag_kit.papers.crag_mm.wording import WORDINGS, rewriting_wording, wording_of

__all__ = [
    "COMPARED",
    "CROPPED",
    "LOW_LESS_NORMAL",
    "NEEDS_HISTORY",
    "NEEDS_LESS_ALONE",
    "ORACLES",
    "READINGS",
    "SHOWN",
    "STATEMENTS",
    "STEPS",
    "WEB_CUTOFFS",
    "WHOLE",
    "WITH_MARGIN",
    "WORDINGS",
    "Arms",
    "arm_names",
    "audit",
    "audit_figure",
    "audit_summary",
    "before_and_after",
    "claims_on",
    "claims_table",
    "contradictions",
    "coverage",
    "denominators",
    "distribution",
    "early_stop",
    "early_stops",
    "found_entities",
    "found_only",
    "image_recall",
    "independent_turns",
    "judge_on_labelled",
    "judged_by_reading",
    "labelled_answers",
    "load_truth_judge",
    "lost_to",
    "needs_history",
    "one_of_each_quality",
    "paper_tables",
    "printed_classes",
    "printed_gains",
    "printed_main",
    "printed_range",
    "printed_recall",
    "printed_systems",
    "quality_by_kind",
    "read_json",
    "read_result",
    "recall_numbers",
    "recall_panels",
    "recall_table",
    "rewriting_wording",
    "rules_on_labelled",
    "shares_found",
    "show_claims",
    "slice_contrast",
    "slice_gains",
    "slice_labels",
    "sliced_truth",
    "some_questions",
    "source_of",
    "statistics",
    "three_classes",
    "told_marks",
    "truth_budget",
    "truth_gains",
    "truth_means",
    "truth_prompt",
    "truth_rubric",
    "truth_slices",
    "truth_table",
    "turn_shares",
    "two_not_right",
    "web_questions",
    "web_recall",
    "with_oracles",
    "with_other_pictures",
    "with_readings",
    "wording_of",
]
