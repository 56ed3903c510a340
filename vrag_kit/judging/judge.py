"""The protocol `Judge`, and `judge_answers`, which adds verdicts to a table of answers.

A verdict fails when the judge's call fails, or when its reply cannot be parsed even after one
retry. A failed verdict is a `Judgment` without a score: `judge_answers` counts it, prints the
reason, leaves score, abstained and flagged NaN, and writes the reason into the column verdict.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from inspect import isclass
from itertools import chain, compress
from numbers import Real
from typing import Protocol, cast

import numpy as np
import pandas as pd

from vrag_kit.config import (
    CustomObject,
    Entry,
    catch_custom_errors,
    custom_spec,
    load_custom,
    load_member,
)
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import SetupError, VragError
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.scale import SHARES, TRUTH, Scale, ok_answers, query_answers, require_columns
from vrag_kit.log import logger, record_calls
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status

_ADVICE = (
    "Calls that failed are asked again with `retry_failures: true` in `hardware`; unreadable"
    " verdicts need a stronger judge, and truncated ones a larger `max_new_tokens` in its entry"
)
SILENCE = {Status.EMPTY: "empty", Status.TRUNCATED: "cut off"}
"""Mark of an answer that is empty, or that was truncated."""
_NO_VERDICT: Mapping[str, float | str] = {
    **dict.fromkeys(["score", "spread", "abstained", "flagged"], np.nan),
    **{"marks": "", "verdict": ""},
}
"""The columns of an answer that has no verdict."""


class Judge(Protocol):
    """Scores the correctness of answers.

    Optional are `fingerprint`, a text that changes whenever its verdicts may; `prompt_text`, its
    rubric; and `table_scale`, the scale to which its scores are converted (see `judge_answers`).
    """

    name: str
    scale: Scale

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return for each row of answers, all to queries of the benchmark, one verdict per sample.
        A verdict has a score on the scale and marks, or a failure with the reason.
        """


class CustomJudge(Protocol):
    """Interface of a custom judge.

    Optional are `name`, and `scale`, its two ends, by default (0, 1). Where accuracy is shown, a
    score is converted to (score − worst) / (best − worst).
    """

    def score(self, query: Query, answer: str) -> float | None:
        """Return the score of an answer, on the scale; None where it cannot be scored."""


def judge_answers(
    judge: Judge | CustomJudge,
    benchmark: Benchmark,
    answers: pd.DataFrame,
    *,
    partial: bool = False,
) -> pd.DataFrame:
    """Return the table of answers with the scores and verdicts of a judge added.

    Added columns: score, spread, abstained, flagged, marks, verdict (the judge's raw reply),
    score_min and score_max (the ends of the scale of score), judge (the judge's name), judge_id,
    and for a language model judge_prompt, its rubric. judge_id distinguishes judges of one name: a
    hash of name, fingerprint (model, rubric or class) and scale.

    Scores are converted to [0, 1] by (score − worst) / (best − worst). Those of a judge whose scale
    is symmetric about 0 are converted to [−1, 1], truthfulness. Its `table_scale` overrides both.

    score, abstained and flagged (1.0 or 0.0 for one verdict) are means over the parsed verdicts of
    an answer. They are NaN where the call failed or no verdict could be parsed: such rows are
    counted and left out of means. An empty or truncated answer is not sent to the judge: it gets
    the worst score, and its mark is "empty" or "cut off". spread is the standard deviation over an
    answer's verdicts, NaN for fewer than two. An answer is flagged when the judge calls it an
    abstention ("No Answer"). It abstains when it is flagged, or when it scores `Scale.nothing` and
    its text abstains, unless marked as a hallucination. Equal answers to a query are judged once.

    Raises `VragError` for a row that answers no query, and when no answer got a verdict, unless the
    answers are only a `partial` table, such as one turn of conversations.
    """
    judge = _as_judge(judge)
    require_columns(answers, ["query_id", "status"], "judge_answers")
    good = ok_answers(benchmark, answers).drop_duplicates(["query_id", "answer"])
    found = judge.judge(benchmark, good)
    table_scale = getattr(judge, "table_scale", TRUTH if judge.scale.signed else SHARES)
    referenced = {name: bool(query.answers) for name, query in benchmark.queries.items()}
    pairs = zip(good["query_id"], good["answer"], strict=True)
    cells = {
        pair: _cells(verdicts, pair[1], judge.scale, table_scale)
        for pair, verdicts in zip(pairs, found, strict=True)
    }
    rows = []
    for row in answers.filter(["query_id", "status", "answer", "detail"]).to_dict("records"):
        if row["status"] == "ok":
            rows.append(cells[row["query_id"], row["answer"]])
        else:
            failure = Failure(Status(row["status"]), row["detail"])
            verdict = _unsent(failure, judge.scale, referenced=referenced[row["query_id"]])
            rows.append(_cells((verdict,), "", judge.scale, table_scale))
    columns = pd.DataFrame(rows, columns=list(_NO_VERDICT), index=answers.index)
    advice = _report(judge, found, [referenced[query_id] for query_id in good["query_id"]])
    scores = [cell["score"] for cell in cells.values()]
    if scores and not partial and np.isnan(scores).all():
        first = next(iter(cells.values()))["verdict"]
        raise VragError(
            f"judge {judge.name!r}: none of {len(scores):,} answers got a verdict; the first says"
            f' "{first}". {advice}'.strip()
        )
    judged = answers.drop(columns="judge_prompt", errors="ignore").assign(
        **{str(name): column for name, column in columns.items()},
        score_min=table_scale.worst,
        score_max=table_scale.best,
        judge=judge.name,
        judge_id=_judge_id(judge, table_scale),
    )
    prompt = getattr(judge, "prompt_text", "")
    return judged.assign(judge_prompt=prompt) if prompt else judged


