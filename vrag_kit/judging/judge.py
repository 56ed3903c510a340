"""The protocol `Judge`, and `judge_all`: answers get verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Protocol, cast

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError, short
from vrag_kit.forecast import current_forecast
from vrag_kit.frames import require_columns
from vrag_kit.judging.abstention import declines
from vrag_kit.judging.answered import answered
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.own_judge import JudgeClass, own_judge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale
from vrag_kit.tally import tell_verdicts
from vrag_kit.types import Benchmark, Failure, Judgment, Status

_AGAIN = "Calls that failed are asked again with `run_with: {retry_failures: true}`"
_CUT = "Verdicts that are cut off need a larger `max_new_tokens` of the judge's entry or class"
_NOT_READ = "What could not be read twice stays so: take a stronger judge, or a plainer rubric"
_NEARLY_ALL = 0.9
"""The share of unreadable answers from which a model may not have been understood."""


class Judge(Protocol):
    """Says how right answers are.

    Optional are `shown`, the scale that its scores are brought to (see `judge_all`),
    `fingerprint`, a text that changes whenever its verdicts may, and `words`, what it is
    asked (`judge_words`).
    """

    name: str
    scale: Scale

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """For each row of answers, all to queries of the benchmark, one verdict a
        sample: on the scale with its marks, or one whose failure says why there is none.
        """


_JUDGED_BY = ["query_id", "status", "answer", "detail"]
"""The columns of answers that tell what becomes of them."""
SILENCE = {Status.EMPTY: "empty", Status.TRUNCATED: "cut off"}
"""How an answer is marked that the model left empty, or that was cut off."""
_WORDS: dict[str, str] = {}
"""judge_key → what that judge is asked, of those that judged in this process."""


def judge_words(judge_key: str) -> str:
    """What the judge of this key was asked in this process (`Rubric.words`); "" of one
    that is no model, and of one that has judged elsewhere.
    """
    return _WORDS.get(judge_key, "")


def judge_all(
    judge: Judge | JudgeClass, benchmark: Benchmark, answers: pd.DataFrame
) -> pd.DataFrame:
    """The table of answers with the columns score, spread, abstained, marked, marks and
    verdict added, worst and best: the ends of the scale that score is on, judged_by: the
    judge's name, and judge_key, which tells judges of one name apart: a hash of name,
    fingerprint (model, rubric or class) and scale.

    That is [0, 1], to which the scores of a judge on another scale are brought,
    (score − worst) / (best − worst); or [−1, 1], truthfulness, of a judge whose worst is
    below 0 by as much as its best is above, unless its `shown` says otherwise. verdict
    has the judge's own words.

    score, abstained and marked (of one verdict 1.0 or 0.0) are means over the readable
    verdicts of an answer, and NaN where the call failed or no verdict could be read: such
    rows are counted and left out of means. An answer that the model left empty, or that
    was cut off, needs no judge: it earns the worst, and its mark is "empty" or "cut off".
    spread is the standard deviation over an answer's verdicts, NaN for fewer than two. An
    answer is marked when the judge says that it declines ("No Answer"); it abstains when
    it is marked, or when it earns nothing and its words decline: what costs was taken as
    an answer. Equal answers to a query are judged once.

    Raises `VragError` for a row that is no answer to a query, and when not one answer
    got a verdict.
    """
    judge = _fitted(judge)
    judged = judge_some(judge, benchmark, answers)
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


def judge_some(
    judge: Judge | JudgeClass, benchmark: Benchmark, answers: pd.DataFrame
) -> pd.DataFrame:
    """As `judge_all`, of a part of the answers, such as one turn of conversations: it may
    be that none of them gets a verdict.
    """
    judge = _fitted(judge)
    require_columns(answers, ["query_id", "status"], "judge_all")
    good = answered(benchmark, answers).drop_duplicates(["query_id", "answer"])
    found = judge.judge(benchmark, good)
    shown = getattr(judge, "shown", TRUTH if judge.scale.signed else SHARES)
    comparable = [bool(benchmark.queries[query_id].answers) for query_id in good["query_id"]]
    if hidden := comparable.count(False):
        print(f"judge {judge.name}: {hidden:,} answers have none to be held against: no verdict")
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
        worst=shown.worst,
        best=shown.best,
        judged_by=judge.name,
        judge_key=key,
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


def _fitted(judge: Judge | JudgeClass) -> Judge:
    """The judge, or what fits an object of one's own class to it."""
    if callable(getattr(judge, "judge", None)):
        return cast(Judge, judge)
    own = None if isinstance(judge, str | Mapping) else own_judge(cast(JudgeClass, judge))
    if own is None:
        raise VragError(
            f"judge_all: found {judge!r}, which scores nothing; expected a judge, as"
            " load_judge(…) gives it, or an object with the method score."
        )
    return own


