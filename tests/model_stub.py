"""A model without weights, for tests of what is made of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from vrag_kit.generation import Failure, Reply, Status
from vrag_kit.types import Prompt


class ModelStub:
    """Answers each prompt by the first piece of its text in `answers` ("" is in any); a status,
    such as `Status.REFUSED`, is a call that failed so.
    """

    fingerprint = "1"

    def __init__(self, answers: Mapping[str, str | Status], name: str = "stub") -> None:
        self.name = name
        self.answers = dict(answers)
        self.prompts: list[str] = []
        """The texts of what it was asked, without images."""

    def generate(self, prompts: Sequence[Prompt]) -> list[str | Reply]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> str | Reply:
        parts = chain.from_iterable(message.parts for message in prompt)
        text = "".join(part for part in parts if isinstance(part, str))
        self.prompts.append(text)
        answer = next(self.answers[piece] for piece in self.answers if piece in text)
        if isinstance(answer, Status):
            return Reply(raw=None, failure=Failure(answer, "as planned"))
        return answer
