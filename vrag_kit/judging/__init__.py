"""Judging: how right an answer is, and whether it declined to answer."""

from vrag_kit.judging.abstention import declines
from vrag_kit.judging.judge import PAPER_JUDGE, Judge, judge_all, load_judge
from vrag_kit.judging.labels import (
    LABELS,
    label_of_score,
    labelled,
    read_labels,
    sample_to_label,
    write_labels,
)
from vrag_kit.judging.llm_judge import LLMJudge, judge_prompt
from vrag_kit.judging.rouge import rouge_all, rouge_recall
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.verdicts import Unreadable, Verdict, read_verdict

__all__ = [
    "LABELS",
    "PAPER_JUDGE",
    "Judge",
    "LLMJudge",
    "RuleJudge",
    "Unreadable",
    "Verdict",
    "declines",
    "judge_all",
    "judge_prompt",
    "label_of_score",
    "labelled",
    "load_judge",
    "read_labels",
    "read_verdict",
    "rouge_all",
    "rouge_recall",
    "sample_to_label",
    "write_labels",
]
