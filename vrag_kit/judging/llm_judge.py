"""A language model as judge, by a rubric: question, references and answer, no images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN
from vrag_kit.judging.answered import hidden
from vrag_kit.judging.rubric import Rubric, Unreadable, Verdict, label_of
from vrag_kit.types import Answer, Benchmark, Failure, Judgment, Message, Prompt, Query, Status

if TYPE_CHECKING:
    from vrag_kit.generation.asking_options import Asking
    from vrag_kit.generation.generator import Generator


class LLMJudge:
    """Scores answers by asking a model; implements `Judge`.

    The model's words are kept in the store as they are and read anew each time, so that
    nothing is asked twice. A verdict that cannot be read is asked for once more, with
    the reason; then it is unreadable. With several `samples` each answer is judged so
    often: how far they differ is the judge's own noise.
    """

    def __init__(
        self,
        generator: Generator,
        rubric: Rubric,
        answers_dir: Path | str,
        *,
        how: Asking,
    ) -> None:
        """Verdicts are kept in `answers.sqlite` in `answers_dir`; `how` says how many
        samples.

        Raises `VragError` for several samples of a model that decodes greedily.
        """
        if how.samples < 1:
            raise VragError(f"judge_samples is {how.samples}; expected 1 or more.")
        if how.samples > 1 and generator.deterministic:
            raise VragError(
                f"judge {generator.name!r}: {how.samples} samples are asked for, but it decodes"
                " greedily, so that they would be copies. Set judge_samples to 1, or another"
                " `decoding` in the judge's entry."
            )
        self.name, self.scale = generator.name, rubric.scale
        self.samples = how.samples
        self._generator, self._rubric = generator, rubric
        self._path, self._how = Path(answers_dir) / "answers.sqlite", how

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """For each row of answers its verdicts, one a sample. What the rubric settles
        gets that one verdict, and a query whose answers are hidden one that says so.
        """
        rows = zip(answers["query_id"], answers["answer"], strict=True)
        pairs = [(benchmark.queries[query_id], answer) for query_id, answer in rows]
        known = [self._without_asking(query, answer) for query, answer in pairs]
        asked = [pair for pair, verdict in zip(pairs, known, strict=True) if verdict is None]
        prompts = [self._rubric.prompt(query, answer) for query, answer in asked]
        rounds = [self._round(prompts, sample) for sample in range(self.samples)] if prompts else []
        verdicts = iter(zip(*rounds, strict=True))
        return [next(verdicts) if verdict is None else (verdict,) for verdict in known]

    def _without_asking(self, query: Query, answer: str) -> Judgment | None:
        """The verdict that needs no model; None where it is to be asked."""
        if not query.answers:
            return hidden(query)
        verdict = self._rubric.settles(query, answer)
        return None if verdict is None else self._judgment(verdict, "no judge was asked")

    def _round(self, prompts: Sequence[Prompt], sample: int) -> list[Judgment]:
        """One verdict a prompt; what cannot be read is asked once more."""
        replies = self._ask(prompts, sample, "verdicts", samples=self.samples)
        verdicts = [self._read(reply) for reply in replies]
        again = [place for place, reply in enumerate(replies) if self._can_repair(reply)]
        if not again:
            return verdicts
        repairs = [self._repair(prompts[place], replies[place]) for place in again]
        repaired = self._ask(repairs, sample, "repaired verdicts", samples=1)
        for place, reply in zip(again, repaired, strict=True):
            verdicts[place] = self._read(reply)
        lost = sum(verdicts[place].failure is not None for place in again)
        print(
            f"verdicts of {self.name}: {len(again):,} could not be read and were asked for once"
            f" more, {lost:,} of them remain unreadable",
            flush=True,
        )
        return verdicts

    def _ask(
        self, prompts: Sequence[Prompt], sample: int, what: str, *, samples: int
    ) -> list[Answer]:
        from vrag_kit.generation.answers import AnswerStore
        from vrag_kit.generation.asking import ask_prompts
        from vrag_kit.generation.asking_options import Round

        this = Round(what=what, read=lambda raw: {}, sample=sample, samples=samples)
        with AnswerStore(self._path) as store:
            return ask_prompts(self._generator, prompts, store, how=self._how, this=this)

    def _read(self, reply: Answer) -> Judgment:
        """The verdict in a reply, or why there is none; cut-off words are none. In a
        forecast, where nobody is asked, the worst, marked, so that nothing has to be
        repaired.
        """
        if reply.fields.get(STAND_IN):
            return Judgment(
                answer_id="",
                label="incorrect",
                score=self.scale.worst,
                marks=frozenset({STAND_IN}),
                raw=reply.raw,
            )
        failure = reply.failure
        if failure is None:
            try:
                verdict = self._rubric.read(reply.raw or "")
            except Unreadable as error:
                failure = Failure(Status.UNREADABLE, str(error))
        if failure is not None:
            return Judgment(answer_id="", label="", score=None, raw=reply.raw, failure=failure)
        return self._judgment(verdict, reply.raw)

    def _judgment(self, verdict: Verdict, raw: str | None) -> Judgment:
        label = label_of(verdict, self.scale)
        return Judgment(
            answer_id="", label=label, score=verdict.score, marks=verdict.marks, raw=raw
        )

    def _can_repair(self, reply: Answer) -> bool:
        """Whether there are words, but no verdict."""
        return bool(reply.raw) and self._read(reply).failure is not None

    def _repair(self, prompt: Prompt, reply: Answer) -> Prompt:
        """The prompt, what the judge said to it, and what is wrong with that."""
        failure = self._read(reply).failure
        unreadable = failure is not None and failure.kind == Status.UNREADABLE
        reason = failure.words if failure and unreadable else str(failure)
        said = Message(role="assistant", parts=(reply.raw or "",))
        return (*prompt, said, Message(role="user", parts=(self._rubric.repair(reason),)))
