"""Judging: how right an answer is, and whether it declined to answer."""

from vrag_kit.judging.abstention import declines
from vrag_kit.judging.claim_labels import (
    Held,
    read_annotators,
    read_claim_labels,
    write_claim_labels,
)
from vrag_kit.judging.claims import (
    Checking,
    ClaimChecker,
    ClaimExtractor,
    Extraction,
    Relation,
    Said,
    related,
    relation_of,
    statement,
)
from vrag_kit.judging.claims_by_model import load_checker, load_extractor, refuse_own_eyes
from vrag_kit.judging.claims_by_rule import RuleChecker, RuleExtractor, Sentences
from vrag_kit.judging.judge import Judge, judge_all, judge_some
from vrag_kit.judging.keypoints import keypoint_coverage
from vrag_kit.judging.labels import (
    LABELS,
    label_of_score,
    labelled,
    labels_in_hand,
    read_labels,
    sample_to_label,
    score_of_label,
    write_labels,
)
from vrag_kit.judging.loading import JUDGES, load_judge
from vrag_kit.judging.own_metrics import (
    OWN_METRICS,
    MetricJudge,
    choice_accuracy,
    normalised_em,
    relaxed_accuracy,
)
from vrag_kit.judging.page_tells import page_tells, told_by_words
from vrag_kit.judging.rouge import rouge_all, rouge_recall
from vrag_kit.judging.rubric import Rubric, Unreadable, Verdict
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale, scale_of
from vrag_kit.judging.truth_rules import TruthRuleJudge
from vrag_kit.judging.webqa_score import webqa_f1

__all__ = [
    "JUDGES",
    "LABELS",
    "OWN_METRICS",
    "SHARES",
    "TRUTH",
    "Checking",
    "ClaimChecker",
    "ClaimExtractor",
    "Extraction",
    "Held",
    "Judge",
    "MetricJudge",
    "Relation",
    "Rubric",
    "RuleChecker",
    "RuleExtractor",
    "RuleJudge",
    "Said",
    "Scale",
    "Sentences",
    "TruthRuleJudge",
    "Unreadable",
    "Verdict",
    "choice_accuracy",
    "declines",
    "judge_all",
    "judge_some",
    "keypoint_coverage",
    "label_of_score",
    "labelled",
    "labels_in_hand",
    "load_checker",
    "load_extractor",
    "load_judge",
    "normalised_em",
    "page_tells",
    "read_annotators",
    "read_claim_labels",
    "read_labels",
    "refuse_own_eyes",
    "related",
    "relation_of",
    "relaxed_accuracy",
    "rouge_all",
    "rouge_recall",
    "sample_to_label",
    "scale_of",
    "score_of_label",
    "statement",
    "told_by_words",
    "webqa_f1",
    "write_claim_labels",
    "write_labels",
]