_NOTHING: dict[str, float | str] = {
    "score": np.nan,
    "spread": np.nan,
    "abstained": np.nan,
    "marked": np.nan,
    "marks": "",
    "verdict": "",
}
"""The columns of an answer that has no verdict."""


def _cells(
    verdicts: Sequence[Judgment], answer: str, scale: Scale, shown: Scale
) -> dict[str, float | str]:
    """The columns of one answer, from its verdicts on `scale`, brought to that shown."""
    cells = {**_NOTHING, "verdict": " / ".join(_said(verdict) for verdict in verdicts)}
    scores = [scale.brought_to(shown, score) for score in _scores(verdicts)]
    if not scores:
        return cells
    readable = [verdict for verdict in verdicts if verdict.score is not None]
    marks = frozenset().union(*(verdict.marks for verdict in verdicts))
    return {
        **cells,
        "score": float(np.mean(scores)),
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan,
        "abstained": float(np.mean([_abstains(verdict, answer, scale) for verdict in readable])),
        "marked": float(np.mean(["abstention" in verdict.marks for verdict in readable])),
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
    return {**cells, "score": scale.worst, "abstained": 0.0, "marked": 0.0, "marks": marks}


def _scores(verdicts: Sequence[Judgment]) -> list[float]:
    return [verdict.score for verdict in verdicts if verdict.score is not None]


def _said(verdict: Judgment) -> str:
    """The judge's words on one line, or why there are none."""
    return str(verdict.failure) if verdict.failure else " ".join((verdict.raw or "").split())


def _abstains(verdict: Judgment, answer: str, scale: Scale) -> bool:
    if "abstention" in verdict.marks:
        return True
    nothing = verdict.score == scale.nothing
    return nothing and "hallucination" not in verdict.marks and declines(answer)


def _note_unread(judged: pd.DataFrame) -> None:
    """Print which models' answers, nearly all, are no answers to a judge that says so."""
    if current_forecast() is not None or "model" not in judged:
        return
    for model, answers in judged.groupby("model", sort=False):
        unread = answers["marks"].str.contains("unreadable")
        if unread.mean() >= _NEARLY_ALL:
            said = short(answers.loc[unread, "answer"].iloc[0])
            print(
                f"note: {model}: {unread.sum():,} of {len(answers):,} answers are unreadable and"
                f" earn the worst, such as {said}. See whether it says what is asked for, such as"
                " an option's letter.",
                flush=True,
            )


def _note_lost(judge: Judge, found: Sequence[Sequence[Judgment]]) -> None:
    """Print what got no verdict though it could be judged, and tell the runner."""
    given = list(chain.from_iterable(found))
    lost = [verdict.failure for verdict in given if verdict.failure]
    again = _what_helps(judge, [failure.kind for failure in lost])
    if given:
        tell_verdicts(judge.name, len(given), lost, again)
    if lost:
        print(
            f"judge {judge.name}: {len(lost):,} of {len(given):,} verdicts are missing, such as"
            f' "{lost[0]}"; they are left out of means. {again}'.rstrip(". "),
            flush=True,
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
        print(
            f"judge {name}: samples differ on {differ:,} of {len(several):,} answers; the standard"
            f" deviation of a score is {spread:.3f} in the mean",
            flush=True,
        )
