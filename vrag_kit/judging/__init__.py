"""Judges that score answers and claims: metrics, rubrics, abstention and human labels."""

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.answer_metrics import (
    OWN_METRICS,
    MetricJudge,
    choice_accuracy,
    normalised_em,
    relaxed_accuracy,
)
from vrag_kit.judging.claim_labels import (
    ClaimPair,
    read_annotator_labels,
    read_claim_labels,
    write_claim_labels,
)
from vrag_kit.judging.claims import (
    AnswerText,
    ClaimChecker,
    ClaimExtraction,
    ClaimExtractor,
    EntailmentLabel,
    EntailmentRequest,
    answer_document,
    entailment_label,
    verdict,
)
from vrag_kit.judging.claims_by_model import forbid_self_check, load_checker, load_extractor
from vrag_kit.judging.claims_by_rule import RuleChecker, RuleExtractor, SentenceGrammar
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
from vrag_kit.judging.judge import Judge, judge_answers, judge_subset
from vrag_kit.judging.keypoints import keypoint_coverage
from vrag_kit.judging.loading import JUDGES, load_judge
from vrag_kit.judging.page_tells import answer_in_page, page_relevance
from vrag_kit.judging.rouge import add_rouge, rouge_recall
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale, scale_of
from vrag_kit.judging.truth_rules import TruthfulnessRuleJudge
from vrag_kit.judging.webqa_score import webqa_f1

__all__ = [
    "JUDGES",
    "LABEL_SCORES",
    "OWN_METRICS",
    "SHARES",
    "TRUTH",
    "AnswerText",
    "ClaimChecker",
    "ClaimExtraction",
    "ClaimExtractor",
    "ClaimPair",
    "EntailmentLabel",
    "EntailmentRequest",
    "Judge",
    "MetricJudge",
    "Rubric",
    "RuleChecker",
    "RuleExtractor",
    "RuleJudge",
    "Scale",
    "SentenceGrammar",
    "TruthfulnessRuleJudge",
    "UnparsedError",
    "Verdict",
    "add_rouge",
    "annotation_sample",
    "answer_document",
    "answer_in_page",
    "choice_accuracy",
    "entailment_label",
    "forbid_self_check",
    "is_abstention",
    "join_labels",
    "judge_answers",
    "judge_subset",
    "keypoint_coverage",
    "label_of_score",
    "load_checker",
    "load_extractor",
    "load_judge",
    "normalised_em",
    "page_relevance",
    "read_annotator_labels",
    "read_claim_labels",
    "read_human_labels",
    "relaxed_accuracy",
    "rouge_recall",
    "scale_of",
    "score_of_label",
    "select_labels",
    "verdict",
    "webqa_f1",
    "write_claim_labels",
    "write_human_labels",
]
