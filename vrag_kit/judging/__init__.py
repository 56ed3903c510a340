"""Judges that score answers and claims: metrics, rubrics, abstention and human labels."""

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.answer_metrics import (
    OWN_METRICS,
    MetricJudge,
    add_rouge,
    answer_in_page,
    choice_accuracy,
    keypoint_coverage,
    normalised_em,
    page_relevance,
    relaxed_accuracy,
    rouge_recall,
    webqa_f1,
)
from vrag_kit.judging.human_labels import (
    LABEL_SCORES,
    annotation_sample,
    join_labels,
    label_of_score,
    read_human_labels,
    score_of_label,
    select_labels,
    write_human_labels,
)
from vrag_kit.judging.judge import Judge, judge_answers
from vrag_kit.judging.loading import JUDGES, load_judge
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale, scale_of
from vrag_kit.judging.truthfulness import TruthfulnessRuleJudge

__all__ = [
    "JUDGES",
    "LABEL_SCORES",
    "OWN_METRICS",
    "SHARES",
    "TRUTH",
    "Judge",
    "MetricJudge",
    "Rubric",
    "RuleJudge",
    "Scale",
    "TruthfulnessRuleJudge",
    "UnparsedError",
    "Verdict",
    "add_rouge",
    "annotation_sample",
    "answer_in_page",
    "choice_accuracy",
    "is_abstention",
    "join_labels",
    "judge_answers",
    "keypoint_coverage",
    "label_of_score",
    "load_judge",
    "normalised_em",
    "page_relevance",
    "read_human_labels",
    "relaxed_accuracy",
    "rouge_recall",
    "scale_of",
    "score_of_label",
    "select_labels",
    "webqa_f1",
    "write_human_labels",
]
