"""A language model as judge, by the paper's rubric (Table 12): question, references and
answer, no images.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.asking_options import Asking, Round
from vrag_kit.generation.generator import Generator
from vrag_kit.judging.verdicts import Unreadable, label_of, read_verdict
from vrag_kit.types import Answer, Failure, Judgment, Message, Prompt, Query, Status

PAPER = json.loads((Path(__file__).parent / "visual_rag_judge.json").read_text(encoding="utf-8"))
"""The protocol's wording, verbatim, with its source; what is ours in it is marked."""


def judge_prompt(query: Query, answer: str) -> Prompt:
    """What the judge is asked about one answer: rubric, examples, then question,
    reference answers (a list where there are several) and the answer on one line.
    """
    reference = query.answers[0] if len(query.answers) == 1 else list(query.answers)
    last = (
        f"{PAPER['closing']}\n{_case(query.text, reference)}\n\nStudent Answer:"
        f" {' '.join(answer.split())}"
    )
    examples = [*PAPER["examples"], *PAPER["examples_ours"]["examples"]]
    shown = [
        "\n\n".join(
            [
                _case(e["question"], e["reference"]),
                *(f"Student Answer: {student}\n{verdict}" for student, verdict in e["answers"]),
            ]
        )
        for e in examples
    ]
    return (
        Message(
            role="user", parts=("\n\n".join([*PAPER["rubric"], PAPER["opening"], *shown, last]),)
        ),
    )


def _case(question: str, reference: str | list[str]) -> str:
    return f"Question: {question}\nReference Answer: {reference}"


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
        answers_dir: Path | str,
        *,
        samples: int = 1,
        batch_size: int = 16,
        retry_failures: bool = False,
    ) -> None:
        """Verdicts are kept in `answers.sqlite` in `answers_dir`.

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
        self.name, self.samples = generator.name, samples
        self._generator, self._path, self._batch, self._retry = (
            generator,
            Path(answers_dir) / "answers.sqlite",
            batch_size,
            retry_failures,
        )

    def judge(self, queries: Sequence[Query], answers: Sequence[str]) -> list[tuple[Judgment, ...]]:
        """For each query and answer its verdicts, one a sample; a query whose answers
        are hidden gets one that says so.
        """
        cases = [
            (query, answer) for query, answer in zip(queries, answers, strict=True) if query.answers
        ]
        prompts = [judge_prompt(query, answer) for query, answer in cases]
        rounds = [self._round(prompts, sample) for sample in range(self.samples)] if prompts else []
        verdicts = iter(zip(*rounds, strict=True))
        hidden = "query {!r} has no accepted answer to compare with"
        return [
            (
                next(verdicts)
                if query.answers
                else (
                    Judgment(
                        answer_id="",
                        label="",
                        score=None,
                        failure=Failure(Status.ERROR, hidden.format(query.query_id)),
                    ),
                )
            )
            for query in queries
        ]

    def _round(self, prompts: Sequence[Prompt], sample: int) -> list[Judgment]:
        first = self._ask(
            prompts,
            sample,
            "verdicts",
            samples=self.samples,
        )
        reasons = {
            i: reason
            for i, reply in enumerate(first)
            if reply.raw and (reason := _why_unreadable(reply))
        }
        if not reasons:
            return [_judgment(reply) for reply in first]
        repaired = self._ask(
            [_repair(prompts[i], first[i], reason) for i, reason in reasons.items()],
            sample,
            "repaired verdicts",
            samples=1,
        )
        final = {**dict(enumerate(first)), **dict(zip(reasons, repaired, strict=True))}
        judgments = [_judgment(final[i]) for i in range(len(prompts))]
        lost = sum(judgments[i].status != "ok" for i in reasons)
        print(
            f"verdicts of {self.name}: {len(reasons):,} could not be read and were asked for once"
            f" more, {lost:,} of them remain unreadable",
            flush=True,
        )
        return judgments

    def _ask(
        self, prompts: Sequence[Prompt], sample: int, what: str, *, samples: int
    ) -> list[Answer]:
        with AnswerStore(self._path) as store:
            return ask_prompts(
                self._generator,
                prompts,
                store,
                how=Asking(batch_size=self._batch, retry_failures=self._retry),
                this=Round(what=what, read=lambda raw: {}, sample=sample, samples=samples),
            )


def _why_unreadable(reply: Answer) -> str:
    """Why words are no verdict; "" for a verdict.

    Cut-off words are none, whatever they say.
    """
    if reply.failure:
        return str(reply.failure)
    try:
        read_verdict(reply.raw or "")
    except Unreadable as error:
        return str(error)
    return ""


def _judgment(reply: Answer) -> Judgment:
    if reason := _why_unreadable(reply):
        return Judgment(
            answer_id="",
            label="",
            score=None,
            raw=reply.raw,
            failure=reply.failure or Failure(Status.UNREADABLE, reason),
        )
    verdict = read_verdict(reply.raw or "")
    return Judgment(
        answer_id="",
        label=label_of(verdict.score, verdict.marks),
        score=verdict.score,
        marks=verdict.marks,
        raw=reply.raw,
    )


def _repair(prompt: Prompt, reply: Answer, reason: str) -> Prompt:
    return (
        *prompt,
        Message(role="assistant", parts=(reply.raw or "",)),
        Message(role="user", parts=(PAPER["repair"]["text"].format(reason=reason),)),
    )