def _judge_id(judge: Judge, table_scale: Scale) -> str:
    """Twelve letters that differ where the verdicts of two judges may.
    "" for an object of a custom class without a fingerprint.
    """
    fingerprint = getattr(judge, "fingerprint", judge.name)
    if not fingerprint:
        return ""
    ends = (judge.scale.worst, judge.scale.best, table_scale.worst, table_scale.best)
    whole = repr((judge.name, fingerprint, *map(float, ends)))
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def _as_judge(judge: Judge | CustomJudge) -> Judge:
    """The judge, or the adapter of an object of a custom class."""
    if callable(getattr(judge, "judge", None)):
        return cast(Judge, judge)
    own = load_custom_judge(cast(CustomJudge, judge))
    if own is None:
        raise VragError(
            f"judge_answers: found {judge!r}; expected a judge, or an object with the method score."
        )
    return own


def _cells(
    verdicts: Sequence[Judgment], answer: str, scale: Scale, table_scale: Scale
) -> Mapping[str, float | str]:
    """The columns of one answer, from its verdicts on `scale`, converted to `table_scale`."""
    texts = [str(each.failure or " ".join((each.raw or "").split())) for each in verdicts]
    cells = {**_NO_VERDICT, "verdict": " / ".join(texts)}
    parsed = [verdict for verdict in verdicts if verdict.score is not None]
    scores = [scale.rescale(table_scale, verdict.score or 0.0) for verdict in parsed]
    if not scores:
        return cells
    return {
        **cells,
        "score": float(np.mean(scores)),
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan,
        "abstained": float(np.mean([_abstains(verdict, answer, scale) for verdict in parsed])),
        "flagged": float(np.mean(["abstention" in verdict.marks for verdict in parsed])),
        "marks": ", ".join(sorted(set(chain.from_iterable(each.marks for each in parsed)))),
    }


def _unsent(failure: Failure, scale: Scale, *, referenced: bool) -> Judgment:
    """The verdict on an answer that the judge does not see: an empty or truncated one has the worst
    score, unless its query has no accepted answer.
    """
    if failure.kind not in SILENCE or not referenced:
        return Judgment(score=None, failure=failure)
    marks = frozenset({SILENCE[failure.kind]})
    return Judgment(score=scale.worst, marks=marks, raw=str(failure))


