"""The protocol `Judge`, and `judge_answers`, which adds verdicts to a table of answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Protocol, cast

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError, short_repr
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.custom_judge import CustomJudge, load_custom_judge
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale, ok_answers
from vrag_kit.log import logger, record_calls
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, Failure, Judgment, Status

_AGAIN = "Calls that failed are asked again with `retry_failures: true` in `hardware`"
_CUT = "Verdicts that are cut off need a larger `max_new_tokens` of the judge's entry or class"
_NOT_READ = "What could not be read twice stays so: take a stronger judge, or a plainer rubric"
_NEARLY_ALL = 0.9
"""The share of unreadable answers from which a model may not have been understood."""


class Judge(Protocol):
    """Scores the correctness of answers.

    Optional are `shown`, the scale to which its scores are converted (see `judge_answers`),
    `fingerprint`, a text that changes whenever its verdicts may, and `words`, its prompt
    (`judge_prompt`).
    """

    name: str
    scale: Scale

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return for each row of answers, all to queries of the benchmark, one verdict per sample.
        A verdict has a score on the scale and marks, or a failure with the reason.
        """


_JUDGED_BY = ["query_id", "status", "answer", "detail"]
"""The columns of answers that tell what becomes of them."""
SILENCE = {Status.EMPTY: "empty", Status.TRUNCATED: "cut off"}
"""Mark of an answer that is empty, or that was truncated."""
_WORDS: dict[str, str] = {}
"""judge_id → what that judge is asked, of those that judged in this process."""


def judge_prompt(judge_id: str) -> str:
    """Return the prompt of the judge with this key in this process (`Rubric.words`).
    "" for a judge that is no model, or that judged in another process.
    """
    return _WORDS.get(judge_id, "")


def judge_answers(
    judge: Judge | CustomJudge, benchmark: Benchmark, answers: pd.DataFrame
) -> pd.DataFrame:
    """Return the table of answers with the scores and verdicts of a judge added.

    Added columns: score, spread, abstained, flagged, marks, verdict (the judge's raw reply),
    score_min and score_max (the ends of the scale of score), judge (the judge's name) and judge_id.
    judge_id distinguishes judges of one name: a hash of name, fingerprint (model, rubric or class)
    and scale.

    Scores are converted to [0, 1] by (score − worst) / (best − worst). Those of a judge whose scale
    is symmetric about 0 are converted to [−1, 1], truthfulness. Its `shown` overrides both.

    score, abstained and flagged (1.0 or 0.0 for one verdict) are means over the parsed verdicts of
    an answer. They are NaN where the call failed or no verdict could be parsed: such rows are
    counted and left out of means. An empty or truncated answer is not sent to the judge: it gets
    the worst score, and its mark is "empty" or "cut off". spread is the standard deviation over an
    answer's verdicts, NaN for fewer than two. An answer is flagged when the judge calls it an
    abstention ("No Answer"). It abstains when it is flagged, or when it scores `Scale.nothing` and
    its text abstains, unless marked as a hallucination. Equal answers to a query are judged once.

    Raises `VragError` for a row that answers no query, and when no answer got a verdict.
    """
    judge = _fitted(judge)
    judged = judge_subset(judge, benchmark, answers)
    good = judged[judged["status"] == "ok"].drop_duplicates(["query_id", "answer"])
    if len(good) and good["score"].isna().all():
        helps = _what_helps(judge, good["verdict"].str.partition(":")[0])
        again = f" {helps}." if helps not in ("", _NOT_READ) else ""
        raise VragError(
            f"judge {judge.name!r}: none of {len(good):,} answers got a verdict; the first says"
            f' "{good["verdict"].iloc[0]}". Take a stronger judge, or mend what that says; answers'
            f" and verdicts are kept.{again}"
        )
    _note_unread(judged[judged["status"] == "ok"])
    return judged


def judge_subset(
    judge: Judge | CustomJudge, benchmark: Benchmark, answers: pd.DataFrame
) -> pd.DataFrame:
    """Judge a part of the answers, such as one turn of conversations, as `judge_answers` does.
    Unlike there, it is no error if none of them gets a verdict.
    """
    judge = _fitted(judge)
    require_columns(answers, ["query_id", "status"], "judge_answers")
    good = ok_answers(benchmark, answers).drop_duplicates(["query_id", "answer"])
    found = judge.judge(benchmark, good)
    shown = getattr(judge, "shown", TRUTH if judge.scale.signed else SHARES)
    comparable = [bool(benchmark.queries[query_id].answers) for query_id in good["query_id"]]
    if hidden := comparable.count(False):
        logger.info(
            f"judge {judge.name}: {hidden:,} answers have none to be held against: no verdict"
        )
    _note_lost(judge, list(compress(found, comparable)))
    _note_samples(judge.name, found)
    pairs = zip(good["query_id"], good["answer"], strict=True)
    cells = {
        pair: _cells(verdicts, pair[1], judge.scale, shown)
        for pair, verdicts in zip(pairs, found, strict=True)
    }
    rows = []
    for row in answers[answers.columns.intersection(_JUDGED_BY)].to_dict("records"):
        if row["status"] == "ok":
            rows.append(cells[row["query_id"], row["answer"]])
        else:
            failure = Failure(Status(row["status"]), row["detail"])
            known = bool(benchmark.queries[row["query_id"]].answers)
            rows.append(_without_verdict(failure, shown if known else None))
    columns = pd.DataFrame(rows, columns=list(_NOTHING), index=answers.index)
    key = _key(judge, shown)
    if key:
        _WORDS[key] = getattr(judge, "words", "")
    return answers.assign(
        **{str(name): column for name, column in columns.items()},
        score_min=shown.worst,
        score_max=shown.best,
        judge=judge.name,
        judge_id=key,
    )


