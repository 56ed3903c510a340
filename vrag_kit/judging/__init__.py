"""Judges that score answers: language models with a rubric, rules, metrics, and human labels.

A new judge is a class with `name`, `scale` and `judge(benchmark, answers)` (`judge.Judge`); its
name in parameters goes into `loading.JUDGES`. One that scores answer by answer is a custom class
with `score(query, answer)`, and one that queries a model is a `rubric.Rubric`. A reply that cannot
be parsed is requested once more. A verdict that fails then has no score: `judge_answers` counts
and prints it, and means leave it out.
"""

from vrag_kit.judging.abstention import is_abstention as is_abstention
from vrag_kit.judging.answer_metrics import add_rouge as add_rouge
from vrag_kit.judging.answer_metrics import rouge_recall as rouge_recall
from vrag_kit.judging.human_labels import annotation_sample as annotation_sample
from vrag_kit.judging.human_labels import join_labels as join_labels
from vrag_kit.judging.human_labels import read_human_labels as read_human_labels
from vrag_kit.judging.human_labels import select_labels as select_labels
from vrag_kit.judging.judge import Judge as Judge
from vrag_kit.judging.judge import judge_answers as judge_answers
from vrag_kit.judging.loading import JUDGES as JUDGES
from vrag_kit.judging.loading import load_judge as load_judge
from vrag_kit.judging.rubric import Rubric as Rubric
from vrag_kit.judging.rubric import UnparsedError as UnparsedError
from vrag_kit.judging.rubric import Verdict as Verdict
from vrag_kit.judging.rule_judge import RuleJudge as RuleJudge
from vrag_kit.judging.scale import SHARES as SHARES
from vrag_kit.judging.scale import TRUTH as TRUTH
from vrag_kit.judging.scale import Scale as Scale
from vrag_kit.judging.scale import scale_of as scale_of
from vrag_kit.judging.truthfulness import TruthfulnessRuleJudge as TruthfulnessRuleJudge
