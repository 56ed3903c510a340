"""Judges that score answers: language models with a rubric, rules, metrics, and human labels.

A new judge is a class with `name`, `scale` and `judge(benchmark, answers)` (`judge.Judge`); its
name in parameters goes into `loading.JUDGES`. One that scores answer by answer is a custom class
with `score(query, answer)`, and one that queries a model is a `rubric.Rubric`. A reply that cannot
be parsed is requested once more. A verdict that fails then has no score: `judge_answers` counts
and prints it, and means leave it out.
"""

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.answer_metrics import add_rouge, rouge_recall
from vrag_kit.judging.human_labels import (
    annotation_sample,
    join_labels,
    read_human_labels,
    select_labels,
)
from vrag_kit.judging.judge import Judge, judge_answers
from vrag_kit.judging.loading import JUDGES, load_judge
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale, scale_of
from vrag_kit.judging.truthfulness import TruthfulnessRuleJudge