def _abstains(verdict: Judgment, answer: str, scale: Scale) -> bool:
    nothing = verdict.score == scale.nothing and "hallucination" not in verdict.marks
    return "abstention" in verdict.marks or (nothing and is_abstention(answer))


def _report(judge: Judge, found: Sequence[Sequence[Judgment]], referenced: Sequence[bool]) -> str:
    """Print and record failed verdicts; returns what helps."""
    if hidden := list(referenced).count(False):
        logger.info(f"judge {judge.name}: {hidden:,} answers have no reference: no verdict")
    given = list(chain.from_iterable(compress(found, referenced)))
    failures = [verdict.failure for verdict in given if verdict.failure]
    advice = _ADVICE if failures and isinstance(judge, LLMJudge) else ""
    if given:
        record_calls("judge", judge.name, len(given), failures, advice)
    if failures:
        logger.info(
            f"judge {judge.name}: {len(failures):,} of {len(given):,} verdicts are missing, such as"
            f' "{failures[0]}"; they are left out of means. {advice}'.rstrip(". ")
        )
    return advice


class CustomJudgeAdapter:
    """Adapts an object of a custom class to `Judge`."""

    table_scale = SHARES
    """The scale to which scores are converted; `TRUTH` for truthfulness."""

    def __init__(self, own: CustomObject, owner: str) -> None:
        """`own` has the method of `CustomJudge`. Raises `VragError`, which begins with `owner`, for
        an invalid scale.
        """
        self._made = own.made
        self.name, self.fingerprint = own.name, own.fingerprint
        scale = getattr(own.made, "scale", SHARES)
        try:
            self.scale = scale if isinstance(scale, Scale) else Scale(*map(float, scale))
        except (TypeError, ValueError, VragError) as error:
            raise VragError(
                f"{owner}: its scale is {scale!r}; expected (worst, best), as in (0, 1)."
            ) from error

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers.
        In a dry run the class scores the first answer only, and all get the worst score. Raises
        `SetupError` for a score off the scale, and, except in a dry run, `VragError` for an error
        of the class.
        """
        pairs = query_answers(benchmark, answers)
        if current_dry_run() is None:
            return [(self._verdict(query, answer),) for query, answer in pairs]
        try:
            for query, answer in pairs[:1]:
                self._verdict(query, answer)
        except SetupError:
            raise
        except VragError:  # the answer is only a placeholder
            pass
        return [(self._judgment(self.scale.worst),)] * len(pairs)

    def _verdict(self, query: Query, answer: str) -> Judgment:
        with catch_custom_errors(f"judge {self.name}: score", self._made):
            score = self._made.score(query, answer)
        if score is None:
            words = f"{self.name} says nothing of an answer to {query.query_id!r}"
            return Judgment(score=None, failure=Failure(Status.ERROR, words))
        value = float(score) if isinstance(score, Real) else math.nan
        if not self.scale.worst <= value <= self.scale.best:
            raise SetupError(
                f"judge {self.name}: score returned {score!r} for {answer!r} to query"
                f" {query.query_id!r}; expected a number from {self.scale.worst:g} to"
                f" {self.scale.best:g}, or None where that cannot be said."
            )
        return self._judgment(value)

    def _judgment(self, score: float) -> Judgment:
        return Judgment(score=score, raw=f"{self.name}: {score:g}")


def load_custom_judge(entry: Entry | CustomJudge) -> CustomJudgeAdapter | None:
    """Load the judge of an entry that names a custom class, or that is an object of one.
    Returns None for a built-in judge, a model, or a custom class that generates answers. Raises as
    `load_custom`, and for a scale as `CustomJudgeAdapter`.
    """
    spec = custom_spec(entry)
    owner = f"judge {type(entry).__name__}(…)" if spec is None else f"judge {spec!r}"
    made_by = entry if spec is None else load_member(spec, owner, "class", isclass)[0]
    if hasattr(made_by, "generate") and not hasattr(made_by, "score"):
        return None
    own = load_custom(entry, "judge", ("score",))
    return None if own is None else CustomJudgeAdapter(own, owner)
