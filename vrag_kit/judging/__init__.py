"""Judging: how right an answer is, and whether it declined to answer."""

from vrag_kit.judging.abstention import declines
from vrag_kit.judging.judge import PAPER_JUDGE, Judge, judge_all, load_judge
from vrag_kit.judging.llm_judge import LLMJudge, judge_prompt
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.verdicts import Unreadable, Verdict, read_verdict

__all__ = ["PAPER_JUDGE", "Judge", "LLMJudge", "RuleJudge", "Unreadable", "Verdict", "declines", "judge_all", "judge_prompt", "load_judge", "read_verdict"]