def _key(judge: Judge, shown: Scale) -> str:
    """Twelve letters that differ where the verdicts of two judges may; "" of an object of
    one's own without a fingerprint, of which that is not known.
    """
    fingerprint = getattr(judge, "fingerprint", judge.name)
    if not fingerprint:
        return ""
    ends = (judge.scale.worst, judge.scale.best, shown.worst, shown.best)
    told = (judge.name, fingerprint, *map(float, ends))
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def _fitted(judge: Judge | CustomJudge) -> Judge:
    """The judge, or what fits an object of one's own class to it."""
    if callable(getattr(judge, "judge", None)):
        return cast(Judge, judge)
    own = None if isinstance(judge, str | Mapping) else load_custom_judge(cast(CustomJudge, judge))
    if own is None:
        raise VragError(
            f"judge_answers: found {judge!r}, which scores nothing; expected a judge, as"
            " load_judge(…) gives it, or an object with the method score."
        )
    return own


_NOTHING: dict[str, float | str] = {
    "score": np.nan,
    "spread": np.nan,
    "abstained": np.nan,
    "flagged": np.nan,
    "marks": "",
    "verdict": "",
}
"""The columns of an answer that has no verdict."""


def _cells(
    verdicts: Sequence[Judgment], answer: str, scale: Scale, shown: Scale
) -> dict[str, float | str]:
    """The columns of one answer, from its verdicts on `scale`, brought to that shown."""
    cells = {**_NOTHING, "verdict": " / ".join(_verdict_text(verdict) for verdict in verdicts)}
    scores = [scale.rescale(shown, score) for score in _scores(verdicts)]
    if not scores:
        return cells
    readable = [verdict for verdict in verdicts if verdict.score is not None]
    marks = frozenset().union(*(verdict.marks for verdict in verdicts))
    return {
        **cells,
        "score": float(np.mean(scores)),
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan,
        "abstained": float(np.mean([_abstains(verdict, answer, scale) for verdict in readable])),
        "flagged": float(np.mean(["abstention" in verdict.marks for verdict in readable])),
        "marks": ", ".join(sorted(marks)),
    }


def _without_verdict(failure: Failure, scale: Scale | None) -> dict[str, float | str]:
    """The columns of what is not shown to the judge: a silent answer earns the worst of
    the scale, unless there is none for a query whose answers are hidden.
    """
    cells = {**_NOTHING, "verdict": str(failure)}
    if scale is None or not failure.kind.is_answer:
        return cells
    marks = SILENCE[failure.kind]
    return {**cells, "score": scale.worst, "abstained": 0.0, "flagged": 0.0, "marks": marks}


def _scores(verdicts: Sequence[Judgment]) -> list[float]:
    return [verdict.score for verdict in verdicts if verdict.score is not None]


def _verdict_text(verdict: Judgment) -> str:
    """The judge's words on one line, or why there are none."""
    return str(verdict.failure) if verdict.failure else " ".join((verdict.raw or "").split())


def _abstains(verdict: Judgment, answer: str, scale: Scale) -> bool:
    if "abstention" in verdict.marks:
        return True
    nothing = verdict.score == scale.nothing
    return nothing and "hallucination" not in verdict.marks and is_abstention(answer)


def _note_unread(judged: pd.DataFrame) -> None:
    """Print which models' answers, nearly all, are no answers to a judge that says so."""
    if "model" not in judged:
        return
    for model, answers in judged.groupby("model", sort=False):
        unread = answers["marks"].str.contains("unparsed")
        if unread.mean() >= _NEARLY_ALL:
            said = short_repr(answers.loc[unread, "answer"].iloc[0])
            logger.info(
                f"note: {model}: {unread.sum():,} of {len(answers):,} answers are unreadable and"
                f" earn the worst, such as {said}. See whether it says what is asked for, such as"
                " an option's letter.",
            )


def _note_lost(judge: Judge, found: Sequence[Sequence[Judgment]]) -> None:
    """Print what got no verdict though it could be judged, and tell the runner."""
    given = list(chain.from_iterable(found))
    lost = [verdict.failure for verdict in given if verdict.failure]
    again = _what_helps(judge, [failure.kind for failure in lost])
    if given:
        record_calls("judge", judge.name, len(given), lost, again)
    if lost:
        logger.info(
            f"judge {judge.name}: {len(lost):,} of {len(given):,} verdicts are missing, such as"
            f' "{lost[0]}"; they are left out of means. {again}'.rstrip(". "),
        )


def _what_helps(judge: Judge, kinds: Iterable[str]) -> str:
    """What to do about verdicts that a language model did not give, by why there are none."""
    found = set(kinds)
    if not isinstance(judge, LLMJudge):
        return ""
    if found <= {Status.UNREADABLE}:
        return _NOT_READ
    return _CUT if found <= {Status.TRUNCATED, Status.UNREADABLE} else _AGAIN


def _note_samples(name: str, found: Sequence[Sequence[Judgment]]) -> None:
    """Print how far samples differ."""
    several = [scores for scores in map(_scores, found) if len(scores) > 1]
    if several:
        differ = sum(len(set(scores)) > 1 for scores in several)
        spread = float(np.mean([np.std(scores, ddof=1) for scores in several]))
        logger.info(
            f"judge {name}: samples differ on {differ:,} of {len(several):,} answers; the standard"
            f" deviation of a score is {spread:.3f} in the mean",
        )
