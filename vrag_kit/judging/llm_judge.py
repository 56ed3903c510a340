"""A language model as judge, by a rubric: question, references and answer, no images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.answered import no_reference_failure
from vrag_kit.judging.rubric import Rubric, Verdict, verdict_label
from vrag_kit.judging.strict import ParsedReply, Request, StructuredAsker
from vrag_kit.types import PLACEHOLDER, Benchmark, Judgment, Prompt, Query

if TYPE_CHECKING:
    from vrag_kit.config import Hardware
    from vrag_kit.generation.generators import Generator


class LLMJudge:
    """Scores answers with a language model and a rubric; implements `Judge`.

    `StructuredAsker` sends the prompts: stored replies are reused, unparsed ones requested once
    more. With several `samples` each answer is judged that many times: the spread is the judge's
    own noise.
    """

    def __init__(
        self,
        generator: Generator,
        rubric: Rubric,
        answers_dir: Path | str,
        *,
        hardware: Hardware,
        samples: int = 1,
    ) -> None:
        """Verdicts are stored in `answers.sqlite` in `answers_dir`, `samples` per answer.

        Raises `VragError` for several samples of a model that decodes greedily.
        """
        if samples < 1:
            raise VragError(f"judge_samples is {samples}; expected 1 or more.")
        if samples > 1 and generator.deterministic:
            raise VragError(
                f"judge {generator.name!r}: {samples} samples are asked for, but it decodes"
                " greedily, so that they would be copies. Set judge_samples to 1, or another"
                " `decoding` in the judge's entry."
            )
        self.name, self.scale = generator.name, rubric.scale
        self.samples = samples
        decoding = sorted(generator.decoding.items())
        self.fingerprint = repr((generator.fingerprint, decoding, rubric.fingerprint))
        self.words = rubric.words
        self._rubric = rubric
        self._asker = StructuredAsker(
            generator=generator,
            answers_dir=Path(answers_dir),
            hardware=hardware,
            what="verdicts",
            repair=rubric.build_repair,
        )

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return the verdicts of each row of answers, one per sample.
        An answer that needs no judge gets one; a query without accepted answers gets a failure.
        """
        rows = zip(answers["query_id"], answers["answer"], strict=True)
        pairs = [(benchmark.queries[query_id], answer) for query_id, answer in rows]
        known = [self._without_asking(query, answer) for query, answer in pairs]
        asked = [pair for pair, verdict in zip(pairs, known, strict=True) if verdict is None]
        prompts = [self._rubric.build_prompt(query, answer) for query, answer in asked]
        rounds = [self._round(prompts, sample) for sample in range(self.samples)] if prompts else []
        verdicts = iter(zip(*rounds, strict=True))
        return [next(verdicts) if verdict is None else (verdict,) for verdict in known]

    def _without_asking(self, query: Query, answer: str) -> Judgment | None:
        """The verdict that needs no model; None where it is to be asked."""
        if not query.answers:
            return no_reference_failure(query)
        verdict = self._rubric.run_precheck(query, answer)
        return None if verdict is None else self._judgment(verdict, "no judge was asked")

    def _round(self, prompts: Sequence[Prompt], sample: int) -> list[Judgment]:
        """One verdict a prompt."""
        asked = [Request(prompt=prompt, read=self._rubric.parse_verdict) for prompt in prompts]
        readings = self._asker.ask(asked, sample=sample, samples=self.samples)
        return [self._verdict(reading) for reading in readings]

    def _verdict(self, reading: ParsedReply[Verdict]) -> Judgment:
        """The verdict in a reply, or why there is none. In a dry run the worst, marked."""
        if reading.value is not None:
            return self._judgment(reading.value, reading.raw)
        if reading.failure is not None:
            return Judgment(
                answer_id="", label="", score=None, raw=reading.raw, failure=reading.failure
            )
        return Judgment(
            answer_id="",
            label="incorrect",
            score=self.scale.worst,
            marks=frozenset({PLACEHOLDER}),
            raw=reading.raw,
        )

    def _judgment(self, verdict: Verdict, raw: str | None) -> Judgment:
        label = verdict_label(verdict, self.scale)
        return Judgment(
            answer_id="", label=label, score=verdict.score, marks=verdict.marks, raw=raw
        )
