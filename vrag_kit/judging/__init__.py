"""Judging: how right an answer is, and whether it declined to answer."""

from vrag_kit.judging.abstention import declines
from vrag_kit.judging.judge import Judge, judge_all
from vrag_kit.judging.rule_judge import RuleJudge

__all__ = ["Judge", "RuleJudge", "declines", "judge_all"]
